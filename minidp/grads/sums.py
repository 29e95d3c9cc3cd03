"""Weighted sums of several parameters' gradients."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from .forms import Arrays, Key


def add_weighted_sums(grads: Mapping[Key, Any], w: NDArray, total: Arrays, rows: int) -> None:
    """total[key] += sum_b w_b g_b, in place, for each key of grads, {key: PerExampleGrad}; a
    missing total starts at zero.

    rows: rows of one float32 product, whose results are added in float64; 0 for float64 products.
    """
    for key, grad in grads.items():
        if key in total:
            total[key] = total[key].astype("float64", copy=False)
            grad.add_weighted_sum(total[key], w, rows)
        else:
            total[key] = grad.weighted_sum(w, rows)
