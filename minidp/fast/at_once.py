"""Norms, clip weights and weighted sums of all parameters in few starts of kernels on a device.

The definitions are `Sanitizer._add_group` and what it calls.
"""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ..compiled import kernel
from ..grads.forms import LARGE, Arrays, Explicit, Key, Outer, PerExampleGrad, PositionSums
from ..mechanism.clip import MARGIN, MOST_CLIPPED
from ..mechanism.rounding import Products
from .device.launching import PARTS


def add_at_once(
    sanitizer: Any,
    grads: Mapping[Key, PerExampleGrad],
    total: Arrays,
    own: NDArray | None,
    products: Products,
) -> bool:
    """Add the clipped gradients of a batch to {key: raw sum} `total`; False, and nothing is done,
    for gradients that the kernels do not take: float64, more than PARTS, or on the host.

    own: (B,) float64, the examples' weights, or None.
    """
    ordered = [grads[key] for key in sanitizer.keys]
    arrays = [array for grad in ordered for array in grad.arrays]
    weigh, add_all = kernel("weigh", *arrays), kernel("add_all", *arrays)
    if not (weigh and add_all and _fits(sanitizer, grads, products)):
        return False
    formed = sanitizer.materialised(grads, products)
    forms = {key: grad.explicit() if key in formed else grad for key, grad in grads.items()}
    examples, parts = ordered[0].n_examples, []
    for number, group in enumerate(sanitizer.groups):
        parts += [_described(forms[key], number, products.rows) for key in group.keys]
    limits = LARGE, MARGIN, MOST_CLIPPED
    clip_norms = [float(group.clip_norm) for group in sanitizer.groups]
    sq, weights = weigh(parts, clip_norms, own, examples, limits)
    for number, group in enumerate(sanitizer.groups):
        sanitizer.watcher.take_norms(group.name, sq[number], own)
    rows, at = [], iter(parts)
    for number, group in enumerate(sanitizer.groups):
        for key in group.keys:
            rows += _summed(forms[key], next(at), key, total, weights[number], products.rows)
    if rows:
        add_all(rows)
    return True


def _fits(sanitizer, grads, products):
    """True if clip norms are finite, one start takes all, and one chunk all explicit gradients."""
    formed = sanitizer.materialised(grads, products)
    factored = any(type(grad) is Outer for key, grad in grads.items() if key not in formed)
    size = next(iter(grads.values())).n_examples
    finite = all(group.clip_norm < float("inf") for group in sanitizer.groups)
    few = len(sanitizer.keys) <= PARTS and len(sanitizer.groups) <= PARTS
    return (
        finite
        and few
        and (products.rows > 0 or not factored)
        and len(sanitizer._chunks(formed, size)) == 1
    )


def _described(grad, group, most):
    """The row of `weigh` for a parameter; most: rows of one float32 product."""
    if type(grad) is Explicit:
        g, lost = grad.xp.ascontiguousarray(grad._matrix()), grad._lost
        return g, None, None, None, None, g.shape[1], 1, 1, group, 1 + lost
    if type(grad) is PositionSums:
        d, g = (
            grad.xp.ascontiguousarray(grad.d),
            grad.xp.empty((len(grad.d), *grad.shape), "float32"),
        )
        return d, None, None, g, None, g.shape[1], 1, d.shape[1], group, 1 + grad._lost
    if type(grad) is not Outer:
        return None, None, grad.sq_norms_upper(), None, None, 1, 1, 1, group, 1.0
    a, d = map(grad.xp.ascontiguousarray, grad.arrays)
    (examples, inputs), outputs = a.shape, d.shape[1]
    blocks = -(-examples // most)
    rows = -(-examples // blocks)  # the blocks are about as large as each other
    blocks = -(-examples // rows)
    A, D = (
        grad.xp.empty((blocks, inputs, rows), a.dtype),
        grad.xp.empty((blocks, rows, outputs), a.dtype),
    )
    return a, d, None, A, D, inputs, outputs, rows, group, 1 + grad._lost


def _summed(grad, part, key, total, w, rows):
    """Rows of `add_all` for a parameter; sums of other forms are added here, and have none."""
    if type(grad) not in (Explicit, PositionSums, Outer):
        if key in total:
            grad.add_weighted_sum(total[key], w, rows)
        else:
            total[key] = grad.weighted_sum(w, rows)
        return []
    old = key in total
    if not old:
        view = getattr(total, "views", {}).get(key)
        total[key] = grad.xp.empty(grad.shape) if view is None else view
    out, (g, *_), A, D = total[key], part, part[3], part[4]
    if type(grad) is not Outer:
        g = g if A is None else A
        return [(g, w, out, out.size, len(g), int(old))]
    return [(grad.xp.matmul(A, D), None, out, out.size, len(A), int(old))]
