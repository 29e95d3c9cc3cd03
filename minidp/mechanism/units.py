"""What a release before training protects, row by row or person by person."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import namespace_of
from ..util.validate import count

MOST_PERSONS = 2**25  # float64 sums of their shares, in multiples of 2^-28, are exact


def units(x: Any, persons: Any, most: int) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield (rows (B T, ...), share (B, T)) of all units, in blocks of about `most` rows.

    persons: `data.Persons`: a unit is a person, with T places for her rows; a place whose share is
    0 is empty. None: a unit is a row of x, T = 1.
    """
    if persons is None:
        for start in range(0, x.shape[0], most):
            rows = x[start : start + most]
            yield rows, np.ones((rows.shape[0], 1))
        return
    count(0, MOST_PERSONS, persons=len(persons))
    step = max(1, most // persons.rows_per_person)
    for start in range(0, len(persons), step):
        rows, share = persons.slots(np.arange(start, min(start + step, len(persons))))
        yield x.take(namespace_of(x).asarray(rows.ravel()), axis=0), share
