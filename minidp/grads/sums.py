"""Norms and weighted sums of several parameters' gradients: on a device each kind of work is one
launch for all of them.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from ..backend import DOUBLE_ROWS, namespace_of, row_norms
from ..kernels import kernel
from .forms import HUGE, LARGE, ROWS, Arrays, Explicit, Key, Outer, OuterSum, PerExampleGrad


def sum_of_squares(grads: Sequence[PerExampleGrad]) -> NDArray:
    """(B,) the sum of sq_norms_upper of several parameters' gradients."""
    twin = _twin("sum_of_squares", grads)
    if twin is None:
        return sum(grad.sq_norms_upper() for grad in grads)
    return twin([_norm_part(grad) for grad in grads], HUGE, grads[0].n_examples)


def add_weighted_sums(grads: Mapping[Key, Any], w: NDArray, total: Arrays, rows: int) -> None:
    """total[key] += sum_b w_b g_b, in place, for each key of grads, {key: PerExampleGrad}; new
    where there is none.

    rows: of one product in float32, added in float64; 0 for float64.
    """
    add_each = _twin("add_weighted_each", grads.values())
    add_products = _twin("add_weighted_products", grads.values())
    if add_each is None or add_products is None:
        for key, grad in grads.items():
            if key in total:
                total[key] = total[key].astype("float64", copy=False)
                grad.add_weighted_sum(total[key], w, rows)
            else:
                total[key] = grad.weighted_sum(w, rows)
        return
    xp: Any = namespace_of(w)
    explicit: list[tuple] = []
    products: list[tuple] = []
    for key, grad in grads.items():
        old = key in total
        total[key] = (
            xp.ascontiguousarray(total[key], dtype="float64") if old else xp.empty(grad.shape)
        )
        if isinstance(grad, Explicit):
            size = math.prod(grad.shape)
            explicit.append(
                (
                    total[key].reshape((size,)),
                    xp.ascontiguousarray(grad.g.reshape((grad.n_examples, size))),
                    old,
                )
            )
            continue
        for start, part in grad.chunks() if hasattr(grad, "chunks") else [(0, grad)]:
            job = total[key], old or start > 0, *_factored(part, rows)
            if part.n_examples == grad.n_examples:
                products.append(job)
            else:  # chunks are there because not all of them fit into memory
                add_products([job], w[start : start + part.n_examples], LARGE)
    if explicit:
        add_each(*zip(*explicit), w)
    if products:
        add_products(products, w, LARGE)


def _factors(grad):
    """The arrays of the network's dtype that a gradient is made of; none for classes of exact
    arithmetic.
    """
    known = isinstance(grad, (Explicit, Outer, OuterSum)) or hasattr(grad, "chunks")
    return [vars(grad)[name] for name in ("g", "x", "a", "d") if known and name in vars(grad)]


def _twin(name, grads):
    factors = [_factors(grad) for grad in grads]
    return kernel(name, *itertools.chain(*factors)) if all(factors) else None


def _norm_part(grad):
    """What `device.sum_of_squares` takes: factors, or norms that are known; where to put
    norms; how much to raise.
    """
    if isinstance(grad, Outer):
        grad._norms = tuple(grad.xp.empty(grad.n_examples) for _ in range(2))
        return *map(grad.xp.ascontiguousarray, (grad.a, grad.d)), None, *grad._norms, 1 + grad._lost
    if isinstance(grad, Explicit):
        known = grad._sq_norms
        return (
            grad.xp.ascontiguousarray(grad._matrix()) if known is None else None,
            None,
            known,
            None,
            None,
            1 + grad._lost,
        )
    return None, None, grad.sq_norms_upper(), None, None, 1.0


def _factored(grad, rows):
    """What `device.add_weighted_products` takes: a (B, I, T), d (B, T, O), norms, rows of a
    product, whether in float64.
    """
    contiguous = grad.xp.ascontiguousarray
    if isinstance(
        grad, OuterSum
    ):  # in float64, since terms of one example may cancel; as many rows as blocks: short chains
        rows = max(ROWS, math.isqrt(grad.n_examples * grad.positions))
        return contiguous(grad.a.transpose(0, 2, 1)), contiguous(grad.d), None, rows, True
    norms = (grad._norms or tuple(map(row_norms, (grad.a, grad.d)))) if rows else None
    return (
        contiguous(grad.a)[:, :, None],
        contiguous(grad.d)[:, None, :],
        norms,
        rows or DOUBLE_ROWS,
        not rows,
    )
