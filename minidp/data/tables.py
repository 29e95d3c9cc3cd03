"""Tables of any library: their columns as arrays, and as numbers. No message shows a value of a
row.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DtypeError, ParameterError, ShapeError
from ..util.text import listed

GAPS = ("", "?", "NA", "N/A", "nan", "NaN", "null")  # texts that say that a value is missing
MISSING = ("None", "nan", "NaT", "<NA>")  # how objects print that say that a value is missing
TRUTH = {"true": "1", "false": "0"}


def table_of(x: Any) -> dict[str, NDArray] | None:
    """{name: cells (N,)} of a data frame of any library, or of a dict of columns; None of other
    data.

    Raises ParameterError for two columns of one name, ShapeError unless all have one length.
    """
    if not (isinstance(x, Mapping) or hasattr(x, "columns")):
        return None
    names = list(getattr(x, "columns", x))
    if len(set(map(str, names))) < len(names):
        raise ParameterError(f"expected columns of different names, got {listed(names)}")
    found = {str(name): _cells(x[name]) for name in names}
    if len({cells.shape for cells in found.values()}) > 1:
        raise ShapeError("expected columns of one length, with one value per row")
    return found


def _cells(column):
    if hasattr(column, "to_numpy"):
        return column.to_numpy()
    # a list keeps what it mixes
    return np.asarray(column, dtype=None if hasattr(column, "dtype") else object)


def picked(table: dict[str, NDArray], names: Iterable[str], why: str = "") -> list[NDArray]:
    """The cells of these columns. Raises ParameterError for columns that the table lacks, with what
    `why` says of them.
    """
    missing = [name for name in names if name not in table]
    if missing:
        raise ParameterError(
            f"the table lacks the columns {listed(missing)}{why}; it has {listed(list(table))}; "
            "rename or add them"
        )
    return [table[name] for name in names]


def numbers_of(x: Any, names: Iterable[str] | None = None) -> Any:
    """(N, D) numbers of these columns of a table, default all, NaN of a gap; x itself if it is no
    table. Raises ParameterError for columns that the table lacks, DtypeError, with all of them, for
    columns that hold no numbers.
    """
    table = table_of(x)
    if table is None:
        return x
    names = list(table) if names is None else list(names)
    found, others = [], []
    for name, cells in zip(names, picked(table, names)):
        try:
            found.append(_numbers(cells))
        except (TypeError, ValueError):
            others.append(name)
    if others:
        raise DtypeError(f"the columns {listed(others)} hold no numbers")
    if not found:
        raise ParameterError("expected a table with a column of inputs, got none")
    return np.stack(found, axis=1)


def _numbers(cells):
    if cells.dtype.kind in "biuf":
        return cells
    if cells.dtype.kind not in "OUT":
        raise TypeError
    cells = cells.tolist()
    known = {cell: number_in(cell) for cell in set(cells)}
    return np.array([known[cell] for cell in cells])


def text_in(cell: Any) -> str:
    """A cell as the text that a .csv file would hold, spaces around it cut; "" of an object that
    says that the value is missing.
    """
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = str(cell).strip()
    return "" if text in MISSING and not isinstance(cell, str) else text


def number_in(cell: Any) -> float:
    """A cell as a float, also of true and false; NaN of a gap. Raises ValueError for others."""
    text = text_in(cell)
    if "_" in text:  # Python reads 1_000
        raise ValueError("no number")
    return float(TRUTH.get(text.lower(), text)) if text else math.nan
