"""Weighted sums of several parameters' gradients on a device, in few launches."""

import math
from functools import singledispatch

from ..arrays import DOUBLE_ROWS, namespace_of
from .forms import LARGE, Explicit, Outer, OuterSum


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
            explicit.append((total[key].reshape((total[key].size,)), sum_part(grad, rows), old))
            continue
        for start, part in grad.chunks():
            job = total[key], old or start > 0, *sum_part(part, rows)
            if part.n_examples == grad.n_examples:
                products.append(job)
            else:
                add_products([job], w[start : start + part.n_examples], LARGE)
    if explicit:
        add_each(*zip(*explicit), w)
    if products:
        add_products(products, w, LARGE)


@singledispatch
def sum_part(grad, rows):
    """What the twins take of one parameter's gradients; rows of one product in float32, 0 for
    float64.
    """
    raise NotImplementedError


@sum_part.register
def _(grad: Explicit, rows):
    """The gradients (B, P), for `device.add_weighted_each`."""
    size = math.prod(grad.shape)
    return grad.xp.ascontiguousarray(grad.g.reshape((grad.n_examples, size)))


@sum_part.register
def _(grad: Outer, rows):
    """For `device.add_weighted_products`: a (B, I, 1), d (B, 1, O), norms, rows, float64?"""
    a, d = map(grad.xp.ascontiguousarray, grad.arrays)
    norms = grad.factor_norms() if rows else None
    return a[:, :, None], d[:, None, :], norms, rows or DOUBLE_ROWS, not rows


@sum_part.register
def _(grad: OuterSum, rows):
    """As of Outer: a (B, I, T), d (B, T, O), in float64."""
    a, d = map(grad.xp.ascontiguousarray, (grad.a.transpose(0, 2, 1), grad.d))
    return a, d, None, grad.product_rows(), True
