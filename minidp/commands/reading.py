"""Arrays and tables out of a user's files. Nothing is unpickled, and what cannot be read is named
in one line.
"""

import csv
import re
from array import array
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import DataError, ParameterError
from ..util.text import listed

KEYS = ("x_train", "y_train", "x_test", "y_test")


def read_npy(path):
    """The array of a .npy file, as a memory map. Raises DataError."""
    if Path(path).suffix != ".npy":
        raise ParameterError(f"{path}: expected a .npy file, as numpy.save writes it")
    with _damage_named(path):
        return _text(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path, wanted):
    """({key: array} of the wanted keys that a .npz file has, all its keys). Raises DataError."""
    with _damage_named(path), np.load(path, allow_pickle=False) as stored:
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


def read_csv(path, label=None, only=None, person=None):
    """(names, values (N, D) float64, texts of the column `label`, texts of the column `person`) of
    a .csv file whose first line names the columns.

    only: the columns that are wanted, in this order; None for all but the label. An empty cell is
    NaN. Raises DataError, naming column and line, for what is no number.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _table(path, csv.reader(file, strict=True), only, (label, person))
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: no CSV file in UTF-8 ({error})") from error


def _table(path, rows, only, as_text):
    names = [name.strip() for name in next(rows, [])]
    if not names:
        raise DataError(f"{path}: empty: expected a first line that names the columns")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(
            f"{path}: the first line names {listed(twice)} more than once; give each column its "
            "own name"
        )
    wanted = [name for name in names if name not in as_text] if only is None else only
    apart = [name for name in as_text if name is not None]
    for name in (*wanted, *apart):
        if name not in names:
            raise DataError(
                f"{path}: no column {name}; its first line, split at commas, names {listed(names)}"
            )
    if not wanted:
        raise DataError(f"{path}: no column of inputs beside {' and '.join(apart)}")
    places = [names.index(name) for name in wanted]
    texts, numbers = {name: [] for name in as_text}, array("d")
    for row in filter(None, rows):
        if len(row) != len(names):
            raise DataError(
                f"{path}, line {rows.line_num}: expected {len(names)} cells, got {len(row)}"
            )
        for name in apart:
            texts[name].append(row[names.index(name)].strip())
        for place in places:
            try:
                numbers.append(_number(row[place]))
            except ValueError:
                raise DataError(
                    f"{path}: column {names[place]} is not numeric (line {rows.line_num}: "
                    f"{row[place]!r:.40}); drop the column, or write its values as numbers"
                ) from None
    values = np.array(numbers).reshape(len(numbers) // len(wanted), len(wanted))
    return wanted, values, *(texts[name] for name in as_text)


def _number(cell):
    """A cell as a float, NaN if it is empty. Raises ValueError."""
    if "_" in cell:  # Python reads 1_000
        raise ValueError(cell)
    return float(cell) if cell and not cell.isspace() else np.nan


def labels_of(path, name, cells, as_text=False):
    """Labels or targets out of the cells of a column: integers, else numbers, else text, all of one
    kind.
    """
    if not as_text:
        if all(re.fullmatch(r"[-+]?\d{1,18}", cell) for cell in cells):
            return np.array(cells).astype(np.int64)
        try:
            return np.array(list(map(_number, cells)))
        except ValueError:
            pass
    if missing := sum(not cell for cell in cells):
        raise DataError(
            f"{path}: {missing} of {len(cells)} rows have no label in column {name}; fill them in "
            "or drop those rows"
        )
    return np.array(cells, dtype=str)


@contextmanager
def _damage_named(path):
    """Say in one line whatever is wrong with a file of arrays."""
    try:
        yield
    except (MemoryError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    # a damaged file makes zipfile, zlib, tokenize and NumPy raise a dozen kinds
    except Exception as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            raise DataError(
                f"{path}: holds Python objects, or is no file of arrays; nothing is unpickled: "
                "save numbers or text, such as x.astype(float)"
            ) from error
        raise DataError(
            f"{path}: damaged, or not a file of NumPy ({' '.join(str(error).split())[:200]})"
        ) from error


def _text(found):
    """The array, bytes as text."""
    if not isinstance(found, np.ndarray):
        raise ValueError("several arrays in one file; expected one")
    return np.char.decode(found, "utf-8") if found.dtype.kind == "S" else found
