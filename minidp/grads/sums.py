"""Norms and weighted sums of several parameters' gradients; on a device, one kernel launch for each
kind of work covers all parameters.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from numpy.typing import NDArray

from ..backend import namespace_of
from ..kernels import kernel
from .forms import HUGE, LARGE, Arrays, Key, PerExampleGrad


def sum_of_squares(grads: Sequence[PerExampleGrad]) -> NDArray:
    """(B,) the sum of sq_norms_upper of several parameters' gradients."""
    twin = _twin("sum_of_squares", grads)
    if twin is None:
        return sum(grad.sq_norms_upper() for grad in grads)
    return twin([grad.norm_part() for grad in grads], HUGE, grads[0].n_examples)


def add_weighted_sums(grads: Mapping[Key, Any], w: NDArray, total: Arrays, rows: int) -> None:
    """total[key] += sum_b w_b g_b, in place, for each key of grads, {key: PerExampleGrad}; a
    missing total starts at zero.

    rows: rows of one float32 product, whose results are added in float64; 0 for float64 products.
    """
    add_each = _twin("add_weighted_each", grads.values())
    add_products = _twin("add_weighted_products", grads.values())
    if add_each and add_products:
        _launch(grads, w, total, rows, add_each, add_products)
        return
    for key, grad in grads.items():
        if key in total:
            total[key] = total[key].astype("float64", copy=False)
            grad.add_weighted_sum(total[key], w, rows)
        else:
            total[key] = grad.weighted_sum(w, rows)


def _launch(grads, w, total, rows, add_each, add_products):
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
            explicit.append((total[key].reshape((total[key].size,)), grad.sum_part(rows), old))
            continue
        for start, part in grad.chunks():
            job = total[key], old or start > 0, *part.sum_part(rows)
            if part.n_examples == grad.n_examples:
                products.append(job)
            else:
                add_products([job], w[start : start + part.n_examples], LARGE)
    if explicit:
        add_each(*zip(*explicit), w)
    if products:
        add_products(products, w, LARGE)


def _twin(name, grads):
    """The twin for the arrays of all gradients; None where one has no arrays, or there is none."""
    arrays = [grad.arrays for grad in grads]
    return kernel(name, *chain(*arrays)) if all(arrays) else None
