"""Files and frames as they come: read, or refused in a sentence."""

import gzip
import io
import sys
import warnings
import zipfile
from datetime import date

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import minidp
from minidp.__main__ import main
from minidp.data.draft import draft
from minidp.data.files import is_table, labels_of, read_table
from minidp.data.schema import Schema, places_among
from minidp.data.tables import table_of
from minidp.errors import DataError, MinidpError, ParameterError, RowsError

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
    "one unreadable number": (
        [*map(str, range(99)), "old"],
        "most of its 100 texts are numbers, b",
    ),
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
    "Latin-1": (("t.csv", "a,b\n1,é\n".encode("latin-1")), "no CSV file in UTF-8 or UTF-16"),
    "nothing": (("t.csv", b""), "empty: expected a first line"),
    "no name": (("t.csv", b"a,,b\n1,2,3\n"), "columns without a name"),
    "one name twice": (("t.csv", b"a,a,b\n1,2,3\n"), "names a more than once"),
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
        table = table_of(given)
        entries, (line, *_) = draft(table, "b")
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


def test_a_file_is_fitted_and_predicted_by_its_path(table, tmp_path):
    path = tmp_path / "people.csv"
    table[["age", "sick"]].to_csv(path, index=False)
    given = {"label": "sick", "epsilon": 4.0, "delta": 1e-4, "seed": 1, "quiet": True}
    model = minidp.fit(path, **given)
    assert model.classes.tolist() == ["False", "True"] and "people.csv" in model.statement
    rows = table[["age"]]
    expected = minidp.fit(rows, table.sick, **given | {"label": None}).predict_proba(rows)
    for each in (path, polars.DataFrame({"age": table.age}), pyarrow.table(dict(rows))):
        assert (model.predict_proba(each) == expected).all()
    table[["age", "sick"]][::-1].to_csv(tmp_path / "public.csv", index=False)
    tested = minidp.fit(path, test=(tmp_path / "public.csv", None), **given)
    assert tested.result["test_accuracy"] == model.score(rows, table.sick.astype(str))
    for odd in ({"label": "no"}, {"y": table.sick}, {"x": rows.to_numpy()}):
        with pytest.raises(ParameterError, match="expected the name of a column of x, without y"):
            minidp.fit(**{"x": path} | given | odd)
    with pytest.raises(ParameterError, match="'table.npy': expected a table, such as a .csv"):
        minidp.fit("table.npy", **given)


@pytest.mark.parametrize(
    "values, cells, places",
    [
        (["1", "2", "3"], ["1.0", 2, 3.0, "3", "02", None, True], [0, 1, 2, 2, 3, 3, 0]),
        ([1, 2], ["1", "1.00", "2e0", 2.5, ""], [0, 0, 1, 2, 2]),
        (["true", "false"], [True, False, "TRUE", np.True_, "yes"], [0, 1, 0, 0, 2]),
        (["01067", "10999"], ["01067", 1067, "1067", 10999, "10999.0"], [0, 2, 2, 1, 1]),
        (["0.50", "1"], [0.5, "0.5", ".5", 1.0, True], [0, 0, 2, 1, 1]),
        (["1", "true"], ["1", "true", 1.0, True], [0, 1, 0, 2]),
        (["a", "7", "NA"], ["a", 7.0, "NA", "A"], [0, 1, 2, 3]),
        (["1e3"], [1000, "1000.0"], [0, 0]),
    ],
)
def test_a_number_is_one_value_however_it_is_written(values, cells, places):
    assert places_among(values, cells).tolist() == places


SCHEMA = {
    "grade": {"type": "category", "values": ["1", "2", "3"]},
    "age": {"type": "number", "low": 0, "high": 99},
    "sick": {"type": "category", "values": ["0", "1"], "role": "label"},
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    grade = rng.integers(1, 4, 900)
    return pandas.DataFrame({"grade": grade, "age": rng.integers(18, 90, 900), "sick": grade > 1})


def fitted(table, **given):
    given = {"schema": SCHEMA, "epsilon": 4.0, "delta": 1e-4, "seed": 1, "quiet": True} | given
    return minidp.fit(table, None, **given)


def test_a_frame_with_a_gap_and_labels_of_another_type_are_the_same_values(table):
    model, wide = fitted(table), table.astype({"grade": float, "sick": int})
    assert model.predict(wide).tolist() == model.predict(table).tolist()
    for y in (table.sick, wide.sick, wide.sick.astype(str), wide.sick.astype(float)):
        assert model.score(table, y) == model.score(table, wide.sick.astype(str)) > 0.8
    assert model.per_class(table, wide.sick)["1"]["examples"] == int(table.sick.sum())


def test_a_column_that_fell_out_of_its_schema_is_named(table, capsys):
    model = fitted(table)
    for name, change, words in (
        ("grade", table.grade.map({1: "one", 2: "two", 3: "three"}), "none of its categories"),
        ("age", table.age * 1000, "beyond its bounds"),
        ("age", "old", "cannot be read"),
    ):
        odd = table.assign(**{name: change})
        with pytest.warns(UserWarning) as told:
            model.predict(odd)
        line = str(told[0].message)
        assert line.startswith(f"column {name}: 900 of its first 900") and words in line
    fitted(table.assign(age=table.age * 1000), quiet=False)
    assert "NOTICE: column age: 900 of its first 900" in capsys.readouterr().err
    with pytest.raises(RowsError):
        fitted(table.assign(age=table.age.astype(str) + ["x", *[""] * 899]), quiet=False)
    assert "NOTICE: the columns age hold text in place" in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(table.assign(age=np.where(table.age < 40, 1000, table.age)))


def test_a_row_that_is_refused_gets_no_label(table, tmp_path):
    fitted(table).save(tmp_path / "model.npz")
    rows = table[["grade", "age"]].iloc[:20].astype({"age": object})
    rows.loc[[3, 7], "age"] = "45,5"
    with pytest.warns(UserWarning, match="2 of 20 rows"):
        found = minidp.load_model(tmp_path / "model.npz").predict(rows)
    assert [place for place, label in enumerate(found) if label is None] == [3, 7]
    rows.to_csv(tmp_path / "x.csv", index=False)
    main(["predict", f"{tmp_path}/model.npz", f"{tmp_path}/x.csv", "--out", f"{tmp_path}/y.csv"])
    written = (tmp_path / "y.csv").read_text().splitlines()
    assert len(written) == 21
    assert [place for place, each in enumerate(written) if each == '""'] == [4, 8]


def test_a_draft_says_what_it_takes_each_column_for(capsys, tmp_path):
    rows = range(100)
    lines = ["visits,city,name,note,year,sick"]
    for row in rows:
        note = "NULL" if row % 9 == 0 else row * 1.5
        lines.append(f"{row % 20},{'abc'[row % 3]},n{row},{note},{1900 + row},{row % 2}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    table = table_of(read_table(tmp_path / "t.csv"))
    entries, lines = draft(table, "sick")
    said = dict(line.split(": ", 1) for line in lines)
    assert said["city"] == "a category of 3 values"
    assert said["visits"] == "a number (20 different); fill in low and high"
    assert "100 texts are all different" in said["name"]
    assert entries["note"]["type"] == "number"  # NULL is a gap
    assert said["sick"].startswith("the label: a category of 2 values; for a number")
    assert draft(table, "visits")[0]["visits"]["type"] == "number"  # 20 numbers are no classes
    assert main(["schema", f"{tmp_path}/t.csv", "--label", "sick", "--out", f"{tmp_path}/s"]) == 0
    assert "visits: a number" in capsys.readouterr().out


def test_an_estimator_scores_labels_of_any_type_that_the_schema_means(table):
    from sklearn.model_selection import cross_val_score

    x = table[["grade", "age"]]
    for y in (table.sick, table.sick.astype(int), table.sick.astype(float), table.sick.astype(str)):
        y = y if y.dtype.kind in "bif" else table.sick.map({True: "1", False: "0"})
        model = minidp.PrivateClassifier(
            epsilon=4.0, delta=1e-4, schema=SCHEMA, random_state=1, quiet=True
        )
        assert cross_val_score(model, x, y, cv=2).min() > 0.7
        model.fit(x, y)
        assert set(model.predict(x)) <= set(np.unique(y)) and list(model.classes_) == sorted(set(y))


def test_a_format_is_for_texts_alone_and_a_column_of_dates_is_no_misfit():
    entry = {"type": "date", "low": "2000-01-01", "high": DAY, "format": "31.12.2015"}
    schema = Schema.of({"day": entry})
    days = np.array([DAY] * 20, "datetime64[ns]")
    for cells in (
        ["31.12.2015"] * 20,
        days,
        days.astype("M8[s]").astype(object),
        pandas.Series(days),
    ):
        assert schema.fell_out(table_of({"day": cells})) == []
        assert (schema.encode({"day": cells}) == [1, 0]).all()
    for odd in ({"format": "12/2015"}, {"format": 1}, {"type": "category", "values": ["a"]}):
        with pytest.raises(ParameterError, match='column day: expected "format"'):
            Schema.of({"day": entry | odd})
    with pytest.raises(ParameterError, match="what is null of the columns day"):
        Schema.of({"day": entry | {"format": None}})


@pytest.mark.parametrize(
    "name, cells, words",
    [
        ("patient_id", [*range(50)] * 4, "50 persons have 200 rows. `train --person patient_id"),
        ("Customer No", [*range(50)] * 4, "train --person 'Customer No' --rows"),
        ("store id", [f"s{row}" for row in range(50)] * 2, "50 persons have 100 rows"),
        ("id", [*range(200)], "ignored, because it names each row; for a number"),
        ("paid", [*range(50)] * 4, "a number (50 different)"),
        ("customer_type", ["a", "b"] * 9, "a category of 2 values"),
        ("user", ["ann", "bob"] * 9, "a category of 2 values"),  # two persons are too few
    ],
)
def test_a_column_of_persons_is_known_by_its_name_and_its_repetition(name, cells, words):
    entries, (line, _) = draft(table_of({name: cells, "y": np.arange(len(cells)) % 2}), "y")
    assert words in line and (entries[name]["type"] == "ignore") == (
        "whose" in line or "id" == name
    )


def test_a_label_of_many_values_is_to_be_filled_in_and_letters_stay_readable(tmp_path):
    lines = "\n".join(f"{city},{number}" for city, number in zip(MANY, "12" * 70))
    (tmp_path / "t.csv").write_text(f"town,Zürich\n{lines}", encoding="utf-8")
    table, schema = str(tmp_path / "t.csv"), tmp_path / "s.json"
    assert main(["schema", table, "--label", "town", "--out", str(schema)]) == 0
    assert "Zürich" in schema.read_text(encoding="utf-8")
    with pytest.raises(ParameterError, match="fill in what is null of the columns town, Zürich"):
        Schema.of(schema)


@pytest.mark.parametrize(
    "cells, labels",
    [
        (["1", "-20"], [1, -20]),
        (["1", "NULL", ""], [1, None, None]),
        (["1.0", "2.5"], [1, 2.5]),
        (["01", "1", "10"], ["01", "1", "10"]),
        (["0", "0.5", "00.5"], ["0", "0.5", "00.5"]),
        (["true", "false"], ["true", "false"]),
        (["yes", "", "NA"], ["yes", None, "NA"]),
    ],
)
def test_labels_of_a_file_are_numbers_or_texts_and_a_leading_zero_makes_a_text(cells, labels):
    assert labels_of(cells).tolist() == labels
