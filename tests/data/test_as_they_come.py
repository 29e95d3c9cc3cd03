"""Files and frames as they come: read, or refused in a sentence."""

import gzip
import warnings
import zipfile

import numpy as np
import pandas
import pytest

import minidp
from minidp.__main__ import main
from minidp.commands.reading import is_table, read_csv
from minidp.data.draft import draft, in_words
from minidp.data.schema import places_among
from minidp.data.tables import table_of
from minidp.errors import DataError, ParameterError

PLAIN = "a,b\n1,x\n2,y\n"
READ = {"a": ["1", "2"], "b": ["x", "y"]}


@pytest.mark.parametrize(
    "name, content",
    [
        ("t.csv", PLAIN.encode()),
        ("t.csv", PLAIN.encode("utf-8-sig")),
        ("t.csv", PLAIN.encode("utf-16")),
        ("t.csv", PLAIN.replace(",", ";").encode()),
        ("t.tsv", PLAIN.replace(",", "\t").encode()),
        ("t.txt", PLAIN.replace("\n", "\r\n").encode()),
        ("t.csv.gz", gzip.compress(PLAIN.replace(",", ";").encode("utf-16"))),
        ("t.csv", b"\n".join(b"," + line for line in PLAIN.strip().encode().split(b"\n"))),
        ("t.csv", b'"a";"b"\n"1";"x"\n2;"y"\n'),
    ],
)
def test_files_are_read(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert is_table(name) and read_csv(tmp_path / name) == READ


def test_a_zip_of_one_file_is_read_and_one_of_two_is_refused(tmp_path):
    for names in (["a.csv"], ["a.csv", "b.csv"]):
        with zipfile.ZipFile(tmp_path / "t.zip", "w") as packed:
            for name in names:
                packed.writestr(name, PLAIN)
        if names == ["a.csv"]:
            assert read_csv(tmp_path / "t.zip") == READ
    with pytest.raises(DataError, match="expected one file in it, got a.csv, b.csv"):
        read_csv(tmp_path / "t.zip")


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("t.csv", b"a,,b\n1,2,3\n", "columns without a name"),
        ("t.csv", b"a,b\n1,\xff\n", "UTF-8 or UTF-16"),
        ("t.csv.gz", b"a,b\n1,2\n", "no CSV file"),
        ("t.csv.zip", b"a,b\n1,2\n", "no CSV file"),
        ("t.csv", b"a;b\n1;2;3\n", "line 2: expected 2 cells, got 3"),
    ],
)
def test_files_are_refused_in_a_sentence(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words):
        read_csv(tmp_path / name)


@pytest.mark.parametrize("suffix, reader", [("parquet", "read_parquet"), ("xlsx", "read_excel")])
def test_tables_of_other_programs_are_called_by_their_name(suffix, reader):
    with pytest.raises(ParameterError, match=rf"convert it: .*pandas.{reader}\('t.{suffix}'\)"):
        is_table(f"t.{suffix}")


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
    table = table_of(read_csv(tmp_path / "t.csv"))
    said = dict(line.split(": ", 1) for line in in_words(table, draft(table, "sick")))
    assert said["city"] == "a category of 3 values"
    assert said["visits"] == said["year"] == "a number; fill in low and high"
    assert "100 different texts" in said["name"] and '"values"' in said["name"]
    assert "most are numbers" in said["note"]
    assert said["sick"].startswith("the label: a category of 2 values; for a number")
    assert draft(table, "visits")["visits"]["type"] == "number"  # 20 numbers are no classes
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
