"""Tables of any library: their columns as arrays, and as numbers. No message shows a value of a
row.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DtypeError, ParameterError, ShapeError
from ..util.text import listed
from .cells import number_in
from .files import is_table, read_table


def table_of(x: Any) -> dict[str, NDArray] | None:
    """{name: cells (N,)} of a data frame or data set of any library, a dict of columns, a list of
    dicts (one per row), a structured array, or the path of a table's file; None for other data.

    Raises ParameterError if two columns have the same name, or for the path of another file;
    DataError for a file that cannot be read; ShapeError unless all columns have the same length.
    """
    if isinstance(x, (str, os.PathLike)):
        if not is_table(x):
            raise ParameterError(f"x: {str(x)!r:.80}: expected a table, such as a .csv file")
        x = read_table(x)
    x = _by_columns(x)
    if hasattr(x, "tocsr"):  # SciPy 1.13 has a sparse array that is a dict
        return None
    if not (isinstance(x, Mapping) or hasattr(x, "columns") or hasattr(x, "column_names")):
        return None
    # pyarrow calls the names so, and polars and pandas columns
    names = list(getattr(x, "column_names", getattr(x, "columns", x)))
    if len(set(map(str, names))) < len(names):
        raise ParameterError(f"expected columns of different names, got {listed(names)}")
    found = {str(name): _cells(x[name]) for name in names}
    if len({cells.shape for cells in found.values()}) > 1:
        raise ShapeError("expected columns of one length, with one value per row")
    return found


def _by_columns(x):
    """A list of dicts, or a structured array, as a dict of columns; a missing value is None."""
    if isinstance(x, (list, tuple)) and x and all(isinstance(row, Mapping) for row in x):
        names = dict.fromkeys(name for row in x for name in row)
        return {name: [row.get(name) for row in x] for name in names}
    if isinstance(x, np.ndarray) and x.dtype.names and x.ndim == 1:
        return {name: x[name] for name in x.dtype.names}
    return x


def _cells(column):
    if isinstance(column, Sequence):  # a list, or a column that gives one
        column = column[:]
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    # a list keeps what it mixes
    cells = np.asarray(column, dtype=None if hasattr(column, "dtype") else object)
    if cells.dtype.kind == "M":
        return cells.astype("datetime64[D]").astype(object)  # dates, None of a gap
    return cells


def picked(table: dict[str, NDArray], names: Iterable[str], why: str = "") -> list[NDArray]:
    """The cells of these columns. Raises ParameterError for missing columns; `why` is added to
    their names.
    """
    missing = [name for name in names if name not in table]
    if missing:
        raise ParameterError(
            f"the table lacks the columns {listed(missing)}{why}; it has {listed(list(table))}; "
            "rename or add them"
        )
    return [table[name] for name in names]


def numbers_of(x: Any, names: Iterable[str] | None = None) -> Any:
    """(N, D) numbers of these columns of a table (default: all), with NaN for gaps; x itself if it
    is not a table. Raises ParameterError for missing columns, and DtypeError, with all their names,
    for columns without numbers.
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
