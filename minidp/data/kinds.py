"""The kinds of columns of a table: a class for each, with all that depends on the kind. A new kind
is a class here, and its place in KINDS. No message shows a value of a row.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..util.text import listed
from .arrays import one_axis
from .cells import GAPS, day_in, number_or_nan, places_among, text_in

WIDE = 2.0**20  # between bounds


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a schema: of numbers, which are clamped to public bounds and scaled to [-1, 1].
    Columns of other kinds say what is different.

    low, high  bounds of a number, or of a date in days; infinite if an entry has neither: then
               training looks, privately, where the numbers lie
    values     the categories; every other value is *other*
    format     how the table writes the number 1234.5, or the date 31 December 2015; None: so, or
               2015-12-31
    gaps       True: a gap has an indicator of its own, or is *other*, whether there are gaps or
               not. False: a row with a gap, or with a category that is not listed, is refused
    gap_texts  what else than `cells.GAPS` says that there is none
    label      whether this column is to be predicted
    from_data  whether somebody read the type and the categories from the data
    entry      this column in a schema's JSON

    Of a kind

    type       what an entry calls it
    keys       what else an entry may say of it: `given` reads that
    predicted  whether it may be a label
    look       whether it is one number, whose range a private look may find
    unit       of its values in `terms`, where they are days; None: numbers
    formats    in which a draft of a schema tries to `read` its texts; none: it drafts no such
               column
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    values: tuple[Any, ...] = ()
    format: str | None = None
    gaps: bool
    gap_texts: tuple[str, ...]
    label: bool
    from_data: bool
    entry: dict[str, Any] = field(compare=False)

    type = "number"
    keys: ClassVar[Any] = ("low", "high", "format")
    predicted = look = True
    formats: ClassVar[Any] = (None, "1234,5", "1,234.5", "1.234,5", "1 234.5", "1 234,5", "1'234.5")
    read = staticmethod(number_or_nan)
    usual = "1234.5"
    written = 1234.5, usual, '"1.234,5"'  # a value, in words, and as a table may write it
    ends: ClassVar[Any] = (int, float)  # types of bounds
    bound = "0, without quotation marks"
    unit: ClassVar[Any] = None

    @classmethod
    def given(cls, where: str, entry: Any) -> dict[str, Any]:
        """Fields that an entry gives by `keys`. Raises ParameterError, which names `where`."""
        form, low, high = entry.get("format"), -math.inf, math.inf
        number, what, example = cls.written
        if form is not None and not (isinstance(form, str) and cls.read(form, form) == number):
            raise ParameterError(
                f'{where}: expected "format" to be {what} as the table writes it, such as {example}'
            )
        if "low" in entry or "high" in entry:
            written = entry.get("low"), entry.get("high")
            low, high = (
                cls.read(text_in(each)) if type(each) in cls.ends else math.nan for each in written
            )
            if not (low < high and math.isfinite(high - low)):
                raise ParameterError(f'{where}: expected "low" < "high", each like {cls.bound}')
        return {"low": low, "high": high, "format": form}

    @property
    def width(self) -> int:
        """How many numbers of an encoded row come from this column, with the indicator of gaps."""
        return 0 if self.label else 1 + self.gaps

    @property
    def open(self) -> bool:
        """Whether a number's bounds are not known."""
        return math.isinf(self.low)

    @property
    def wide(self) -> bool:
        """Whether a number's bounds are so far apart that float32 may not tell its values apart."""
        return WIDE < self.high - self.low < math.inf

    def encode(self, cells: NDArray) -> NDArray:
        """(N, width) float32, or float64 of a number without bounds or with wide ones. NaN where a
        value is refused: text that is no number or date, and with gaps=False a gap or an unknown
        category.
        """
        numbers, gaps = self.numbers(cells)
        if not self.open:
            within = np.clip(numbers, self.low, self.high)
            numbers = 2 * (within - self.low) / (self.high - self.low) - 1
        parts = np.stack([np.where(gaps, 0, numbers), gaps] if self.gaps else [numbers], axis=1)
        return parts if self.open or self.wide else parts.astype(np.float32)

    def numbers(self, cells: NDArray) -> tuple[NDArray, NDArray]:
        """(numbers (N,), NaN for a gap and for what is none; where the gaps are (N,))."""
        if cells.dtype.kind in "biuf" and self.read is number_or_nan:
            numbers = cells.astype(np.float64)
            gaps = np.isnan(numbers)
        else:
            texts, read = list(map(text_in, cells.tolist())), cache(self.read)
            formats = [self.format if isinstance(cell, str) else None for cell in cells.tolist()]
            numbers = np.array(list(map(read, texts, formats)))
            gaps = self._gaps(texts)
        # 99 and 99.0 are gaps if the schema lists one of them
        gaps |= np.isin(numbers, list(map(self.read, self.gap_texts)))
        return np.where(gaps, np.nan, numbers), gaps

    def _gaps(self, texts):
        return np.isin(texts, (*GAPS, *self.gap_texts))

    def labels(self, cells: Any) -> NDArray:
        """Labels (N,) as the schema writes them, None for others; or numbers of a regression."""
        return self.numbers(one_axis(cells))[0]

    def misfits(self, cells: NDArray) -> tuple[NDArray, NDArray, str]:
        """(where the gaps are (N,), where the values do not fit (N,), what these are)."""
        numbers, gaps = self.numbers(cells)
        wrong = ~((numbers >= self.low) & (numbers <= self.high))
        like = f"are beyond its bounds, or no {self.type} like {self.format or self.usual}"
        return gaps, wrong, f'{like} ("format" says how the table writes it)'


class Date(Column):
    """A date, as days since 1970."""

    type = "date"
    predicted = False
    formats = (
        None,
        *(f"31{mark}12{mark}{year}" for mark in "./-" for year in ("2015", "15")),
        *(f"12{mark}31{mark}{year}" for mark in "/-" for year in ("2015", "15")),
        *(f"31{mark}Dec{mark}{year}" for mark in ("-", " ", "") for year in ("2015", "15")),
        "2015/12/31",
    )
    read = staticmethod(day_in)
    usual = "2015-12-31"
    written = 16800.0, "31 December 2015", '"31.12.2015"'
    ends, unit, bound = (int, str), "M8[D]", '"2000-01-01", however the table writes its dates'


class Category(Column):
    """One of the values that the entry lists; every other value is *other*. It is one-hot."""

    type = "category"
    keys = ("values",)
    look, formats = False, ()

    @classmethod
    def given(cls, where, entry):
        return {"values": _values(where, entry.get("values"))}

    @property
    def width(self):
        return 0 if self.label else len(self.values) + self.gaps

    def encode(self, cells):
        places = places_among(self.values, cells.tolist())
        parts = np.eye(self.width + 1, dtype=np.float32)[places, : self.width]
        if not self.gaps:
            parts[places == self.width] = np.nan
        return parts

    def labels(self, cells):
        return np.array([*self.values, None], dtype=object)[
            places_among(self.values, one_axis(cells).tolist())
        ]

    def misfits(self, cells):
        wrong = places_among(self.values, cells.tolist()) == len(self.values)
        # a category may be called NA
        gaps = wrong & self._gaps(list(map(text_in, cells.tolist())))
        return gaps, wrong, "hold none of its categories"


class Ignored(Column):
    """A column that is not read."""

    type = "ignore"
    keys = formats = ()
    predicted, width = False, 0

    @classmethod
    def given(cls, where, entry):
        return {}


KINDS = {kind.type: kind for kind in (Column, Category, Date, Ignored)}


def _values(where, values):
    if not isinstance(values, list) or not values:
        raise ParameterError(f'{where}: expected "values": [...] with the categories')
    kinds = {isinstance(each, str) for each in values}
    if len(kinds) > 1 or not all(isinstance(each, (str, bool, int, float)) for each in values):
        raise ParameterError(
            f"{where}: expected texts, or numbers, of one kind as values, got {values!r:.200}"
        )
    rows = Counter(map(text_in, values))
    if twice := [text for text, count in rows.items() if count > 1]:
        raise ParameterError(
            f"{where}: expected different values, got {listed(twice)} more than once; spaces "
            "around a value do not count"
        )
    return tuple(each.strip() if isinstance(each, str) else each for each in values)
