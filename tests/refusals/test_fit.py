"""What `minidp.fit` refuses, in one line, before it writes a file or charges anything."""

import math
from fractions import Fraction

import numpy as np
import pandas
import pytest
from scipy import sparse

from minidp import nn
from minidp.errors import MinidpError
from tests.support.fitting import LABELS, ROWS, X, fitted

SIDES = (X[:, 0] > 0).astype(int)
JOB = {"type": "category", "values": ["clerk", "nurse"]}
NAMED = np.where(SIDES, "a", "b").astype(object)
NAMED[3] = pandas.NA
SCHEMA = {"n": {"type": "number", "low": -3, "high": 3}, "job": JOB}
TABLE = {"n": X[:, 0], "job": np.array(["clerk", "?", "cook"])[np.arange(ROWS) % 3]}
OF_TABLE = {"schema": SCHEMA, "x": TABLE}
LABELLED = SCHEMA | {"y": {"type": "category", "values": [0, 1], "role": "label"}}
OF_FIVE = {"person": np.arange(ROWS) % 5, "rows_per_person": 3}
CLAMP = nn.Clamp(1.0, name="scale")  # a layer of the name that the scaling takes
CLAMPED = nn.Sequential([CLAMP, nn.Dense(6, 3, rng=np.random.default_rng(0))], 6)

UNUSABLE = {  # rows that no run can learn from
    f"x: {ROWS} of {ROWS} rows": {"x": np.full_like(X, np.nan)},
    f"y: {ROWS} of {ROWS} labels are none of the 3 classes (ant, bee, cow)": {
        "y": np.full(ROWS, "dog"),
        "classes": ["ant", "bee", "cow"],
    },
    f"example_weight: {ROWS} of {ROWS} weights are not in": {"example_weight": np.full(ROWS, 2.0)},
}
REFUSED = {
    **UNUSABLE,
    "texts that UTF-8 can hold": {"y": np.array(["b", "\ud800"])[SIDES]},
    "numbers that 64 bits hold": {"y": SIDES.astype(object) * 2**70},
    "floating-point numbers. For regression give target_bounds=": {"y": SIDES * 1.5},
    "more different labels than a tenth of the rows": {"y": np.arange(ROWS) // 5},
    "drop the masked rows": {"y": np.ma.masked_array(SIDES)},
    "expected classes=": {"y": SIDES, "classes": [0, 1, np.nan]},
    "float32 can hold": {"bounds": (0, 1e300)},
    "two arrays of shape": {"bounds": ([0, 0, 0], [1, 1])},
    "none with 'unit-norm'": {"scale": "none", "bounds": (0, 1)},
    "layers with different names": {"bounds": (-4, 4), "network": CLAMPED},
    "nn.Sequential": {"network": [1]},
    "network=, got both": {"network": CLAMPED, "hidden": 3},
    "network: expected one for inputs (6,) and 1": {
        "y": SIDES,
        "network": CLAMPED,
        "target_bounds": (0, 1),
    },
    "hidden='64'": {"hidden": "64"},
    "target_bounds='12' to be numbers": {"y": X[:, 0], "target_bounds": "12"},
    "got '12'": {"bounds": "12"},
    'give table["pay"]'.replace('"', "'"): {"y": "pay"},
    "classes: expected a list or an array, got the text 'ab'": {"classes": "ab"},
    "none of the 2 classes (0, 1)": {"y": np.where(np.arange(ROWS) == 3, np.nan, SIDES)},
    f"1 of {ROWS} labels are none of the 2 classes": {"y": NAMED},
    f"person: 1 of {ROWS} rows have no person": {"person": NAMED, "rows_per_person": 9},
    "person: expected texts, or numbers that 64 bits hold": {
        "person": SIDES.astype(object) + 2**64,
        "rows_per_person": 9,
    },
    "sparse_output=False": {"x": sparse.csr_matrix(X)},
    "protects nobody": {"epsilon": 1e6},
    "ledger= a ndarray to be the path": {"ledger": X},
    "folder= a ndarray to be the path": {"folder": X},
    "smaller learning rate": {"learning_rate": 1e38, "clip_norm": 1e12},
    f"lot_size={ROWS + 1} to be at most the {ROWS} rows": {"lot_size": ROWS + 1},
    "epsilon=0 to be above 0": {"epsilon": 0},
    "to be a number": {"epsilon": np.ones(2)},
    "no place in a ledger": {"epsilon": math.inf},
    "delta=2.0": {"delta": 2.0},
    "ledger_limit= together with ledger=FILE": {"ledger": None, "ledger_limit": 1},
    "check=Fraction(1, 1) to be True or False": {"check": Fraction(1)},
    "folder=3 to be the path": {"folder": 3},
    "folder='' to be the path": {"folder": ""},
    "example_weight ... the same number": {"example_weight": [1.0]},
    "a pair": {"test": (1,)},
    "expected public rows for test, got the training rows": {"test": (X, LABELS)},
    "got the training rows": {"test": (X.copy(), LABELS)},
    "got (3,)": {"test": (X[:, :3], LABELS)},
    f"y has {ROWS}": {"test": (X[:9], LABELS)},
    "schema: none.json: no such file": {**OF_TABLE, "schema": "none.json"},
    "expected a table with named columns": {"schema": SCHEMA},
    "does not name: zip; describe": {"schema": SCHEMA, "x": TABLE | {"zip": SIDES}},
    "columns job, which the schema names": {"schema": SCHEMA, "x": {"n": SIDES}},
    "is no input: call": {**OF_TABLE, "person": "n", "rows_per_person": 1},
    "marks by": {**OF_TABLE, "y": None},
    "a schema has the bounds": {**OF_TABLE, "bounds": (0, 1)},
    "only if the schema has no label": {"schema": LABELLED, "x": TABLE, "classes": [0, 1]},
    "none of the 2 classes": {"schema": LABELLED, "x": TABLE, "y": SIDES + 1},
    "what gaps=false rules out": {**OF_TABLE, "schema": SCHEMA | {"job": JOB | {"gaps": False}}},
    "rows have no person": {**OF_FIVE, "person": np.full(ROWS, np.nan), "check": False},
    "the name of a column": {**OF_FIVE, "person": "who"},
    "at most the 5 persons": {**OF_FIVE, "lot_size": 6},
    "persons has 5, example_weight has 1200": {**OF_FIVE, "example_weight": np.ones(ROWS)},
}


@pytest.mark.parametrize("words, named", REFUSED.items(), ids=REFUSED)
def test_what_would_fail_later_is_refused_before_anything_is_written(words, named, tmp_path):
    with pytest.raises(MinidpError) as caught:
        fitted(**{"folder": tmp_path / "run", "ledger": tmp_path / "all.json"} | named)
    said = str(caught.value)
    assert all(part in said for part in words.split(" ... ")) and "\n" not in said, said
    assert not list(tmp_path.glob("**/*.json"))


@pytest.mark.parametrize("named", UNUSABLE.values(), ids=UNUSABLE)
def test_unusable_rows_are_left_out_where_nothing_is_to_be_checked(named):
    named = {"classes": ["ant", "bee", "cow"], "check": False} | named
    assert fitted(**named).epsilon.upper <= 2.0
