"""Norms and weighted sums of several parameters' gradients; on a device, one kernel launch for each
kind of work covers all parameters.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from numpy.typing import NDArray

from .. import given
from .forms import HUGE, Arrays, Key, PerExampleGrad


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
        given.launch_sums(grads, w, total, rows, add_each, add_products)
        return
    for key, grad in grads.items():
        if key in total:
            total[key] = total[key].astype("float64", copy=False)
            grad.add_weighted_sum(total[key], w, rows)
        else:
            total[key] = grad.weighted_sum(w, rows)


def _twin(name, grads):
    """The twin for the arrays of all gradients; None where one has no arrays, or there is none."""
    arrays = [grad.arrays for grad in grads]
    return given.kernel(name, *chain(*arrays)) if all(arrays) else None
