"""The units that the guarantee protects: each is one row, or several rows that count as one."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .arrays import namespace_of
from .errors import ParameterError, ShapeError
from .util.lazy import ring
from .util.validate import count

MOST_SHARED = 2**25  # float64 sums of their shares, in multiples of 2^-28, are exact


class Units:
    """Units of a data set: base of `Rows` and `data.Persons`, with all that the library needs from
    them.

    name            "row" or "person", in messages and files
    rows_per_unit   T, the places of a unit in a batch
    len             number of units
    """

    name: ClassVar[str]
    rows_per_unit: int

    def __len__(self) -> int:
        raise NotImplementedError

    def slots(self, lot: NDArray) -> tuple[NDArray, NDArray]:
        """(numbers of rows, their shares), (B, T) each, of the units with these numbers. Shares of
        a unit sum to 1; a place whose share is 0 is empty.
        """
        raise NotImplementedError

    def blocks(self, x: Any, most: int) -> Iterator[tuple[NDArray, NDArray]]:
        """Yield (rows of x (B T, ...), shares (B, T)) of all units, about `most` rows at a time."""
        if self.rows_per_unit > 1:
            count(0, MOST_SHARED, **{f"{self.name}s": len(self)})
        step = max(1, most // self.rows_per_unit)
        for start in range(0, len(self), step):
            rows, share = self.slots(np.arange(start, min(start + step, len(self))))
            yield x.take(namespace_of(x).asarray(rows.ravel()), axis=0), share


class Rows(Units):
    r"""Units of one row each; K copies of it are taken, as augmented views.

    size    N, the number of rows   views  K

    Shapes
        lot (B,)   rows (B, K) numbers of rows   share (B, K) float64

    Forward
        [F1]  share = 1 / K    for each of the K places of a row, which all hold its number

    Source
        [F1]  De et al. 2022, arXiv:2204.13650, "augmentation multiplicity"

    >>> Rows(4, views=2).slots(np.array([3, 0]))[0].tolist()
    [[3, 3], [0, 0]]
    """

    name = "row"

    def __init__(self, size: int, views: int = 1):
        self.size, self.rows_per_unit = size, views

    def __len__(self):
        return self.size

    def slots(self, lot: NDArray) -> tuple[NDArray, NDArray]:
        """(rows, share), (B, K) each."""
        rows = lot[:, None]
        if self.rows_per_unit > 1:
            rows = np.repeat(rows, self.rows_per_unit, axis=1)
        return rows, np.full(rows.shape, 1 / self.rows_per_unit)  # [F1]


def shared(x: NDArray, share: NDArray) -> NDArray:
    r"""Rows times their shares, exactly 0 where the share is 0, even if the row is not finite.

    Shapes
        x (R, ...)   share of R numbers, on the host or beside x   y (R, ...), of the dtype of x

    Forward
        [F1]  y_ri = share_r x_ri where share_r > 0, else 0    selected by the share, because 0
              times infinity is not 0

    Source
        own derivation
    """
    xp = namespace_of(x)
    share = xp.asarray(share, dtype=x.dtype).reshape((-1,) + (1,) * (x.ndim - 1))
    return xp.where(share > 0, x * share, x.dtype.type(0))  # [F1]


def units_of(person: Any, rows_per_person: int | None, rows: int, views: int = 1) -> Units:
    """The units of these rows: `Persons` if person and rows_per_person are given, otherwise `Rows`.

    person   (N,) name of each row's person, or the `Units` themselves, or None

    Raises ParameterError if only one of the two is given, or for persons with augmented views;
    ShapeError unless each row has a name.
    """
    if isinstance(person, Rows):
        person = None
    if (person is None) != (rows_per_person is None):
        raise ParameterError(
            "expected person= (whose row it is) and rows_per_person= (how many of theirs are used) "
            "together, or neither"
        )
    if person is None or rows_per_person is None:
        return Rows(rows, views)
    if views > 1:
        raise ParameterError(
            "expected persons without augmented views: augmentation_multiplicity=1"
        )
    found = person
    if not isinstance(person, Units):
        persons = ring("persons")
        if persons is None:
            raise ParameterError(
                "expected person to be Units: their names are read by the folder data of minidp, "
                "which was left out here"
            )
        found = persons.Persons(person, rows_per_person)
    if len(found.number) != rows or found.rows_per_unit != rows_per_person:
        raise ShapeError(
            f"person: expected the person of each of {rows} rows, got {len(found.number)}, of whom "
            f"{found.rows_per_unit} rows are used"
        )
    return found
