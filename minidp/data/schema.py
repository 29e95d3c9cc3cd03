"""A public schema of a table: the content of each column, and how rows are encoded as numbers.

{"age": {"type": "number", "low": 0, "high": 99},
 "job": {"type": "category", "values": ["clerk", "nurse"]},
 "since": {"type": "date", "low": "2000-01-01", "high": "2026-12-31", "format": "31.12.2015"},
 "id": {"type": "ignore"},
 "sick": {"type": "category", "values": ["no", "yes"], "role": "label"}}

No message shows a value of a row.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, ParameterError
from ..util.files import jsonable, unique_fields
from ..util.text import listed
from .arrays import one_axis
from .kinds import KINDS, Column
from .tables import picked, table_of

# of an entry, with the values that each may have
ALLOWED = {
    "type": tuple(KINDS),
    "role": ("input", "label"),
    "from": ("public", "data"),
}
FREE = dict.fromkeys([*(key for kind in KINDS.values() for key in kind.keys), "gaps"])
FEWEST, FIRST = 10, 4096  # values and rows that are tried to see whether a column fits


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
        return np.concatenate([each.encode(c) for each, c in zip(self.inputs, cells)], axis=1)

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
            if not (each.width or each.label) or each.name not in table:
                continue
            gaps, wrong, which = each.misfits(one_axis(table[each.name][:FIRST], each.name))
            known, odd = (~gaps).sum(), (wrong & ~gaps).sum()
            if known >= FEWEST and odd > share * known:
                found.append(f"column {each.name}: {odd} of its first {known} values {which}")
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
    one_end = ("low" in entry) != ("high" in entry) and "values" not in entry
    return one_end or None in entry.values()


def _column(name, entry):
    """The Column of a JSON entry. Raises ParameterError."""
    where = f"schema: column {name}"
    found = {"type": None, "role": "input", "from": "public"} | entry
    for key, allowed in ALLOWED.items():
        if found[key] not in allowed:
            raise ParameterError(f'{where}: expected "{key}" to be one of {listed(allowed)}')
    kind, label = KINDS[found["type"]], found["role"] == "label"
    if label and not kind.predicted:
        raise ParameterError(f'{where}: expected "role": "label" of a number or a category')
    if entry.get("format") is not None and not kind.formats:
        raise ParameterError(f'{where}: expected "format" of a number or a date')
    gaps, texts = _gaps(where, entry.get("gaps", True))
    return kind(
        name=name,
        gaps=gaps,
        gap_texts=texts,
        label=label,
        from_data=found["from"] == "data",
        entry=entry,
        **kind.given(where, entry),
    )


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
