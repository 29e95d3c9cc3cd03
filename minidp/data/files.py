"""Read tables from files of many programs, as texts. No message shows a value of a row."""

import codecs
import csv
import gzip
import io
import re
from contextlib import suppress
from gzip import BadGzipFile
from itertools import count
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..util.atomic import StrPath
from ..util.files import damage_named
from ..util.notices import say
from ..util.text import listed
from .cells import CODE, GAPS, TRUTH, number_in, plain_number

WINDOWS = "cp1252"
LONE_CR = re.compile(r"\r(?!\n)")
# functions of pandas that read the tables of other programs
OTHER_TABLES = {
    ".parquet": "read_parquet",
    ".feather": "read_feather",
    ".xlsx": "read_excel",
    ".xls": "read_excel",
    ".ods": "read_excel",
    ".sav": "read_spss",
    ".dta": "read_stata",
    ".sas7bdat": "read_sas",
    ".json": "read_json",
}


def is_table(path: StrPath) -> bool:
    """True if the name of a file is that of a table: .csv, .tsv or .txt, packed as .gz or .zip or
    not, or a kind that pandas reads.
    """
    known = (".csv", ".tsv", ".txt", ".gz", ".zip", *OTHER_TABLES)
    return Path(path).suffix.lower() in known


def read_table(path: StrPath) -> dict[str, list[str]]:
    """{name: cells as texts, without spaces around them} of a file whose first line names the
    columns, or of a file that pandas, if installed, reads. Raises DataError.
    """
    if reader := OTHER_TABLES.get(Path(path).suffix.lower()):
        return _table(path, csv.reader(io.StringIO(_by_pandas(path, reader), newline="")))
    try:
        text = _uncommented(path, _text(path))
        line = next(filter(str.strip, io.StringIO(text, newline="")), "")
        rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=_delimiter(line))
        # pandas writes such a cell without quotation marks, and it then ends its line
        return _table(path, rows, LONE_CR.search(text) and "\n" in text)
    except (csv.Error, UnicodeDecodeError, EOFError, BadZipFile, BadGzipFile) as error:
        raise DataError(
            f"{path}: no CSV file in UTF-8, UTF-16 or {WINDOWS} ({error}); save it as UTF-8"
        ) from error


def _by_pandas(path, reader):
    """A table of another program as the text of a .csv file."""
    with damage_named(path, DataError):
        try:
            import pandas

            found = _sheet(path) if reader == "read_excel" else getattr(pandas, reader)(path)
            return found.to_csv(index=False)
        except ImportError as error:
            raise DataError(
                f"{path} is read by pandas, and here {error}; convert it where pandas is: "
                f"python -c \"import pandas; pandas.{reader}('{path}')"
                f".to_csv('{Path(path).stem}.csv', index=False)\""
            ) from error


def _sheet(path):
    """The only sheet of a file, whose first line names the columns. Raises DataError for other
    files.
    """
    import pandas

    sheets = pandas.read_excel(path, sheet_name=None)
    name, found = next(iter(sheets.items()))
    if len(sheets) > 1 or any(str(each).startswith("Unnamed: ") for each in found.columns[1:]):
        raise DataError(
            f"{path}: expected one sheet whose first line names the columns, got {listed(sheets)}, "
            f"the first with {listed(found.columns)}. Save the one that matters as .csv, with its "
            f"names first: python -c \"import pandas; pandas.read_excel('{path}', "
            f"sheet_name={name!r}, skiprows=LINES_ABOVE).to_csv('table.csv', index=False)\""
        )
    return found


def _text(path):
    """The text of a file, which may be packed as .gz or .zip: UTF-16 if it has that mark, otherwise
    UTF-8, or the encoding of Windows.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".zip":
        with ZipFile(path) as packed:
            if len(names := packed.namelist()) != 1:
                raise DataError(f"{path}: expected one file in it, got {listed(names)}")
            raw = packed.read(names[0])
    else:
        with (gzip.open if suffix == ".gz" else open)(path, "rb") as file:
            raw = file.read()
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16")
    with suppress(UnicodeDecodeError):
        return raw.decode("utf-8-sig")
    text = raw.decode(WINDOWS)
    say(f"NOTICE: {path}: not in UTF-8; read as {WINDOWS}, as Windows writes Western texts")
    return text


def _uncommented(path, text):
    """The text with lines that begin with # emptied, if the first line is such a comment, which has
    another number of cells than the line of names.
    """
    lines = text.splitlines(keepends=True)
    first = next((line for line in lines if not line.startswith("#")), "")
    comma = _delimiter(first)
    if not text.startswith("#") or lines[0].count(comma) == first.count(comma):
        return text
    say(f"NOTICE: {path}: the lines that begin with # are comments: not read")
    return "".join("\n" if line.startswith("#") else line for line in lines)


def _delimiter(line):
    """The separator of the columns' names: a comma, a semicolon or a tab."""
    try:
        return csv.Sniffer().sniff(line, ",;\t").delimiter
    except csv.Error:  # one column
        return ","


def _table(path, rows, returns=False):
    """Columns; returns: whether a carriage return ends some lines, and a line feed others."""
    names = [name.strip() for name in next(filter(None, rows), [])]
    if not any(names):
        raise DataError(f"{path}: empty: expected a first line that names the columns")
    if all(plain_number(name) is not None for name in names if name):
        say(f"NOTICE: {path}: the first line, which is taken for the columns' names, holds numbers")
    header = list(names)
    nameless = [place for place, name in enumerate(names) if not name]
    if nameless == [0]:
        say(f"NOTICE: {path}: the first column has no name, as pandas writes its index: not read")
        nameless = []
    for place, name in enumerate(names):
        if name and name in names[:place]:
            names[place] = next(new for k in count(2) if (new := f"{name}.{k}") not in names)
            say(f"NOTICE: {path}: the first line names {name} again: read as {names[place]}")
    columns = {name: [] for name in names if name}
    shared = {}  # equal cells share one text
    for row in filter(None, rows):
        if len(row) != len(names):
            cure = "mend or delete the line"
            if not any(columns.values()):
                cure += ", or the lines above that of the names"
            if returns:
                cure += (
                    ". A carriage return without a line feed may stand in a cell: replace it by a "
                    "space, or write the cell in quotation marks"
                )
            raise DataError(
                f"{path}, line {rows.line_num}: expected {len(names)} cells, got {len(row)}; {cure}"
            )
        if used := [str(place + 1) for place in nameless if row[place].strip()]:
            raise DataError(  # a column that is empty is none
                f"{path}: the first line has columns without a name, number {listed(used)} among "
                "them; give each its own, in one line of names"
            )
        row = list(map(str.strip, row))
        if row == header and len(row) > 1:
            say(f"NOTICE: {path}, line {rows.line_num}: the names again: not read")
            continue
        for name, cell in zip(names, row):
            if name:
                columns[name].append(shared.setdefault(cell, cell))
    return columns


def labels_of(cells: list[str], as_text: bool = False) -> NDArray[Any]:
    """Labels or targets from a column's cells, all of one kind: integers, otherwise numbers,
    otherwise text. An empty cell, or another gap among integers, is None. A leading zero makes all
    of them text.
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
