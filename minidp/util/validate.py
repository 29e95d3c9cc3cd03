"""Checks of configuration and shapes, each raising an error that names the parameter.

Numbers are passed as keywords, so that the message carries the caller's own name for them:
`probability(sampling_probability=1.2)` raises `expected sampling_probability=1.2 in [0, 1]`.
"""

import math
from collections.abc import Collection, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..errors import DtypeError, ParameterError, ShapeError

MOST_COUNT = 2**40  # counts are of things in memory, or of steps that run one after another
MOST_128_BITS = 2**128 - 1  # the largest seed; counts of releases too, which the accountants judge


def _number(name, value):
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        raise ParameterError(f"expected {name}={shown(value)} to be a number")
    try:
        float(value)
    except OverflowError:
        raise ParameterError(
            f"expected {name}={shown(value)} to be a number that float64 can hold"
        ) from None


def shown(value: object) -> str:
    """repr of a value in one short line; for a very long integer, its approximate number of
    digits.
    """
    if isinstance(value, Integral) and abs(int(value)) > MOST_128_BITS:
        return f"(an integer of about {round(math.log10(abs(int(value))))} digits)"
    return " ".join(repr(value).split())[:200]


def in_range(
    low: float, high: float, *, open_low: bool = False, open_high: bool = False, **named: Any
) -> None:
    """Check that each named number lies between low and high; `open_low` and `open_high` exclude
    the ends.
    """
    for name, value in named.items():
        _number(name, value)
        too_low = value <= low if open_low else value < low
        too_high = value >= high if open_high else value > high
        if too_low or too_high:
            left, right = "(" if open_low else "[", ")" if open_high else "]"
            wanted = f"in {left}{low}, {high}{right}"
            if too_low and high == math.inf:
                wanted = f"to be {'above' if open_low else 'at least'} {low}"
            raise ParameterError(f"expected {name}={value!r} {wanted}")


probability = partial(in_range, 0, 1)
open_probability = partial(in_range, 0, 1, open_low=True, open_high=True)
positive = partial(in_range, 0, math.inf, open_low=True)
positive_finite = partial(in_range, 0, math.inf, open_low=True, open_high=True)
non_negative = partial(in_range, 0, math.inf)
non_negative_finite = partial(in_range, 0, math.inf, open_high=True)


def count(minimum: int = 0, maximum: int = MOST_COUNT, **named: Any) -> None:
    """Check that each named value is an integer from `minimum` to `maximum`."""
    for name, value in named.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < minimum:
            raise ParameterError(
                f"expected {name}={shown(value)} to be an integer of at least {minimum}"
            )
        if int(value) > maximum:
            raise ParameterError(
                f"expected {name}={shown(value)} to be an integer of at most {maximum}"
            )


seed_number = partial(count, 0, MOST_128_BITS)


def one_of(allowed: Collection[object], **named: Any) -> None:
    """Check that each named value is one of the allowed ones."""
    for name, value in named.items():
        # an array would compare element by element, so the types are compared first
        if not (isinstance(value, tuple({*map(type, allowed)})) and value in allowed):
            raise ParameterError(
                f"expected {name}={shown(value)} to be one of {', '.join(map(str, allowed))}"
            )


def flag(**named: Any) -> None:
    """Check that each named value is True or False."""
    for name, value in named.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ParameterError(f"expected {name}={shown(value)} to be True or False")


def instance(kind: type, **named: Any) -> None:
    """Check that each named value is of a class."""
    for name, value in named.items():
        if not isinstance(value, kind):
            raise ParameterError(f"expected {name} to be a {kind.__name__}, got {shown(value)}")


def able(like: str, method: str, **named: Any) -> None:
    """Check that each named value is an object (not a class) with this method. like: example for
    the message.
    """
    for name, value in named.items():
        if isinstance(value, type) or not callable(getattr(value, method, None)):
            raise ParameterError(f"expected {name} to be one like {like}, got {shown(value)}")


def shape(where: str, name: str, array: Any, expected: Sequence[int | str]) -> None:
    """Check an array's shape; a string in `expected` is a free axis, printed as its letter."""
    actual = tuple(array.shape)
    if not shape_fits(actual, expected):
        raise ShapeError(f"{where}: expected {name} of shape {shape_text(expected)}, got {actual}")


def shape_fits(actual: Sequence[int], expected: Sequence[int | str]) -> bool:
    """True if the sizes are the expected ones; a string allows any size."""
    if len(actual) != len(expected):
        return False
    return all(isinstance(want, str) or want == have for want, have in zip(expected, actual))


def shape_text(expected: Sequence[int | str]) -> str:
    """The shape as messages print it: (B, 10), or (B,)."""
    return f"({', '.join(map(str, expected))}{',' if len(expected) == 1 else ''})"


def same_batch(where: str, **arrays: Any) -> None:
    """Check that all arrays have the same number of examples on their first axis."""
    sizes = {name: array.shape[0] if array.ndim else None for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ShapeError(f"{where}: expected the same number of examples, got: {listed}")


def inexact(where: str, **arrays: Any) -> None:
    """Check that all arrays are float32 or float64 (complex too, for the gradient checks)."""
    for name, array in arrays.items():
        # sums of float16 overflow at 65,504
        if array.dtype.kind not in "fc" or array.dtype == "float16":
            numbers = (
                "; ids are for a network that begins with nn.Embedding"
                if array.dtype.name in ("int32", "int64")
                else ""
            )
            raise DtypeError(
                f"{where}: expected {name} of dtype float32 or float64, got {array.dtype}; "
                f"convert it with .astype(numpy.float32){numbers}"
            )
