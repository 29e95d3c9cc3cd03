"""A public schema of a table: the content of each column, and how rows are encoded as numbers.

{"age": {"type": "number", "low": 0, "high": 99},
 "job": {"type": "category", "values": ["clerk", "nurse"]},
 "since": {"type": "date", "low": "2000-01-01", "high": "2026-12-31", "format": "31.12.2015"},
 "id": {"type": "ignore"},
 "sick": {"type": "category", "values": ["no", "yes"], "role": "label"}}

No message shows a value of a row.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, ParameterError
from ..util.files import jsonable, unique_fields
from ..util.text import listed
from .arrays import one_axis
from .cells import GAPS, day_in, number_or_nan, places_among, text_in
from .tables import picked, table_of

# of an entry, with the values that each may have
ALLOWED = {
    "type": ("number", "category", "date", "ignore"),
    "role": ("input", "label"),
    "from": ("public", "data"),
}
FREE = ("low", "high", "values", "format", "gaps")
READERS = {"number": number_or_nan, "date": day_in}
WRITTEN = {"number": (1234.5, '"1.234,5"'), "date": (16800.0, '"31.12.2015"')}
EXAMPLES = {"number": "1234.5", "date": "2015-12-31"}  # without "format"
WIDE = 2.0**20  # between bounds
FEWEST, FIRST = 10, 4096  # values and rows that are tried to see whether a column fits


@dataclass(frozen=True)
class Column:
    """One column of a schema.

    type       "number", "category", "date" or "ignore"
    low, high  public bounds of a number, or of a date in days; values beyond them are clamped.
               Infinite if an entry has neither; training then looks privately where the values lie
    values     the categories; any other value is *other*
    gaps       True: a gap has its own indicator, or is *other*, whether there are gaps or not.
               False: a row with a gap, or with an unlisted category, is refused
    gap_texts  texts for a missing value, in addition to `cells.GAPS`
    label      True if this column is to be predicted
    format     how the table writes the number 1234.5, or the date 31 December 2015; None: so, or
               2015-12-31
    from_data  True if the type and the categories were read from the data
    entry      JSON of this column in the schema
    """

    name: str
    type: str
    low: float
    high: float
    values: tuple[Any, ...]
    gaps: bool
    gap_texts: tuple[str, ...]
    label: bool
    from_data: bool
    format: str | None
    entry: dict[str, Any] = field(compare=False)

    @property
    def width(self) -> int:
        """Number of numbers in an encoded row that come from this column."""
        if self.type == "ignore" or self.label:
            return 0
        return self.gaps + (len(self.values) if self.type == "category" else 1)

    @property
    def open(self) -> bool:
        """True if the bounds of a number are unknown."""
        return math.isinf(self.low)

    @property
    def wide(self) -> bool:
        """Whether a number's bounds are so far apart that float32 may not tell its values apart."""
        return self.type != "category" and WIDE < self.high - self.low < math.inf

    def encoded(self, cells: NDArray) -> NDArray:
        """(N, width) float32, or float64 of a number without bounds or with wide ones. NaN where a
        value is refused: text that is no number or date, and with gaps=False a gap or an unknown
        category.
        """
        if self.type == "category":
            places = self._places(cells)
            parts = np.eye(self.width + 1, dtype=np.float32)[places, : self.width]
            if not self.gaps:
                parts[places == self.width] = np.nan
            return parts
        numbers, gaps = self.numbers(cells)
        scaled = numbers
        if not self.open:
            within = np.clip(numbers, self.low, self.high)
            scaled = 2 * (within - self.low) / (self.high - self.low) - 1
        parts = np.stack([np.where(gaps, 0, scaled), gaps] if self.gaps else [scaled], axis=1)
        return parts if self.open or self.wide else parts.astype(np.float32)

    def numbers(self, cells: NDArray) -> tuple[NDArray, NDArray]:
        """(numbers (N,), NaN for a gap and for other texts; gaps (N,) bool)."""
        if cells.dtype.kind in "biuf" and self.type == "number":
            numbers = cells.astype(np.float64)
            return self._with_gaps(numbers, np.isnan(numbers))
        read, cells = cache(READERS[self.type]), cells.tolist()
        texts = list(map(text_in, cells))
        found = [
            read(text, self.format if isinstance(cell, str) else None)
            for text, cell in zip(texts, cells)
        ]
        return self._with_gaps(np.array(found), np.isin(texts, (*GAPS, *self.gap_texts)))

    def _with_gaps(self, numbers, gaps):
        """The same; if the schema lists 99 or 99.0 as a gap, both are gaps."""
        if self.type == "number":
            gaps |= np.isin(numbers, list(map(number_or_nan, self.gap_texts)))
        return np.where(gaps, np.nan, numbers), gaps

    def labels(self, cells: Any) -> NDArray:
        """Labels (N,) as the schema writes them, None for other values; or numbers of a
        regression.
        """
        cells = one_axis(cells)
        if self.type == "number":
            return self.numbers(cells)[0]
        values = np.empty(len(self.values) + 1, dtype=object)
        values[:-1] = self.values
        return values[self._places(cells)]

    def _places(self, cells):
        """The number of each cell in `values`; len(values) for other values and gaps."""
        return places_among(self.values, cells.tolist())

    def misfits(self, cells: NDArray) -> tuple[int, int]:
        """(number of cells that are not gaps, number of those that are no category, beyond the
        bounds, or unreadable).
        """
        if self.type == "category":
            gaps = np.isin(list(map(text_in, cells.tolist())), (*GAPS, *self.gap_texts))
            wrong = self._places(cells) == len(self.values)
            gaps &= wrong  # a category may be called NA
        else:
            numbers, gaps = self.numbers(cells)
            wrong = ~((numbers >= self.low) & (numbers <= self.high))
        return int((~gaps).sum()), int((wrong & ~gaps).sum())


@dataclass(frozen=True)
class Schema:
    """The content of a table's columns: public knowledge, written down without looking at the rows.

    An encoded row has one part per column. A number has a value in [-1, 1] (unscaled if it has no
    bounds) and an indicator of gaps; for a gap the value is 0. A category is one-hot, with *other*.
    So every part with bounds has a norm of at most 1, and that of a category is exactly 1.

    >>> schema = Schema.of({"age": {"type": "number", "low": 0, "high": 100},
    ...                     "job": {"type": "category", "values": ["clerk", "nurse"]}})
    >>> schema.encode({"age": [25, None], "job": ["nurse", "pilot"]}).tolist()
    [[-0.5, 0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, source: Any) -> "Schema":
        """The schema from a dict or the path of a JSON file; a Schema is returned unchanged. Raises
        ParameterError, or DataError for a file without a schema.
        """
        if isinstance(source, cls):
            return source
        try:
            if not isinstance(source, Mapping):
                source = json.loads(
                    Path(source).read_text(encoding="utf-8"), object_pairs_hook=unique_fields
                )
            source = jsonable(source, "schema")
        except FileNotFoundError:
            raise DataError(f"schema: {source}: no such file") from None
        except json.JSONDecodeError as error:
            raise DataError(
                f"schema: {source}, line {error.lineno}: not JSON ({error.msg}); no comma "
                "follows the last entry, and there are no comments"
            ) from None
        except (TypeError, ValueError, OSError, RecursionError) as error:
            raise DataError(
                f"schema: expected a dict, or the path of a JSON file, got {source!r:.80} ({error})"
            ) from None
        if not isinstance(source, Mapping) or not source:
            raise ParameterError('schema: expected {"column": {"type": ...}, ...}')
        for name, entry in source.items():
            _check_keys(name, entry)
        if unfilled := [name for name, entry in source.items() if _unfilled(entry)]:
            raise ParameterError(
                f"schema: fill in what is null of the columns {listed(unfilled)} from public "
                "knowledge, such as what a number of this kind can be; not from the rows"
            )
        columns = tuple(_column(name, entry) for name, entry in source.items())
        if sum(each.label for each in columns) > 1:
            raise ParameterError('schema: expected at most one column with "role": "label"')
        if not any(each.width for each in columns):
            raise ParameterError("schema: every column is ignored or a label; none is an input")
        return cls(columns)

    @property
    def inputs(self) -> list[Column]:
        """The columns that are encoded, in order."""
        return [each for each in self.columns if each.width]

    @property
    def label(self) -> Column | None:
        """The column to predict, if the schema names it."""
        return next((each for each in self.columns if each.label), None)

    @property
    def from_data(self) -> list[str]:
        """The columns whose entries were read from the data."""
        return [each.name for each in self.columns if each.from_data]

    def check_names(self, table: dict[str, NDArray]) -> None:
        """Raise ParameterError unless the schema names every column of the table."""
        known = {each.name for each in self.columns}
        unknown = [name for name in table if name not in known]
        if unknown:
            raise ParameterError(
                f"schema: the table has columns that the schema does not name: {listed(unknown)}; "
                'describe each in the schema, leave it out there by {"type": "ignore"}, or drop it'
            )

    def encode(self, x: Any) -> NDArray:
        """(N, width) numbers of a table's rows. Only the inputs are needed, in any order.

        Raises ParameterError for an object that is not a table, or lacks a column.
        """
        table = table_of(x)
        if table is None:
            raise ParameterError(
                "schema: expected a table with named columns, such as a data frame or a dict of "
                f"columns, got {type(x).__name__}"
            )
        names = [each.name for each in self.inputs]
        cells = picked(table, names, ", which the schema names as inputs")
        return np.concatenate([each.encoded(c) for each, c in zip(self.inputs, cells)], axis=1)

    def read(self, x: Any, y: Any) -> tuple[NDArray, Any]:
        """(encoded rows, labels or targets) of training rows; if y is None, the label's column of
        x. Raises ParameterError if there is none.
        """
        label = self.label
        if y is None:
            table = table_of(x) or {}
            if label is None or label.name not in table:
                raise ParameterError(
                    "expected y, or a table with the column that the schema marks by "
                    '"role": "label"'
                )
            y = table[label.name]
        return self.encode(x), y if label is None else label.labels(y)

    def refused(self, rows: NDArray) -> list[str]:
        """The columns in which encoded rows (N, width) have a refused value."""
        ends = np.cumsum([each.width for each in self.inputs])[:-1]
        parts = np.split(np.isnan(rows), ends, axis=1)
        return [each.name for each, part in zip(self.inputs, parts) if part.any()]

    def fell_out(self, table: dict[str, NDArray], share: float = 0.5) -> list[str]:
        """A line for each column in which more than this share of the first rows does not fit."""
        found = []
        for each in self.columns:
            if each.type == "ignore" or each.name not in table:
                continue
            known, wrong = each.misfits(one_axis(table[each.name][:FIRST], each.name))
            if known >= FEWEST and wrong > share * known:
                which = "hold none of its categories"
                if each.type != "category":
                    example = each.format or EXAMPLES[each.type]
                    which = (
                        f'are beyond its bounds, or no {each.type} like {example} ("format" says '
                        "how the table writes it)"
                    )
                found.append(f"column {each.name}: {wrong} of its first {known} values {which}")
        return found

    def to_json(self) -> dict[str, Any]:
        """The schema as JSON values, which `of` reads."""
        return {each.name: each.entry for each in self.columns}


def _check_keys(name, entry):
    """Raise ParameterError unless an entry is a dictionary of known keys."""
    where = f"schema: column {name}"
    if not isinstance(entry, Mapping):
        raise ParameterError(f'{where}: expected {{"type": ...}}')
    if unknown := [key for key in entry if key not in (*ALLOWED, *FREE)]:
        raise ParameterError(
            f"{where}: unknown {listed(unknown)}; known are {listed([*ALLOWED, *FREE])}"
        )


def _unfilled(entry):
    """True if an entry has something to fill in, as in a draft."""
    one_end = ("low" in entry) != ("high" in entry)
    return entry.get("type") in READERS and one_end or None in entry.values()


def _column(name, entry):
    """The Column of a JSON entry. Raises ParameterError."""
    where = f"schema: column {name}"
    found = {"type": None, "role": "input", "from": "public"} | entry
    for key, allowed in ALLOWED.items():
        if found[key] not in allowed:
            raise ParameterError(f'{where}: expected "{key}" to be one of {listed(allowed)}')
    kind, label = found["type"], found["role"] == "label"
    if label and kind not in ("number", "category"):
        raise ParameterError(f'{where}: expected "role": "label" of a number or a category')
    low, high, values = 0.0, 0.0, ()
    if kind == "category":
        values = _values(where, entry.get("values"))
    elif kind != "ignore":
        low, high = _bounds(where, kind, entry)
    of_data, written = found["from"] == "data", _written(where, kind, entry.get("format"))
    gaps = _gaps(where, entry.get("gaps", True))
    return Column(name, kind, low, high, values, *gaps, label, of_data, written, entry)


def _gaps(where, given):
    """(True if there may be gaps, further texts for a gap). Raises ParameterError."""
    if isinstance(given, bool):
        return given, ()
    if isinstance(given, list) and given and all(isinstance(each, str) for each in given):
        return True, tuple(map(str.strip, given))
    raise ParameterError(
        f'{where}: expected "gaps" to be true, false, or a list of texts that say that a value is '
        "missing"
    )


def _written(where, kind, written):
    """The format of an entry. Raises ParameterError."""
    if written is None:
        return None
    if kind not in READERS:
        raise ParameterError(f'{where}: expected "format" of a number or a date')
    number, example = WRITTEN[kind]
    if not isinstance(written, str) or READERS[kind](written, written) != number:
        what = "1234.5" if kind == "number" else "31 December 2015"
        raise ParameterError(
            f'{where}: expected "format" to be {what} as the table writes it, such as {example}'
        )
    return written


def _bounds(where, kind, entry):
    if not {"low", "high"}.intersection(entry):
        return -math.inf, math.inf
    given = [entry.get("low"), entry.get("high")]
    if kind == "date":
        low, high = (day_in(str(each)) for each in given)
        example = '"2000-01-01", however the table writes its dates'
    else:
        low, high = (
            number_or_nan(text_in(each)) if type(each) in (int, float) else math.nan
            for each in given
        )
        example = "0, without quotation marks"
    if not (low < high and math.isfinite(high - low)):
        raise ParameterError(f'{where}: expected "low" < "high", each like {example}')
    return low, high


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
