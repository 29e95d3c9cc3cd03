"""Files and frames as they come: read, or refused in a sentence."""

import warnings

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import minidp
from minidp.__main__ import main
from minidp.data.cells import places_among
from minidp.data.draft import draft
from minidp.data.files import labels_of, read_table
from minidp.data.schema import Schema
from minidp.data.tables import table_of
from minidp.errors import ParameterError, RowsError

DAY = "2015-12-31"
MANY = [f"n{row % 70}" for row in range(140)]


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


def test_a_column_that_fell_out_of_its_schema_is_named(table, capsys):
    model = fitted(table)
    for name, change, words in (
        ("grade", table.grade.map({1: "one", 2: "two", 3: "three"}), "none of its categories"),
        ("age", table.age * 1000, "beyond its bounds"),
        ("age", "old", "no number like 1234.5"),
    ):
        odd = table.assign(**{name: change})
        with pytest.warns(UserWarning) as told:
            model.predict(odd)
        line = str(told[0].message)
        assert line.startswith(f"column {name}: 900 of its first 900") and words in line
    fitted(table.assign(age=table.age * 1000), quiet=False)
    assert "NOTICE: column age: 900 of its first 900" in capsys.readouterr().err
    fitted(table.assign(age=np.where(table.index < 60, 176, table.age)))
    assert "NOTICE: column age: 60 of its first 900" in capsys.readouterr().err
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


def test_names_that_repeat_are_said_where_no_person_is_given(table, capsys):
    table = table.assign(patient_id=np.arange(len(table)) // 3)
    schema = SCHEMA | {"patient_id": {"type": "ignore"}}
    given = {"schema": schema, "epsilon": 1.0, "delta": 1e-4, "seed": 1, "quiet": False}
    minidp.fit(table, **given)
    assert "NOTICE: the values of column patient_id repeat" in capsys.readouterr().err
    minidp.fit(table.assign(patient_id=np.arange(len(table))), **given)
    minidp.fit(table, person="patient_id", rows_per_person=3, **given)
    assert "patient_id" not in capsys.readouterr().err


def test_a_file_of_windows_is_read_with_one_notice(tmp_path, capsys):
    (tmp_path / "t.csv").write_bytes(";ort\n0;Köln\n".encode("cp1252"))
    assert read_table(tmp_path / "t.csv") == {"ort": ["Köln"]}
    said = capsys.readouterr().err
    assert said.count("read as cp1252") == said.count("no name, as pandas writes") == 1


def test_a_first_line_of_numbers_is_said(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n")
    assert read_table(tmp_path / "t.csv") == {"1": ["3"], "2": ["4"]}
    assert "holds numbers" in capsys.readouterr().err


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


def test_a_schema_lists_what_says_that_a_value_is_missing():
    entry = {"type": "number", "low": 0, "high": 99, "gaps": ["-9", "late"]}
    (column,) = Schema.of({"a": entry, "b": {"type": "ignore"}}).columns[:1]
    for cells in ([-9, 5, 7.5], ["-9", "5", "7.5"], ["late", "5", "7.5"], [-9.0, "5", 7.5]):
        numbers, gaps = column.numbers(np.array(cells, dtype=object if "5" in cells else None))
        assert gaps.tolist() == [True, False, False] and numbers[1:].tolist() == [5, 7.5]
    for wrong in ([], "late", [9], None):
        with pytest.raises(ParameterError, match='"gaps" to be true, false, or a list|null'):
            Schema.of({"a": {**entry, "gaps": wrong}})


def test_rows_in_another_order_than_their_labels_or_persons_are_refused(table):
    x, y = table[["grade", "age"]], table.sick
    with pytest.raises(ParameterError, match="y: its index is not that of x, and rows are taken"):
        minidp.fit(x, y.iloc[::-1], epsilon=1, steps=2, quiet=True)
    person = pandas.Series(range(900)).sample(frac=1, random_state=1)
    with pytest.raises(ParameterError, match="person: its index .* give person.loc"):
        minidp.fit(x, y, epsilon=1, steps=2, quiet=True, person=person, rows_per_person=1)


def test_weights_of_persons_by_an_index_are_refused(table):
    x, y, more = table[["grade", "age"]], table.sick, {"epsilon": 1, "steps": 2, "quiet": True}
    weight = pandas.Series(np.ones(900))
    with pytest.raises(ParameterError, match="example_weight: its index is not that of x"):
        minidp.fit(x, y, example_weight=weight[::-1], **more)
    with pytest.raises(ParameterError, match="in the order of the persons' sorted names"):
        minidp.fit(x, y, example_weight=weight, person=np.arange(900), rows_per_person=1, **more)
