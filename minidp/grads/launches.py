"""Weighted sums of several parameters' gradients on a device, in few launches."""

from ..arrays import DOUBLE_ROWS, namespace_of
from .forms import LARGE


def launch_sums(grads, w, total, rows, add_each, add_products):
    """All explicit gradients in one launch, and all factored ones in one, but for those in chunks,
    since not all of them fit into memory.
    """
    xp = namespace_of(w)
    explicit = []
    products = []
    for key, grad in grads.items():
        old = key in total
        total[key] = (
            xp.ascontiguousarray(total[key], dtype="float64") if old else xp.empty(grad.shape)
        )
        if not grad.factored:
            each = grad.g.reshape((grad.n_examples, total[key].size))
            out = total[key].reshape((total[key].size,))
            explicit.append((out, xp.ascontiguousarray(each), old))
            continue
        for start, part in grad.chunks():
            job = total[key], old or start > 0, *_factors(part, rows)
            if part.n_examples == grad.n_examples:
                products.append(job)
            else:
                add_products([job], w[start : start + part.n_examples], LARGE)
    if explicit:
        add_each(*zip(*explicit), w)
    if products:
        add_products(products, w, LARGE)


def _factors(grad, rows):
    """What `device.add_weighted_products` takes of an Outer or OuterSum: a (B, I, T), d (B, T, O),
    norms, rows of one product, float64? rows: of one product in float32, 0 for float64.
    """
    contiguous = grad.xp.ascontiguousarray
    if grad.one_product:
        a, d = map(contiguous, grad.arrays)
        norms = grad.factor_norms() if rows else None
        return a[:, :, None], d[:, None, :], norms, rows or DOUBLE_ROWS, not rows
    a = grad.a.transpose(0, 2, 1)
    return contiguous(a), contiguous(grad.d), None, grad.product_rows(), True
