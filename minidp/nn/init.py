"""Initial values of parameters, drawn on the host: f(rng, shape, dtype) -> NumPy array.

The fan-in is the product of all axes but the last: I for a dense weight (I, O), kh kw C for a
kernel (kh, kw, C, O), and 1 for a vector (O,).
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import DTypeLike, NDArray

from ..streams import Draws

Initializer = Callable[[Any, tuple[int, ...], DTypeLike], NDArray]  # f(rng, shape, dtype)
Rng = Draws | Generator | None  # None: the operating system's entropy
TRUNCATION = 2.0  # in standard deviations
_SHAPES_ONLY = ContextVar("shapes_only", default=False)


@contextmanager
def shapes_only(wanted: bool = True) -> Iterator[None]:
    """Context in which `zeros` and `constant` give read-only arrays that take no memory, because
    their values will come from a file.
    """
    token = _SHAPES_ONLY.set(wanted)
    try:
        yield
    finally:
        _SHAPES_ONLY.reset(token)


def constant(value: float) -> Initializer:
    """An initialiser that sets every entry to `value`; it draws nothing."""

    def full(rng: Any, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
        return (
            np.broadcast_to(np.full((), value, dtype), shape)
            if _SHAPES_ONLY.get()
            else np.full(shape, value, dtype)
        )

    return full


zeros = constant(0)


def truncated_normal(rng: Generator, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """Normal, redrawn beyond two standard deviations, and scaled.

    Forward
        [F1]  W = z / sqrt(I)    I the fan-in, z standard normal on the condition |z| <= 2

    Source
        [F1]  the initial values of the 2016 code of Abadi et al. (tensorflow/models,
              differential_privacy)
    """
    values = rng.standard_normal(shape)
    outside = np.abs(values) > TRUNCATION
    while outside.any():
        values[outside] = rng.standard_normal(int(outside.sum()))
        outside = np.abs(values) > TRUNCATION
    return (values / math.sqrt(math.prod(shape[:-1]))).astype(dtype)  # [F1]


def he_normal(rng: Generator, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """Normal with standard deviation sqrt(2 / fan-in), for ReLU (He et al. 2015)."""
    return (rng.standard_normal(shape) * math.sqrt(2 / math.prod(shape[:-1]))).astype(dtype)
