"""Arrays and tables out of a user's files. Nothing is unpickled, and what cannot be read is named
in one line.
"""

import codecs
import csv
import gzip
import io
import re
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from gzip import BadGzipFile
from itertools import chain
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np

from ..data.cells import CODE, GAPS, TRUTH, number_in
from ..data.schema import Schema
from ..errors import DataError, ParameterError
from ..run.checkpoint import open_npz
from ..util.files import damage_named
from ..util.notices import say
from ..util.options import option
from ..util.text import listed
from .flags import texts

# what reads the tables of other programs, in pandas
OTHER_TABLES = {
    ".parquet": "read_parquet",
    ".feather": "read_feather",
    ".xlsx": "read_excel",
    ".xls": "read_excel",
    ".ods": "read_excel",
    ".sav": "read_spss",
    ".dta": "read_stata",
    ".sas7bdat": "read_sas",
    ".jsonl": "read_json",
    ".json": "read_json",
}
KEYS = ("x_train", "y_train", "x_test", "y_test")


PUBLIC_TEST = "a public test set, which is evaluated and chooses nothing"


@dataclass(frozen=True, kw_only=True)
class Files:
    """The flags of the files that hold the training data, and what is read from them."""

    data: str | None = option(
        None,
        ".npz with x_train, y_train and, of a public test set, x_test, y_test; or .csv with names "
        "in its first line, and --label: numbers, or any columns with --schema",
        metavar="DATA",
        positional=True,
    )
    x: str | None = option(
        None,
        ".npy file of training inputs in place of DATA: (N, ...) numbers, read as needed",
        metavar="FILE",
    )
    y: str | None = option(
        None, ".npy file of their labels, or of numbers to predict", metavar="FILE"
    )
    x_test: str | None = option(None, f".npy file of {PUBLIC_TEST}", metavar="FILE")
    y_test: str | None = option(None, ".npy file of their labels or numbers", metavar="FILE")
    label: str | None = option(
        None,
        "column of a .csv file that is to be predicted (default: the one that --schema marks); all "
        "others are inputs",
        metavar="COLUMN",
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
            "label": self.label,
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
        label = self.label if of_schema is None else of_schema.name
        if label is None or self.label not in (None, label):
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
        return x, y, rows_of(self.test)  # which are of no person

    def _columns_of(self, path, *apart):
        """The inputs of a .csv file, and the columns `apart`."""
        table = read_csv(path)
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


def is_table(path):
    """Whether a file is a table by its name: .csv, .tsv or .txt, also packed as .gz or .zip.
    ParameterError, with the line that converts it, for a table of another program.
    """
    name = str(path).lower().removesuffix(".gz").removesuffix(".zip")
    if reader := OTHER_TABLES.get(Path(name).suffix):
        raise ParameterError(
            f'{path} is not read; convert it: python -c "import pandas; '
            f"pandas.{reader}('{path}').to_csv('{Path(path).stem}.csv', index=False)\""
        )
    return Path(name).suffix in (".csv", ".tsv", ".txt")


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
    """(x_train, y_train, (x_test, y_test) or None) of a .npz file; stderr has the other keys."""
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


def read_csv(path):
    """{name: its cells as texts, spaces around them cut} of a .csv file whose first line names the
    columns. Raises DataError.
    """
    try:
        with _opened(path) as file:
            line = file.readline()
            rest = csv.reader(chain([line], file), strict=True, delimiter=_delimiter(line))
            return _table(path, rest)
    except (csv.Error, UnicodeDecodeError, EOFError, BadZipFile, BadGzipFile) as error:
        raise DataError(f"{path}: no CSV file in UTF-8 or UTF-16 ({error})") from error


@contextmanager
def _opened(path):
    """The text of a file, out of a .gz or .zip file where it is in one; UTF-16 by its mark."""
    with ExitStack() as stack:
        suffix = Path(path).suffix.lower()
        if suffix == ".gz":
            raw = stack.enter_context(gzip.open(path))
        elif suffix == ".zip":
            packed = stack.enter_context(ZipFile(path))
            if len(names := packed.namelist()) != 1:
                raise DataError(f"{path}: expected one file in it, got {listed(names)}")
            raw = stack.enter_context(packed.open(names[0]))
        else:
            raw = stack.enter_context(open(path, "rb"))
        raw = stack.enter_context(io.BufferedReader(raw))
        wide = raw.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        encoding = "utf-16" if wide else "utf-8-sig"
        yield stack.enter_context(io.TextIOWrapper(raw, encoding, newline=""))


def _delimiter(line):
    """What stands between the names of the columns: a comma, a semicolon or a tab."""
    try:
        return csv.Sniffer().sniff(line, ",;\t").delimiter
    except csv.Error:  # one column
        return ","


def _table(path, rows):
    names = [name.strip() for name in next(rows, [])]
    if not names:
        raise DataError(f"{path}: empty: expected a first line that names the columns")
    unnamed = len(names) > 1 and names[0] == "" and "" not in names[1:]
    if unnamed:
        say(f"NOTICE: {path}: the first column has no name, as pandas writes its index: not read")
    elif "" in names:
        raise DataError(f"{path}: the first line has columns without a name; give each its own")
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
    if unnamed:
        del columns[""]
    return columns


def labels_of(cells, as_text=False):
    """Labels or targets of a column's cells: integers, else numbers, else text, all of one kind;
    None of an empty cell, and of other gaps among integers. A leading zero makes all of them text.
    """
    known = [cell for cell in cells if cell not in GAPS]
    as_text = as_text or any(map(CODE.fullmatch, known))
    if not as_text and all(re.fullmatch(r"[-+]?\d{1,18}", cell) for cell in known):
        found = [None if cell in GAPS else int(cell) for cell in cells]
        return np.array(found, dtype=object if None in found else None)
    if not as_text and not TRUTH.keys() & set(map(str.lower, cells)):
        with suppress(ValueError):
            return np.array(list(map(number_in, cells)))
    if "" in cells:
        return np.array([cell or None for cell in cells], dtype=object)
    return np.array(cells)


def classes_of(text, kind="?"):
    """--classes in the type of labels of this kind."""
    names = texts(text)
    if kind == "b" and {name.lower() for name in names} == {"true", "false"}:
        return np.array([False, True])
    return np.array(names) if kind in "US" or set(GAPS).intersection(names) else labels_of(names)


def _text(found):
    """The array, bytes as text."""
    if not isinstance(found, np.ndarray):
        raise ValueError("several arrays in one file; expected one")
    return np.char.decode(found, "utf-8") if found.dtype.kind == "S" else found
