"""Arrays and tables out of a user's files. Nothing is unpickled, and what cannot be read is named
in one line.
"""

import csv
import re
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..data.tables import TRUTH, number_in
from ..errors import DataError, ParameterError
from ..run.checkpoint import open_npz
from ..util.files import damage_named
from ..util.text import listed

KEYS = ("x_train", "y_train", "x_test", "y_test")


def read_npy(path):
    """The array of a .npy file, as a memory map. Raises DataError."""
    if Path(path).suffix != ".npy":
        raise ParameterError(f"{path}: expected a .npy file, as numpy.save writes it")
    with damage_named(path, DataError):
        return _text(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path, wanted):
    """({key: array} of the wanted keys that a .npz file has, all its keys). Raises DataError."""
    with damage_named(path, DataError), open_npz(path) as stored:
        return {key: _text(stored[key]) for key in wanted if key in stored.files}, stored.files


def read_training(path):
    """(x_train, y_train, (x_test, y_test) or None, keys that are not used) of a .npz file."""
    found, keys = read_npz(path, KEYS)
    for key in KEYS if set(KEYS[2:]) & set(keys) else KEYS[:2]:
        if key not in keys:
            raise DataError(
                f"{path}: expected the key {key}, got {listed(keys)}; "
                "numpy.savez(FILE, x_train=x, y_train=y) saves what is read"
            )
    x, y, *test = found.values()
    return x, y, tuple(test) or None, [key for key in keys if key not in found]


def read_csv(path):
    """{name: its cells as texts, spaces around them cut} of a .csv file whose first line names the
    columns. Raises DataError.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _table(path, csv.reader(file, strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: no CSV file in UTF-8 ({error})") from error


def _table(path, rows):
    names = [name.strip() for name in next(rows, [])]
    if not names:
        raise DataError(f"{path}: empty: expected a first line that names the columns")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(
            f"{path}: the first line names {listed(twice)} more than once; give each column its "
            "own name"
        )
    columns = {name: [] for name in names}
    shared = {}  # equal cells share one text
    for row in filter(None, rows):
        if len(row) != len(names):
            raise DataError(
                f"{path}, line {rows.line_num}: expected {len(names)} cells, got {len(row)}"
            )
        for cells, cell in zip(columns.values(), map(str.strip, row)):
            cells.append(shared.setdefault(cell, cell))
    return columns


def labels_of(cells, as_text=False):
    """Labels or targets of a column's cells: integers, else numbers, else text, all of one kind;
    None of an empty cell.
    """
    found = cells
    if not as_text and all(re.fullmatch(r"([-+]?\d{1,18})?", cell) for cell in cells):
        found = [int(cell) if cell else None for cell in cells]
    elif not as_text and not TRUTH.keys() & set(map(str.lower, cells)):
        with suppress(ValueError):
            return np.array(list(map(number_in, cells)))
    if "" in cells:
        return np.array([None if cell == "" else cell for cell in found], dtype=object)
    return np.array(found)


def _text(found):
    """The array, bytes as text."""
    if not isinstance(found, np.ndarray):
        raise ValueError("several arrays in one file; expected one")
    return np.char.decode(found, "utf-8") if found.dtype.kind == "S" else found
