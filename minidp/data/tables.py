"""Tables as they come: a public schema names what each column holds, and encodes rows as numbers.

{"age": {"type": "number", "low": 0, "high": 99},
 "job": {"type": "category", "values": ["clerk", "nurse"]},
 "since": {"type": "date", "low": "2000-01-01", "high": "2026-12-31"},
 "id": {"type": "ignore"},
 "sick": {"type": "category", "values": ["no", "yes"], "role": "label"}}

No message shows a value of a row.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, ParameterError, ShapeError
from ..util.text import listed

TYPES = ("number", "category", "date", "ignore")
KEYS = {"type", "low", "high", "values", "gaps", "role", "from"}
GAPS = ("", "?", "NA", "N/A", "nan", "NaN", "null")  # texts that say that a value is missing
MISSING = ("None", "nan", "NaT", "<NA>")  # how objects that say so print
TRUTH = {"true": 1.0, "false": 0.0}
MOST_CATEGORIES = 64  # in a draft: a column of more texts is left out
FROM_DATA = "data"


@dataclass(frozen=True)
class Column:
    """One column of a schema.

    type       "number", "category", "date" or "ignore"
    low, high  public bounds of a number, or of a date in days; values beyond them are clamped
    values     the categories; every other value is *other*
    gaps       True: a gap has an indicator of its own, or is *other*, whether there are gaps or
               not. False: a row with a gap, or with a category that is not listed, is refused
    label      whether this column is to be predicted
    from_data  whether somebody read the type and the categories from the data
    """

    name: str
    type: str
    low: float = 0.0
    high: float = 0.0
    values: tuple[Any, ...] = ()
    gaps: bool = True
    label: bool = False
    from_data: bool = False

    @property
    def width(self) -> int:
        """How many numbers of an encoded row come from this column."""
        if self.type == "ignore" or self.label:
            return 0
        return self.gaps + (len(self.values) if self.type == "category" else 1)

    def encoded(self, cells: NDArray) -> NDArray:
        """(N, width) float32. NaN where a value is refused: text that is no number or date, and
        with gaps=False a gap or an unknown category.
        """
        if self.type == "category":
            places = self._places(cells)
            parts = np.eye(self.width + 1, dtype=np.float32)[places, : self.width]
            if not self.gaps:
                parts[places == self.width] = np.nan
            return parts
        numbers, gaps = self.numbers(cells)
        scaled = 2 * (np.clip(numbers, self.low, self.high) - self.low) / (self.high - self.low) - 1
        if not self.gaps:
            return scaled.astype(np.float32)[:, None]
        return np.stack([np.where(gaps, 0, scaled), gaps], axis=1).astype(np.float32)

    def numbers(self, cells: NDArray) -> tuple[NDArray, NDArray]:
        """(numbers (N,), NaN for a gap and for what is none; where the gaps are (N,))."""
        if cells.dtype.kind == "M":
            gaps = np.isnat(cells)
            days = cells.astype("datetime64[D]").astype(np.int64)
            return np.where(gaps, np.nan, days), gaps
        if cells.dtype.kind in "biuf" and self.type == "number":
            numbers = cells.astype(np.float64)
            return numbers, np.isnan(numbers)
        texts = list(map(_text, cells.tolist()))
        read = _day if self.type == "date" else _number
        return np.array([read(text) for text in texts]), np.array(
            [text in GAPS for text in texts], dtype=bool
        )

    def labels(self, cells: NDArray) -> NDArray:
        """Labels as the schema writes them, None for others; or numbers of a regression."""
        if self.type == "number":
            return self.numbers(cells)[0]
        values = np.empty(len(self.values) + 1, dtype=object)
        values[:-1] = self.values
        return values[self._places(cells)]

    def _places(self, cells):
        """The place of each cell in `values`; their number for others and gaps."""
        as_numbers = all(type(value) in (int, float) for value in self.values)
        key = _number_in if as_numbers else _text  # 1.0 is then 1
        known = {key(value): place for place, value in enumerate(self.values)}
        cells = cells.tolist()
        return np.array([known.get(key(cell), len(known)) for cell in cells], dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """The entry of this column in a schema's JSON."""
        found: dict[str, Any] = {"type": self.type}
        if self.type == "category":
            found["values"] = list(self.values)
        elif self.type != "ignore":
            bounds = (self.low, self.high)
            as_date = self.type == "date"
            found["low"], found["high"] = (_iso(each) if as_date else each for each in bounds)
        if not self.gaps:
            found["gaps"] = False
        if self.label:
            found["role"] = "label"
        if self.from_data:
            found["from"] = FROM_DATA
        return found


@dataclass(frozen=True)
class Schema:
    """What the columns of a table hold: public knowledge, written down without looking at the rows.

    An encoded row has one part per column. A number has a value in [-1, 1] and an indicator of
    gaps, beside which the value is 0; a category is one-hot, *other* included. So every part has a
    norm of at most 1, and a category's is exactly 1.

    >>> schema = Schema.of({"age": {"type": "number", "low": 0, "high": 100},
    ...                     "job": {"type": "category", "values": ["clerk", "nurse"]}})
    >>> schema.encode({"age": [25, None], "job": ["nurse", "pilot"]}).tolist()
    [[-0.5, 0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, source: Any) -> "Schema":
        """The schema of a dict, of the path of a JSON file, or itself. Raises ParameterError, or
        DataError for a file that holds none.
        """
        if isinstance(source, cls):
            return source
        if not isinstance(source, Mapping):
            try:
                source = json.loads(Path(source).read_text(encoding="utf-8"))
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"schema: expected a dict, or the path of a JSON file, got {source!r:.80} "
                    f"({error})"
                ) from None
        if not isinstance(source, Mapping) or not source:
            raise ParameterError('schema: expected {"column": {"type": ...}, ...}')
        columns = tuple(_column(str(name), entry) for name, entry in source.items())
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
    def disclosed(self) -> list[str]:
        """Lines for the statement on what somebody read from the data."""
        names = [each.name for each in self.columns if each.from_data]
        if not names:
            return []
        return [f"the types, and the categories if there are any, of the columns {listed(names)}"]

    def check_names(self, table: Any, label: str | None = None) -> None:
        """Raise ParameterError unless the schema names every column of the table except `label`."""
        known = {each.name for each in self.columns} | {label}
        unknown = [name for name in names_of(table) if name not in known]
        if unknown:
            raise ParameterError(
                f"schema: the table has columns that the schema does not name: {listed(unknown)}; "
                'describe each in the schema, leave it out there by {"type": "ignore"}, or drop it'
            )

    def encode(self, table: Any) -> NDArray:
        """(N, width) float32 of a table's rows; only the inputs need to be there, in any order.

        Raises ParameterError for what is no table, or lacks a column.
        """
        names = names_of(table)
        missing = [each.name for each in self.inputs if each.name not in names]
        if missing:
            raise ParameterError(
                f"schema: the table lacks the columns {listed(missing)}; it has "
                f"{listed(list(names))}; rename or add them, or take them out of the schema before "
                "training"
            )
        parts = [each.encoded(cells_of(table, names[each.name])) for each in self.inputs]
        if len({len(part) for part in parts}) > 1:
            raise ShapeError("schema: expected columns of one length")
        return np.concatenate(parts, axis=1)

    def to_json(self) -> dict[str, Any]:
        """The schema as values of JSON, which `of` reads."""
        return {each.name: each.to_json() for each in self.columns}


def names_of(table: Any) -> dict[str, Any]:
    """{name as text: what the table itself calls that column}. Raises ParameterError for what has
    no columns.
    """
    if not is_table(table):
        raise ParameterError(
            f"schema: expected a table with named columns, such as a data frame or a dict of "
            f"columns, got {type(table).__name__}"
        )
    return {str(name): name for name in getattr(table, "columns", table)}


def is_table(x: Any) -> bool:
    """True for a data frame of any library, and for a dict of columns."""
    return isinstance(x, Mapping) or hasattr(x, "columns")


def cells_of(table: Any, name: Any) -> NDArray:
    """A column's cells as an array (N,)."""
    cells = table[name]
    if hasattr(cells, "to_numpy"):
        found = cells.to_numpy()
    else:  # a list keeps what it mixes
        found = np.asarray(cells, dtype=None if hasattr(cells, "dtype") else object)
    if found.ndim != 1:
        raise ShapeError(f"schema: column {name}: expected one value per row, got {found.shape}")
    return found


def draft(table: Any, label: str | None = None) -> dict[str, Any]:
    """A schema's JSON with types and categories read from the rows, which it says; bounds are null,
    for you to fill in from public knowledge.
    """
    names = names_of(table)
    if label is not None and label not in names:
        raise ParameterError(f"--label {label}: the table has {listed(list(names))}")
    return {name: _drafted(cells_of(table, names[name]), name == label) for name in names}


def _drafted(cells, label):
    texts = sorted({_text(cell) for cell in cells.tolist()}.difference(GAPS))
    found: dict[str, Any] = {"type": "ignore"}
    few = len(texts) <= MOST_CATEGORIES
    if label and few and texts:
        found = {"type": "category", "values": texts}
    elif texts and not any(map(math.isnan, map(_number, texts))):
        found = {"type": "number", "low": None, "high": None}
    elif texts and not any(map(math.isnan, map(_day, texts))):
        found = {"type": "date", "low": None, "high": None}
    elif few and texts:
        found = {"type": "category", "values": texts}
    return found | ({"role": "label"} if label else {}) | {"from": FROM_DATA}


def _column(name, entry):
    """The Column of a JSON entry. Raises ParameterError."""
    where = f"schema: column {name}"
    if not isinstance(entry, Mapping) or entry.get("type") not in TYPES:
        raise ParameterError(f'{where}: expected {{"type": ...}} with one of {", ".join(TYPES)}')
    kind, gaps, role = entry["type"], entry.get("gaps", True), entry.get("role", "input")
    unknown = sorted(map(str, set(entry) - KEYS))
    if unknown:
        raise ParameterError(
            f"{where}: unknown {listed(unknown)}; known are {listed(sorted(KEYS))}"
        )
    if not isinstance(gaps, bool):
        raise ParameterError(f'{where}: expected "gaps" to be true or false')
    if role not in ("input", "label") or role == "label" and kind not in ("number", "category"):
        raise ParameterError(
            f'{where}: expected "role" to be "input", or "label" for a number or a category'
        )
    source = entry.get("from", "public")
    if source not in ("public", FROM_DATA):
        raise ParameterError(f'{where}: expected "from" to be "public" or "data"')
    more = dict(gaps=gaps, label=role == "label", from_data=source == FROM_DATA)
    if kind == "category":
        return Column(name, kind, values=_values(where, entry.get("values")), **more)
    if kind == "ignore":
        return Column(name, kind, **more)
    return Column(name, kind, *_bounds(where, kind, entry), **more)


def _bounds(where, kind, entry):
    given = [entry.get("low"), entry.get("high")]
    if None in given:
        raise ParameterError(
            f'{where}: fill in "low" and "high" from public knowledge, such as what a {kind} of '
            "this kind can be; not from the rows"
        )
    if kind == "date":
        low, high = (_day(str(each)) for each in given)
        example = '"2000-01-01"'
    else:
        allowed = [isinstance(each, Real) and not isinstance(each, bool) for each in given]
        low, high = (_number(each) if fine else math.nan for each, fine in zip(given, allowed))
        example = "0"
    if not (low < high and math.isfinite(high - low)):
        raise ParameterError(f'{where}: expected "low" < "high", each like {example}')
    return low, high


def _values(where, values):
    if not isinstance(values, (list, tuple)) or not values:
        raise ParameterError(f'{where}: expected "values": [...] with the categories')
    values = [each.item() if isinstance(each, np.generic) else each for each in values]
    kinds = {isinstance(each, str) for each in values}
    if len(kinds) > 1 or not all(isinstance(each, (str, bool, int, float)) for each in values):
        raise ParameterError(f"{where}: expected texts, or numbers, of one kind as values")
    if len({_text(each) for each in values}) < len(values):
        raise ParameterError(f"{where}: expected different values")
    return tuple(each.strip() if isinstance(each, str) else each for each in values)


def _text(cell):
    """A cell as the text that a .csv file would hold, spaces around it cut; "" of an object that
    says that the value is missing.
    """
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = str(cell).strip()
    return "" if text in MISSING and not isinstance(cell, str) else text


def _number_in(cell):
    return _number(_text(cell))


def _number(text):
    """A float, also of true and false; NaN of what is none."""
    try:
        if str(text).lower() in TRUTH:
            return TRUTH[text.lower()]
        return math.nan if "_" in str(text) else float(text)  # Python reads 1_000
    except (ValueError, OverflowError):
        return math.nan


def _day(text):
    """Days since 1970 of 2000-12-31, with or without a time after it; NaN of what is none."""
    try:
        return float(date.fromisoformat(text[:10]).toordinal() - date(1970, 1, 1).toordinal())
    except ValueError:
        return math.nan


def _iso(days):
    return date.fromordinal(int(days) + date(1970, 1, 1).toordinal()).isoformat()
