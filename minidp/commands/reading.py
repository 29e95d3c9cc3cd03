"""Arrays and tables out of a user's files. Nothing is unpickled, and what cannot be read is named in one line."""
import csv
import re
from array import array
from pathlib import Path

import numpy as np

from ..errors import DataError, ParameterError

PAIRS = (("x_train", "y_train"), ("x_test", "y_test"))


class Table:
    """Numeric columns with names, as `fit` takes a data frame."""

    def __init__(self, columns, values):
        self.columns, self.values = columns, values

    def to_numpy(self):
        """(N, D) float64."""
        return self.values


def read_npy(path):
    """The array of a .npy file, as a memory map. Raises DataError."""
    if Path(path).suffix != ".npy":
        raise ParameterError(f"{path}: expected a .npy file, as numpy.save writes it")
    return _loaded(path, lambda: _text(np.load(path, mmap_mode="r", allow_pickle=False)))


def read_npz(path, pick):
    """({key: array} of what `pick` chooses from the keys of a .npz file, all its keys). Raises DataError."""
    def load():
        with np.load(path, allow_pickle=False) as stored:
            return {key: _text(stored[key]) for key in pick(stored.files)}, stored.files

    return _loaded(path, load)


def read_training(path):
    """(x_train, y_train, (x_test, y_test) or None, keys that are not used) of a .npz file."""
    def pick(keys):
        for pair in PAIRS:
            missing = [key for key in pair if key not in keys]
            if missing and (pair is PAIRS[0] or len(missing) == 1):
                raise DataError(f"{path}: expected the key {missing[0]}, got {_names(keys)}")
        return [key for pair in PAIRS for key in pair if key in keys]

    found, keys = read_npz(path, pick)
    x, y, *test = found.values()
    return x, y, tuple(test) or None, [key for key in keys if key not in found]


def read_csv(path, label=None, only=None):
    """(Table, text of the column `label` or None) of a .csv file whose first line names the columns.

    only: the columns that are wanted, in this order; None for all but the label. An empty cell is NaN.
    Raises DataError, naming column and line, for what is no number.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            return _table(path, rows, label, only)
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: no CSV file in UTF-8 ({error})") from error


def _table(path, rows, label, only):
    names = [name.strip() for name in next(rows, [])]
    if not names:
        raise DataError(f"{path}: empty: expected a first line that names the columns")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path}: the first line names {_names(twice)} more than once; give each column its own name")
    wanted = [name for name in names if name != label] if only is None else only
    answers = [] if label is None else [label]
    for name in (*wanted, *answers):
        if name not in names:
            raise DataError(f"{path}: no column {name}; its first line, split at commas, names {_names(names)}")
    if not wanted:
        raise DataError(f"{path}: no column of inputs beside {label}")
    places, answers = ([names.index(name) for name in each] for each in (wanted, answers))
    texts, numbers = [], array("d")
    for row in rows:
        if not row:
            continue
        if len(row) != len(names):
            raise DataError(f"{path}, line {rows.line_num}: expected {len(names)} cells, got {len(row)}")
        texts.extend(row[place].strip() for place in answers)
        try:
            numbers.extend([number(row[place]) for place in places])
        except ValueError:
            name, cell = next((names[place], row[place]) for place in places if not _is_number(row[place]))
            raise DataError(f"{path}: column {name} is not numeric (line {rows.line_num}: {cell!r:.40}); drop the column, "
                            "or write its values as numbers") from None
    values = np.array(numbers).reshape(len(numbers) // len(wanted), len(wanted))
    return Table(wanted, values), None if label is None else texts


def number(cell):
    """A cell as a float, NaN if it is empty. Raises ValueError."""
    if "_" in cell:  # Python reads 1_000
        raise ValueError(cell)
    return float(cell) if cell and not cell.isspace() else np.nan


def _is_number(cell):
    try:
        return number(cell) is not None
    except ValueError:
        return False


def labels_of(path, name, cells, as_text=False):
    """Labels or targets out of the cells of a column: integers, else numbers, else text, all of one kind."""
    if not as_text:
        if all(re.fullmatch(r"[-+]?\d{1,18}", cell) for cell in cells):
            return np.array(list(map(int, cells)), dtype=np.int64)
        if all(map(_is_number, cells)):
            return np.array(list(map(number, cells)))
    if missing := sum(not cell for cell in cells):
        raise DataError(f"{path}: {missing} of {len(cells)} rows have no label in column {name}; fill them in or drop those "
                        "rows")
    return np.array(cells, dtype=str)


def _loaded(path, load):
    """load(), whatever is wrong with the file in one line."""
    try:
        return load()
    except (DataError, ParameterError, MemoryError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # a damaged file makes zipfile, zlib, tokenize and NumPy raise a dozen kinds
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            raise DataError(f"{path}: holds Python objects, or is no file of arrays; nothing is unpickled: save numbers or "
                            "text, such as x.astype(float)") from error
        raise DataError(f"{path}: damaged, or not a file of NumPy ({' '.join(str(error).split())[:200]})") from error


def _text(found):
    """The array, bytes as text."""
    if not isinstance(found, np.ndarray):
        raise ValueError("several arrays in one file; expected one")
    return np.char.decode(found, "utf-8") if found.dtype.kind == "S" else found


def _names(names):
    """Some names, for a message."""
    return ", ".join(names[:20]) + (f", ... ({len(names)})" if len(names) > 20 else "") if names else "none"
