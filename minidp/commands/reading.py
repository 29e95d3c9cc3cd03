"""Read arrays and tables from a user's files. Nothing is unpickled, and one line names what cannot
be read.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.cells import GAPS
from ..data.files import is_table, labels_of, read_table
from ..data.schema import Schema
from ..errors import DataError, ParameterError
from ..run.checkpoint import open_npz
from ..run.options import option
from ..util.files import damage_named
from ..util.text import listed
from .flags import texts

KEYS = ("x_train", "y_train", "x_test", "y_test")


PUBLIC_TEST = "a public test set, which is only evaluated"


@dataclass(frozen=True, kw_only=True)
class Files:
    """The flags for the files of the training data, and the data in these files."""

    data: str | None = option(
        None,
        ".npz with x_train and y_train, and x_test and y_test if there is a public test set; or "
        ".csv with column names in its first line, and --label (columns of numbers, or any with "
        "--schema)",
        metavar="DATA",
        positional=True,
    )
    x: str | None = option(
        None,
        "in place of DATA: .npy file of training inputs, numbers of shape (N, ...), read as needed",
        metavar="FILE",
    )
    y: str | None = option(
        None, ".npy file of the labels, or of the numbers to predict", metavar="FILE"
    )
    x_test: str | None = option(None, f".npy file of {PUBLIC_TEST}", metavar="FILE")
    y_test: str | None = option(
        None, ".npy file of the labels or numbers of the test set", metavar="FILE"
    )
    columns: tuple[str, ...] = option(
        (),
        "inputs of a .csv file (default: all but the label)",
        metavar="A,B,...",
        exclusive="columns",
    )
    drop: tuple[str, ...] = option(
        (), "columns of a .csv file that are not read", metavar="A,B,...", exclusive="columns"
    )
    test: str | None = option(None, f".csv file of {PUBLIC_TEST}", metavar="FILE")

    def read(self, settings):
        """(x, y, (x_test, y_test) or None) in the forms that `fit` takes, with these settings.

        Raises ParameterError for flags that do not go together, DataError for files that cannot be
        read.
        """
        single, of_test = (self.x, self.y), (self.x_test, self.y_test)
        one_source = None not in single if self.data is None else single == (None, None)
        if not one_source:
            raise ParameterError("expected either DATA (.npz or .csv), or both --x and --y (.npy)")
        if of_test != (None, None) and (None in of_test or self.data is not None):
            raise ParameterError("expected --x-test and --y-test together, with --x and --y")
        suffix = None if self.data is None else Path(self.data).suffix.lower()
        if self.data is not None and is_table(self.data):
            return self._read_csv(settings)
        if suffix not in (None, ".npz"):
            raise ParameterError(
                f"{self.data}: expected a .npz or a .csv file; .npy files go with --x and --y"
            )
        for_csv = {
            "label": settings.label,
            "columns": self.columns,
            "drop": self.drop,
            "test": self.test,
            "schema": settings.schema,
            "person": settings.person,
        }
        for name, value in for_csv.items():
            if value:
                raise ParameterError(f"expected --{name} with a .csv file, and only there")
        if suffix is None:
            test = None if None in of_test else tuple(map(read_npy, of_test))
            return *map(read_npy, single), test
        return read_training(self.data)

    def _read_csv(self, settings):
        of_schema = None if settings.schema is None else Schema.of(settings.schema).label
        label = settings.label if of_schema is None else of_schema.name
        if label is None or settings.label not in (None, label):
            raise ParameterError(
                "expected --label COLUMN with a .csv file, or a --schema whose column to predict "
                'has "role": "label", and the same if both are there'
            )
        if label in (*self.columns, *self.drop):
            raise ParameterError(f"expected --columns and --drop of inputs, got the label {label}")

        def rows_of(path, *apart):
            table = self._columns_of(path, label, *apart)
            if of_schema is not None:
                return table, None
            return table, labels_of(table.pop(label), as_text)

        as_text = settings.classes is not None and classes_of(settings.classes).dtype.kind == "U"
        x, y = rows_of(self.data, *([] if settings.person is None else [settings.person]))
        if self.test is None:
            return x, y, None
        if Path(self.test).samefile(self.data):
            raise ParameterError("expected --test with a public table, got the training rows")
        return x, y, rows_of(self.test)  # test rows need no person

    def _columns_of(self, path, *apart):
        """The inputs of a .csv file, and separately the columns `apart`."""
        table = read_table(path)
        for name in (*self.columns, *self.drop, *apart):
            if name not in table:
                raise DataError(
                    f"{path}: no column {name}; its first line, split at commas, names "
                    f"{listed(list(table))}"
                )
        kept = [*self.columns, *apart]
        if not self.columns:
            kept = [name for name in table if name not in self.drop]
        return {name: table[name] for name in kept}


def read_npy(path):
    """The array of a .npy file, as a memory map. Raises DataError."""
    if Path(path).suffix != ".npy":
        raise ParameterError(f"{path}: expected a .npy file, as numpy.save writes it")
    with damage_named(path, DataError):
        return _text(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path, wanted):
    """({key: array} of those wanted keys that a .npz file has, list of all its keys). Raises
    DataError.
    """
    with damage_named(path, DataError), open_npz(path) as stored:
        return {key: _text(stored[key]) for key in wanted if key in stored.files}, stored.files


def read_training(path):
    """(x_train, y_train, (x_test, y_test) or None) of a .npz file; other keys are named on
    stderr.
    """
    found, keys = read_npz(path, KEYS)
    for key in KEYS if set(KEYS[2:]) & set(keys) else KEYS[:2]:
        if key not in keys:
            raise DataError(
                f"{path}: expected the key {key}, got {listed(keys)}; "
                "numpy.savez(FILE, x_train=x, y_train=y) saves what is read"
            )
    if unused := [key for key in keys if key not in found]:
        print(f"{path}: not used: {', '.join(unused)}", file=sys.stderr)
    x, y, *test = found.values()
    return x, y, tuple(test) or None


def classes_of(text, kind="?"):
    """The values of --classes in the type of labels of this kind."""
    names = texts(text)
    if kind == "b" and {name.lower() for name in names} == {"true", "false"}:
        return np.array([False, True])
    return np.array(names) if kind in "US" or set(GAPS).intersection(names) else labels_of(names)


def _text(found):
    """The array, with bytes decoded to text."""
    if not isinstance(found, np.ndarray):
        raise ValueError("several arrays in one file; expected one")
    return np.char.decode(found, "utf-8") if found.dtype.kind == "S" else found
