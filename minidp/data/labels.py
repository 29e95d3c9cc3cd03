"""Labels of a classification and targets of a regression, as training needs them.

No message shows a value of a row.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DtypeError, ParameterError
from ..util.validate import shown
from .arrays import known_values, one_axis

MOST_CLASSES = 10_000
FEW_CLASSES = 10  # up to so many different labels are classes, however few rows there are


def class_labels(y: Any, classes: ArrayLike | None = None) -> tuple[NDArray, NDArray]:
    """(labels 0..K-1 (N,) int64, -1 for a missing or unknown label; the K classes in order).

    classes: public list of classes; None for those in y, which discloses them. Without classes,
    raises ParameterError if y has very many labels, or floating-point numbers, which look like
    numbers to predict (at most ten whole ones are accepted). Raises DtypeError if y mixes texts and
    numbers.
    """
    y = one_axis(y)
    found, known = known_values(y, "y")
    labels = np.full(len(y), -1)
    missing = len(y) - len(found)
    gaps = f" ({missing} of {len(y)} rows have no label)" if missing else ""
    if classes is None:
        different = len(np.unique(found))
        floating = len(found) > 0 and found.dtype.kind == "f"
        if floating and different <= FEW_CLASSES and _whole(found):
            found, floating = found.astype(np.int64), False  # as pandas has gaps
        if floating or different > max(FEW_CLASSES, len(y) / 10):
            what = "holds more different labels than a tenth of the rows"
            if floating:
                what = "is continuous: it holds floating-point numbers"
            raise ParameterError(
                f"y {what}{gaps}. For regression give target_bounds=(low, high), which are public, "
                "or (-inf, inf) if nobody knows them; for class labels give classes=, the public "
                "list of them"
            )
        classes = found
    listed = np.asarray(one_axis(classes, "classes").tolist())
    if listed.dtype.name not in ("bool", "int64", "uint64", "float64") and listed.dtype.kind != "U":
        raise DtypeError(
            "expected classes to be texts, booleans or numbers that 64 bits hold, all of one kind, "
            f"got dtype {listed.dtype}"
        )
    names = np.unique(listed)
    if not 2 <= len(names) <= MOST_CLASSES:
        word = "class" if len(names) == 1 else "classes"
        raise ParameterError(
            f"expected from 2 to {MOST_CLASSES} classes, got {len(names)} {word}"
            f"{gaps}; name them by classes=, or give target_bounds=(low, high) for "
            "regression"
        )
    if len(found) and (names.dtype.kind == "U") != (found.dtype.kind == "U"):
        raise DtypeError(
            f"expected labels like the classes, got y of dtype {found.dtype} and classes of dtype "
            f"{names.dtype}"
        )
    place = np.minimum(np.searchsorted(names, found), len(names) - 1)
    labels[known] = np.where(names[place] == found, place, -1)
    return labels.astype(np.int64), names


def _whole(numbers):
    """True if all are whole numbers that are exact as floats."""
    return bool(((numbers == np.floor(numbers)) & (np.abs(numbers) < 2**53)).all())


def as_target_bounds(bounds: Any, unknown: bool = False) -> tuple[float, float]:
    """(low, high) as floats. Raises ParameterError unless low < high and both are finite; infinite
    ones are accepted if bounds may be unknown.
    """
    try:
        low, high = (math.nan, math.nan) if isinstance(bounds, str) else map(float, bounds)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not (low < high and (unknown or math.isfinite(high - low))):
        raise ParameterError(
            f"expected target_bounds={shown(bounds):.80} to be numbers (low, high) with low < high"
        )
    return low, high


def numbers_to_predict(y: Any) -> NDArray:
    """(N, 1) float64 targets of a regression, NaN for those that are not finite."""
    y = one_axis(y)
    try:
        y = y.astype(np.float64) if y.dtype.kind in "iubfO" else None
    except (TypeError, ValueError, OverflowError):
        y = None
    if y is None:
        raise DtypeError("y: expected numbers as targets of a regression")
    return np.where(np.isfinite(y), y, np.nan)[:, None]


def bounded_targets(y: Any, bounds: tuple[float, float]) -> NDArray:
    """(N, 1) float32 targets, clipped to the bounds (low, high) and mapped to [-1, 1]. Targets that
    are not finite become NaN.
    """
    low, high = bounds
    scaled = (np.clip(numbers_to_predict(y), low, high) - low) / (high - low)
    return (2 * scaled - 1).astype(np.float32)
