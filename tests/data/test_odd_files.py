"""Small odd columns, files and frames: how each is read, or the sentence that refuses it."""

import gzip
import io
import json
import sys
import zipfile
from datetime import date

import numpy as np
import openpyxl
import pandas
import polars
import pyarrow
import pytest

from minidp.data.draft import FEWEST_ROWS, draft
from minidp.data.files import is_table, read_table
from minidp.data.schema import Schema
from minidp.data.tables import table_of
from minidp.errors import DataError, MinidpError

PLAIN = "a,b\n1,x\n2,y\n"
FRAME = {"a": [1, 2], "b": ["x", "y"]}
DAY = "2015-12-31"
MANY = [f"n{row % 70}" for row in range(140)]


def zipped(*names):
    """The bytes of a .zip file of the same table under each name."""
    with zipfile.ZipFile(file := io.BytesIO(), "w") as packed:
        for name in names:
            packed.writestr(zipfile.ZipInfo(name), PLAIN)
    return file.getvalue()


def sheets(names, count):
    """The bytes of an Excel file whose sheets have such a first line and a row of two cells."""
    book = openpyxl.Workbook()
    book.active.title = "one"
    for sheet in [book.active, *(book.create_sheet("two") for _ in range(count - 1))]:
        sheet.append(names)
        sheet.append((1, 2))
    book.save(file := io.BytesIO())
    return file.getvalue()


# the cells of a column, a frame or a file, and how its column a is read with its draft filled in:
# numbers, ISO days (None is a gap) or categories; or words of the draft's line or of the refusal
ODD = {
    "integers": ([1, 20, 300], [1, 20, 300]),
    "numbers as texts": (["1", "2.5", "-3e2"], [1, 2.5, -300]),
    "gaps of pandas": (["1", "NULL", "None", "n/a", "#N/A", "<NA>", ""], [1] + [None] * 6),
    "gaps of others": (["1", ".", "-", "?", "NA"], [1, None, None, None, None]),
    "objects that are missing": ([1.5, None, np.nan, pandas.NA, pandas.NaT], [1.5] + [None] * 4),
    "decimal commas": (["45,5", "1,25", "7"], [45.5, 1.25, 7]),
    "a comma after zero": (["0,500", "1,250"], [0.5, 1.25]),
    "thousands": (["1,234.50", "12", "-1,000,000"], [1234.5, 12, -1e6]),
    "German thousands": (["1.234,5", "1.234.567", "12"], [1234.5, 1234567, 12]),
    "French thousands": (["1\u202f234,5", "12 000", "7"], [1234.5, 12000, 7]),
    "spaces and points": (["1 234.5", "12"], [1234.5, 12]),
    "Swiss thousands": (["1'234.5", "12'000"], [1234.5, 12000]),
    "a comma that may be either": (["1,234", "12,500"], 'fill in "format", "1234,5" or "1,234.5"'),
    "a point that may be either": (["1.234", "12.500"], 'if 1.234 stands for 1234, write "format"'),
    "groups of two": (["1,23,456", "7,5"], "a category of 2"),
    "percent signs": (["12%", "7.5 %", ""], [12, 7.5, None]),
    "percent signs, in words": (["12%", "13%"], "12% is the number 12"),
    "percent signs and commas": (["12,5%", "7%"], [12.5, 7]),
    "commas and points": (["1,5", "2.5"], ["1,5", "2.5"]),
    "truth": ([True, False], [1, 0]),
    "underscores": (["1_000", "2"], ["1_000", "2"]),
    "-999 for a gap": (["-999", "1.5"], "if -999 stands for a gap"),
    "most are days": (
        [*(f"{n % 28 + 1}.{n % 11 + 1}.2015" for n in range(99)), *(f"0.0.{n}" for n in range(20))],
        "are dates, but not '0.0.0', '0.0.1', ",
    ),
    "a day that is unknown": (
        [*(f"{n % 28 + 1}.{n % 11 + 1}.2015" for n in range(80)), "00.00.1950"],
        [*(f"2015-{n % 11 + 1:02}-{n % 28 + 1:02}" for n in range(80)), None],
    ),
    "two ways to write a day": (
        [*(f"{n % 28 + 1}.{n % 11 + 1}.2015" for n in range(80)), "2015-12-31"],
        "are dates, but not '2015-12-31'",
    ),
    "times of day": (["0946", "1313"], ["0946", "1313"]),
    "one unreadable number": (
        [*map(str, range(99)), "old"],
        [*range(99), None],
    ),
    "some numbers beside a text": (
        [*map(str, range(-40, 0)), "pending"],
        'number write "type": "number", "low", "high", and "gaps", a list of the texts',
    ),
    "a minus behind": (["312,40-", "7,5"], [-312.4, 7.5]),
    "ISO days": (["2015-12-31", "", "2015-01-02"], [DAY, None, "2015-01-02"]),
    "ISO days and times": (["2015-12-31T23:59:59Z", "2015-12-31 10:00:00.5"], [DAY, DAY]),
    "days with points": (["31.12.2015", "1.2.2015", "NULL"], [DAY, "2015-02-01", None]),
    "days with points and times": (["31.12.2015 10:30", "-"], [DAY, None]),
    "American days": (["12/31/15", "1/2/15"], [DAY, "2015-01-02"]),
    "American days, in words": (["12/31/15"], "where 00 to 68 are the years from 2000 on"),
    "American times": (["12/31/2015 3:04 PM"], [DAY]),
    "British days": (["31/12/2015", "01/02/2015"], [DAY, "2015-02-01"]),
    "days that may be either": (["01/02/2015"], 'fill in "format", "31/12/2015" or "12/31/2015"'),
    "days that are the same": (["02/02/2015"], ["2015-02-02"]),
    "days of SAS": (["31DEC2015", "02FEB2015"], [DAY, "2015-02-02"]),
    "money": (["$1,200.50", "-$3.00", "€ 7", "8 £"], [1200.5, -3, 7, 8]),
    "money of two countries": (["$1.50", "€2.50"], "$, € count as one unit"),
    "days with names of months": (["31-Dec-2015", "02-FEB-2015"], [DAY, "2015-02-02"]),
    "days with slashes, year first": (["2015/12/31"], [DAY]),
    "datetimes": ([np.datetime64(DAY), None], [DAY, None]),
    "a day that there is not": (["30.02.2015", "01.02.2015"], "a category of 2"),
    "texts": (["b", "a", " b", ""], ["a", "b"]),
    "texts with NA": (["b", "a", "NA", "None"], 'NA, None is *other*, unless "values" lists it'),
    "leading zeros": (["01067", "10999"], ["01067", "10999"]),
    "umlauts": (["Zürich", "Genève"], ["Genève", "Zürich"]),
    "no value": ([None, "NA", ""], "ignored, because it is empty"),
    "many categories": (MANY, 'a category of 70 texts, too many to list: fill in "values"'),
    "all different": ([f"n{row}" for row in range(99)], "99 texts are all different"),
    "a file": (("t.csv", PLAIN.encode()), [1, 2]),
    "a mark of UTF-8": (("t.csv", PLAIN.encode("utf-8-sig")), [1, 2]),
    "UTF-16": (("t.csv", PLAIN.encode("utf-16")), [1, 2]),
    "semicolons": (("t.csv", PLAIN.replace(",", ";").encode()), [1, 2]),
    "semicolons and commas": (("t.csv", b"a;b\n1,5;x\n2;y\n"), [1.5, 2]),
    "tabs": (("t.tsv", PLAIN.replace(",", "\t").encode()), [1, 2]),
    "lines of Windows": (("t.txt", PLAIN.replace("\n", "\r\n").encode()), [1, 2]),
    "lines of an old Mac": (("T.CSV", PLAIN.replace("\n", "\r").encode()), [1, 2]),
    "empty lines": (("t.csv", PLAIN.replace("\n", "\n\n").encode()), [1, 2]),
    "quotes": (("t.csv", b'"a";"b"\n"1";"x"\n2;"y"\n'), [1, 2]),
    "an index": (("t.csv", b",a,b\n0,1,x\n1,2,y\n"), [1, 2]),
    "gzip": (("t.csv.gz", gzip.compress(PLAIN.encode("utf-16"), mtime=0)), [1, 2]),
    "zip": (("t.zip", zipped("a.csv")), [1, 2]),
    "an array's file": (("t.npy", b""), "expected a table, such as a .csv file"),
    "a zipped file": (("t.csv.zip", zipped("a.csv")), [1, 2]),
    "two zipped files": (
        ("t.csv.zip", zipped("a.csv", "b.csv")),
        "one file in it, got a.csv, b.csv",
    ),
    "no gzip": (("t.csv.gz", PLAIN.encode()), "no CSV file"),
    "no zip": (("t.csv.zip", PLAIN.encode()), "no CSV file"),
    "no Excel": (("t.xlsx", PLAIN.encode()), "t.xlsx: damaged, or a file of another kind"),
    "Windows": (("t.csv", "a;b\n1;é\n2;€\n".encode("cp1252")), [1, 2]),
    "no text": (("t.csv", b"a,b\n1,\x81\n"), "no CSV file in UTF-8, UTF-16 or cp1252"),
    "a last column without name and cells": (("t.csv", b"a;b;\n1;x;\n2;y;\n"), [1, 2]),
    "two sheets": (("t.xlsx", sheets(("a", "b"), 2)), "got one, two, the first with a, b"),
    "a title": (("t.xlsx", sheets(("Mark book",), 1)), "skiprows=LINES_ABOVE"),
    "nothing": (("t.csv", b""), "empty: expected a first line"),
    "no name": (("t.csv", b"a,,b\n1,2,3\n"), "columns without a name"),
    "one name twice": (("t.csv", b"a,a,b\n1,2,3\n"), [1]),
    "comments above": (("t.csv", b"# from a pump\n# now\na,b\n1,x\n# restart\n2,y\n"), [1, 2]),
    "a column called #": (("t.csv", b"#,b\n1,x\n"), "#: a number"),
    "lines above the names": (("t.csv", b"Report\na,b\n1,2\n"), "or the lines above that of the"),
    "the names again": (("t.csv", b"a,b\n1,x\na,b\n2,y\n"), [1, 2]),
    "an empty first line": (("t.csv", b"\na,b\n1,x\n2,y\n"), [1, 2]),
    "a carriage return in a cell": (
        ("t.csv", b"a,b\n1,x\r1\n2,y\n"),
        "line 3: expected 2 cells, got 1; mend or delete the line. A carriage return without",
    ),
    "a short line": (("t.csv", b"a;b\n1\n"), "line 2: expected 2 cells, got 1"),
    "another label": (("t.csv", b"a,c\n1,2\n"), "lacks the columns b; it has a, c"),
    "pandas": (pandas.DataFrame(FRAME), [1, 2]),
    "pandas over pyarrow": (
        pandas.DataFrame(FRAME).convert_dtypes(dtype_backend="pyarrow"),
        [1, 2],
    ),
    "pandas' categories": (pandas.DataFrame(FRAME).astype("category"), [1, 2]),
    "pandas' times of a zone": (
        pandas.DataFrame({"a": pandas.to_datetime([DAY, None], utc=True), "b": [0, 1]}),
        [DAY, None],
    ),
    "pyarrow": (pyarrow.table(FRAME), [1, 2]),
    "polars": (polars.DataFrame(FRAME), [1, 2]),
    "polars' dates and gaps": (
        polars.DataFrame({"a": [date(2015, 12, 31), None], "b": [0, 1]}),
        [DAY, None],
    ),
    "a dictionary of arrays": ({name: np.array(cells) for name, cells in FRAME.items()}, [1, 2]),
    "columns of two lengths": ({"a": [1], "b": [1, 2]}, "columns of one length"),
}


def as_read(entry, cells):
    """How a drafted entry reads cells, its bounds filled in."""
    bounds = {"number": (-1e9, 1e9), "date": ("1900-01-01", "2100-01-01")}.get(entry["type"])
    if bounds is None:
        return entry["values"]
    low, high = bounds
    (column,) = Schema.of({"a": entry | {"low": low, "high": high}}).columns
    numbers, gaps = column.numbers(cells)
    if entry["type"] == "date":
        numbers = [
            None if gap else str(np.datetime64(int(n), "D")) for n, gap in zip(numbers, gaps)
        ]
    return [None if gap else number for number, gap in zip(numbers, gaps)]


@pytest.mark.parametrize("given, expected", ODD.values(), ids=ODD)
def test_what_comes_is_read_as_its_draft_says_or_a_sentence_says_why_not(given, expected, tmp_path):
    if isinstance(given, tuple):
        name, content = given
        given = tmp_path / name
        given.write_bytes(content)
    elif isinstance(given, list):
        given = {"a": given, "b": np.arange(len(given)) % 2}
    try:
        drafted = table = table_of(given)
        if isinstance(given, dict) and isinstance(expected, list):  # a draft quotes no rare text
            drafted = table_of({name: FEWEST_ROWS * list(cells) for name, cells in given.items()})
        entries, (line, *_) = draft(drafted, "b")
    except MinidpError as error:
        line = str(error)
    if isinstance(expected, str):
        assert expected in line
    else:
        assert as_read(entries["a"], table["a"]) == expected


@pytest.mark.parametrize("suffix", ["parquet", "feather", "xlsx", "dta", "json"])
def test_tables_of_other_programs_are_read_by_pandas_or_called_by_their_name(
    suffix, tmp_path, monkeypatch
):
    path, name = tmp_path / f"t.{suffix}", {"xlsx": "excel", "dta": "stata"}.get(suffix, suffix)
    options = {"json": {}, "dta": {"write_index": False}}.get(suffix, {"index": False})
    options = {} if suffix == "feather" else options
    getattr(pandas.DataFrame(FRAME), f"to_{name}")(path, **options)
    assert is_table(path) and read_table(path) == {"a": ["1", "2"], "b": ["x", "y"]}
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(DataError, match=rf"convert it .*pandas.read_{name}\('.*/t.{suffix}'\)"):
        read_table(path)


def test_a_draft_quotes_no_text_that_fewer_than_ten_rows_hold():
    """Neither for gaps, nor as a category, nor as a class; it asks."""
    rare, common = "see J. Smith (HIV+)", FEWEST_ROWS * ["refused"]
    numbers = [*map(str, range(200)), *common, rare]
    cities = [*(100 * ["Bern"]), *(110 * ["Rome"]), rare]
    for column, key in ((numbers, "gaps"), (cities, "values")):
        table = table_of({"a": column, "b": [*(100 * ["no"]), *(110 * ["yes"]), rare]})
        entries, (line, said) = draft(table, "b")
        assert rare not in json.dumps(entries) and f"fewer than {FEWEST_ROWS} rows" in line
        assert entries["b"]["values"] == ["no", "yes"] and f"{FEWEST_ROWS} rows" in said
        assert entries["a"][key] == (None if key == "gaps" else ["Bern", "Rome"])
    entries, _ = draft(table_of({"a": numbers[:-1], "b": np.arange(210) % 2}), "b")
    assert entries["a"]["gaps"] == ["refused"]
