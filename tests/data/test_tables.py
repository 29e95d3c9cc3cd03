"""Schemas: what is encoded how, what is refused, and what a draft says."""

import json
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from minidp.data.draft import draft
from minidp.data.schema import Schema
from minidp.data.tables import numbers_of, table_of
from minidp.errors import DtypeError, MinidpError, ParameterError, ShapeError

NUMBER = {"type": "number", "low": 0, "high": 10}
JOB = {"type": "category", "values": ["clerk", "nurse"]}
DATE = {"type": "date", "low": "2000-01-01", "high": "2000-01-11"}
NAN = float("nan")


def encoded(entry, cells):
    return Schema.of({"a": entry}).encode({"a": cells}).tolist()


@pytest.mark.parametrize(
    "entry, cells, expected",
    [
        (NUMBER, [0, 5, 10, -7, 99], [[-1, 0], [0, 0], [1, 0], [-1, 0], [1, 0]]),
        (NUMBER, [" 5 ", "", "?", None, NAN], [[0, 0], *[[0, 1]] * 4]),
        (NUMBER, [True, "inf"], [[pytest.approx(-0.8), 0], [1, 0]]),
        (NUMBER | {"gaps": False}, [5, 10], [[0], [1]]),
        (JOB, [" nurse", "clerk", "pilot", "", None], [[0, 1, 0], [1, 0, 0], *[[0, 0, 1]] * 3]),
        (JOB | {"gaps": False}, ["nurse", "clerk"], [[0, 1], [1, 0]]),
        (
            {"type": "category", "values": [1, 2]},
            [1.0, "2.0", 3],
            [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        ),
        (
            DATE,
            ["2000-01-06", "1999-01-01", "2000-01-11T10:00", ""],
            [[0, 0], [-1, 0], [1, 0], [0, 1]],
        ),
        (DATE, np.array(["2000-01-06", "NaT"], "datetime64[ns]"), [[0, 0], [0, 1]]),
        (DATE, [datetime(2000, 1, 6, 12), None], [[0, 0], [0, 1]]),
    ],
)
def test_a_column_is_encoded_as_its_entry_says(entry, cells, expected):
    assert encoded(entry, cells) == expected


@pytest.mark.parametrize(
    "entry, cells",
    [
        (NUMBER, [5, "abc"]),
        (NUMBER, [5, "1_0"]),
        (NUMBER | {"gaps": False}, [5, None]),
        (JOB | {"gaps": False}, ["nurse", "pilot"]),
        (DATE, ["2000-01-06", "soon"]),
        (NUMBER, np.array(["NaT", "2000-01-06"], "datetime64[ns]")),
    ],
)
def test_what_a_schema_rules_out_is_not_finite_in_its_row_alone(entry, cells):
    found = np.isnan(encoded(entry, cells))
    assert not found[0].any() and found[1].any()


def test_every_part_has_a_norm_of_at_most_1_and_a_category_of_exactly_1():
    schema = Schema.of({"n": NUMBER, "job": JOB, "day": DATE})
    table = {
        "n": [3, -9, None, 1e300],
        "job": ["clerk", "x", None, "nurse"],
        "day": ["", "2000-01-02", "2030-01-01", None],
    }
    rows = schema.encode(table)
    parts = np.split(rows, np.cumsum([each.width for each in schema.inputs])[:-1], axis=1)
    norms = np.array([np.linalg.norm(part, axis=1) for part in parts])
    assert rows.dtype == np.float32 and (norms <= 1).all() and (norms[1] == 1).all()


def test_a_schema_survives_json_and_takes_columns_in_any_order(tmp_path):
    entries = {
        "n": NUMBER | {"gaps": False},
        "day": DATE | {"from": "data"},
        "id": {"type": "ignore"},
        "job": JOB | {"role": "label"},
    }
    (tmp_path / "s.json").write_text(json.dumps(entries))
    schema = Schema.of(tmp_path / "s.json")
    assert Schema.of(json.loads(json.dumps(schema.to_json()))) == schema == Schema.of(entries)
    table = {"day": ["2000-01-01"], "n": [4], "more": [0]}
    assert (schema.encode(table) == schema.encode({"n": [4], "day": ["2000-01-01"]})).all()
    assert schema.label.labels(np.array(["nurse ", "cook"])).tolist() == ["nurse", None]
    assert schema.from_data == ["day"]


@pytest.mark.parametrize(
    "source, words",
    [
        ({}, "expected {"),
        ("no.json", "no.json: no such file"),
        ({"a": {"type": "number", "min": None, "max": 1}}, "column a: unknown min, max"),
        ({"a": {"type": "date", "low": "31.12.2014", "high": None}}, "fill in what is null"),
        (
            {"a": {"type": "date", "low": "31.12.2014", "high": "31.12.2015"}},
            'like "2000-01-01", however the table',
        ),
        ([1], "path of a JSON file"),
        ({"a": {"type": "text"}}, "column a: expected .* number, category, date, ignore"),
        ({"a": {"type": "number", "low": 3, "high": 3}}, '"low" < "high"'),
        ({"a": {"type": "number", "low": -1e308, "high": 1e308}}, '"low" < "high"'),
        ({"a": {"type": "date", "low": "now", "high": "2000-01-01"}}, '"2000-01-01"'),
        ({"a": {"type": "category", "values": []}}, '"values"'),
        ({"a": {"type": "category", "values": ["x", " x"]}}, "different values"),
        ({"a": {"type": "category", "values": ["x", 1]}}, "of one kind"),
        ({"a": NUMBER | {"gap": False}}, "unknown gap; known are"),
        ({"a": NUMBER, "b": DATE | {"role": "label"}}, '"role"'),
        ({"a": NUMBER, "b": JOB | {"role": "label"}, "c": JOB | {"role": "label"}}, "at most one"),
        ({"a": JOB | {"role": "label"}}, "none is an input"),
    ],
)
def test_a_schema_that_says_nothing_clear_is_refused(source, words):
    with pytest.raises((MinidpError, OSError), match=words):
        Schema.of(source)


def test_the_columns_of_refused_values_are_named():
    schema = Schema.of({"n": NUMBER, "job": JOB})
    assert schema.refused(schema.encode({"n": [1, "old"], "job": ["", "nurse"]})) == ["n"]


def test_a_draft_leaves_bounds_open_and_says_what_it_read_from_the_rows():
    table = {
        "n": ["1", "?", "2.5"] * 33,
        "day": ["2000-01-01", "", "2000-02-01"] * 33,
        "job": ["a", "b", ""] * 33,
        "id": [f"x{i}" for i in range(99)],
        "y": [0, 1, 1] * 33,
    }
    found, _ = draft(table_of(table), "y")
    open_bounds = {"low": None, "high": None, "from": "data"}
    assert found == {
        "n": {"type": "number", **open_bounds},
        "day": {"type": "date", **open_bounds},
        "job": {"type": "category", "values": ["a", "b"], "from": "data"},
        "id": {"type": "ignore", "from": "data"},
        "y": {"type": "category", "values": ["0", "1"], "role": "label", "from": "data"},
    }
    with pytest.raises(ParameterError, match="the columns n, day from public"):
        Schema.of(found)


class Frame:
    """Columns as a library that we do not know might hold them."""

    def __init__(self, columns):
        self.columns, self.held = list(columns), columns

    def __getitem__(self, name):
        return SimpleNamespace(to_numpy=lambda: np.array(self.held[name], object))


def pandas_frame(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


@pytest.mark.parametrize("frame", [dict, Frame, pandas_frame])
def test_data_frames_of_any_library_are_tables_and_their_texts_are_named(frame):
    columns = {"n": [1.0, None, 5], "job": ["nurse", None, "clerk"], "b": [True, False, True]}
    schema = Schema.of({"n": NUMBER, "job": JOB, "b": NUMBER})
    assert (schema.encode(frame(columns)) == schema.encode(columns)).all()
    columns["day"] = [datetime(2000, 1, 1)] * 3
    table = table_of(frame(columns))
    with pytest.raises(DtypeError, match="the columns job, day hold no numbers"):
        numbers_of(table)
    assert np.array_equal(numbers_of(table, ["b", "n"]), [[1, 1], [0, NAN], [1, 5]], equal_nan=True)


def test_columns_of_a_table_have_names_and_a_length():
    with pytest.raises(ParameterError, match="different names, got 1, 1"):
        table_of({1: [0], "1": [0]})
    for cells in ([[1, 2]], [1, 2]):
        with pytest.raises(ShapeError, match="one value per row"):
            table_of({"a": cells, "b": [1]})


def test_leading_zeros_are_a_text_unless_a_schema_says_number():
    with pytest.raises(DtypeError, match="the columns zip hold no numbers"):
        numbers_of({"zip": ["01067", "10999"], "n": ["0.5", "-0"]})
    assert encoded(NUMBER, ["05", "00.5"]) == [[0, 0], [pytest.approx(-0.9), 0]]


@pytest.mark.parametrize(
    "name, cells, kind, words",
    [
        ("a", [True, False] * 9, "number", "true or false, as the numbers 1 and 0"),
        ("a", [1.0, 0.0, None] * 9, "number", "true or false, as the numbers 1 and 0; 9 of 27"),
        ("a", list(range(20240110, 20240130)), "date", "a date (20 different)"),
        ("a", list(range(20249110, 20249130)), "number", "a number (20 different)"),
        ("a", [100 + row // 4 for row in range(800)], "number", "train --person a --rows-per-"),
        ("a", [f"w{row // 4}" for row in range(800)], "category", "train --person a --rows-per-"),
        ("a", [1, 2, 3] * 9, "number", 'if they are codes, write "type": "category"'),
        ("a", ["2000-01-01"] * 9, "date", "low and high"),
        ("Unnamed: 0", list(range(27)), "ignore", "it names each row"),
    ],
)
def test_a_draft_knows_truth_values_codes_and_a_saved_index(name, cells, kind, words):
    entries, (said, _) = draft(table_of({name: cells, "y": cells}), "y")
    assert entries[name]["type"] == kind and words in said
    assert (entries[name].get("low") == 0) == (set(cells) <= {True, False, None})


def test_ages_prices_and_names_that_repeat_often_are_no_persons():
    rng = np.random.default_rng(0)
    table = {"age": rng.integers(18, 95, 2000), "price": rng.integers(0, 4000, 2000) / 10}
    _, lines = draft(table_of(table | {"y": rng.integers(0, 2, 2000)}), "y")
    assert not any("--person" in line for line in lines)


def test_a_schema_whose_values_are_twice_there_names_them():
    with pytest.raises(ParameterError, match="got x more than once"):
        Schema.of({"a": {"type": "category", "values": ["x", "y", " x"]}})


def test_a_sparse_array_is_no_table_although_it_may_be_a_dict():
    class Keys(dict):
        """As SciPy 1.13 has arrays by a dictionary of keys."""

        def tocsr(self):
            raise NotImplementedError

    assert table_of(Keys({(0, 0): 1.0})) is None
    assert table_of(sparse.dok_array(np.eye(3))) is None
