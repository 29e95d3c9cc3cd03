"""What `fit` cannot finish is refused in one line before the first charge; odd forms of numbers and
labels are taken.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import minidp
from minidp import nn
from minidp.errors import DivergedError, MinidpError, ParameterError
from minidp.host import memory
from minidp.privacy import Ledger
from minidp.run.verify import verify

X = np.random.default_rng(3).normal(size=(300, 4))
SIDES = (X[:, 0] > 0).astype(int)


TABLE = {"n": X[:, 0], "job": np.array(["clerk", "?", "cook"])[np.arange(300) % 3]}
JOB = {"type": "category", "values": ["clerk", "nurse"]}
SCHEMA = {"n": {"type": "number", "low": -3, "high": 3}, "job": JOB}
LABELLED = SCHEMA | {"y": {"type": "category", "values": [0, 1], "role": "label"}}
STRICT = SCHEMA | {"job": JOB | {"gaps": False}}


def fitted(y=SIDES, x=X, **named):
    named = {"epsilon": 2.0, "delta": 1e-4, "steps": 5, "seed": 1, "quiet": True} | named
    return minidp.fit(x, y, **named)


def clamped():
    """A network with a layer of the name that the scaling takes."""
    dense = nn.Dense(4, 2, rng=np.random.default_rng(0))
    return nn.Sequential([nn.Clamp(1.0, name="scale"), dense], (4,))


@pytest.mark.parametrize(
    "named, words",
    [
        ({"y": np.array(["b", "\ud800"])[SIDES]}, "texts that UTF-8 can hold"),
        ({"y": SIDES.astype(object) * 2**70}, "numbers that 64 bits hold"),
        ({"classes": [0, 1, np.nan]}, "expected classes="),
        ({"bounds": (0, 1e300)}, "float32 can hold"),
        ({"bounds": ([0, 0, 0], [1, 1])}, "two arrays of shape"),
        ({"bounds": (-4, 4), "network": clamped()}, "layers with different names"),
        ({"learning_rate": 1e38, "clip_norm": 1e12}, "smaller learning rate"),
        ({"check": Fraction(1)}, "check=Fraction(1, 1) to be True or False"),
        ({"scale": "private", "bounds": (0, 1)}, "with no other"),
        ({"epsilon": 0}, "epsilon=0 to be above 0"),
        ({"epsilon": math.inf}, "no place in a ledger"),
        ({"ledger": None, "ledger_limit": 1}, "ledger_limit= together with ledger=FILE"),
        ({"y": SIDES * 1.0}, "floating-point numbers. For regression give target_bounds="),
        ({"y": np.arange(300) // 5}, "more different labels than a tenth of the rows"),
        ({"schema": SCHEMA}, "expected a table with named columns"),
        ({"schema": SCHEMA, "x": TABLE | {"zip": SIDES}}, "does not name: zip; describe"),
        ({"schema": SCHEMA, "x": {"n": SIDES}}, "columns job, which the schema names"),
        ({"schema": SCHEMA, "x": TABLE, "person": "n", "rows_per_person": 1}, "is no input: call"),
        ({"schema": SCHEMA, "x": TABLE, "y": None}, "marks by"),
        ({"schema": SCHEMA, "x": TABLE, "scale": "none"}, "a schema has the bounds"),
        ({"schema": LABELLED, "x": TABLE, "classes": [0, 1]}, "only if the schema has no label"),
        ({"schema": LABELLED, "x": TABLE, "y": SIDES + 1}, "none of the 2 classes"),
        ({"schema": STRICT, "x": TABLE}, "what gaps=false rules out"),
        ({"delta": 2.0}, "delta=2.0"),
        ({"lot_size": 301}, "lot_size=301 to be at most the 300 rows"),
        ({"hidden": "64"}, "hidden='64'"),
        ({"example_weight": [1.0]}, "same number"),
        ({"test": (1,)}, "a pair"),
        ({"test": (X, SIDES)}, "got the training rows"),
        ({"test": (X.copy(), SIDES)}, "got the training rows"),
        ({"test": (X[:, :3], SIDES)}, "got (3,)"),
        ({"test": (X[:9], SIDES)}, "y has 300"),
        ({"network": [1]}, "nn.Sequential"),
        ({"network": clamped(), "hidden": 3}, "network=, got both"),
        (
            {"network": clamped(), "target_bounds": (0, 1)},
            "network: expected one for inputs (4,) and 1",
        ),
        ({"folder": 3}, "folder=3 to be the path"),
        ({"folder": ""}, "folder='' to be the path"),
        ({"schema": "none.json", "x": TABLE}, "the path of a JSON file, got 'none.json'"),
        ({"epsilon": np.ones(2)}, "to be a number"),
        ({"y": np.ma.masked_array(SIDES)}, "drop the masked rows"),
    ],
)
def test_what_would_fail_later_is_refused_before_the_charge(named, words, tmp_path):
    with pytest.raises(MinidpError) as caught:
        fitted(**{"folder": tmp_path / "run", "ledger": tmp_path / "all.json"} | named)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not list(tmp_path.glob("**/*.json"))


def test_numbers_of_any_kind_are_taken_and_written_down(tmp_path):
    named = {"steps": np.int64(5), "epsilon": Fraction(2), "delta": Fraction(1, 10_000)}
    named |= {"clip_norm": Fraction(1, 4), "bounds": (Fraction(-4), 4)}
    model = fitted(**named, folder=tmp_path / "run")
    assert model.result["config"]["bounds"] == [-4, 4] and not verify(tmp_path / "run").failed


def test_layers_that_memory_cannot_hold_are_refused_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(memory, "physical", lambda: 2**33)
    monkeypatch.setattr(nn, "Dense", None)
    with pytest.raises(
        ParameterError, match=r"take 7,000,000,002 weights and about 3,278 GiB, .* has 8 GiB"
    ):
        fitted(hidden=10**9)


def test_labels_of_bytes_are_text():
    labels = np.array([b"no", b"yes"])[SIDES]
    model = fitted(labels, steps=50)
    assert model.classes.tolist() == ["no", "yes"] and model.score(X, labels) > 0.8
    assert model.score(X, labels) == model.score(X, labels.astype(str))


def test_a_fit_that_overflows_names_the_shared_ledger_that_holds_its_charge(tmp_path):
    path = tmp_path / "all.json"
    with pytest.raises(
        DivergedError, match=r"no model: after . lots .*all.json holds the charge of all 5"
    ):
        fitted(epsilon=1e-3, learning_rate=2e38, ledger=path)
    assert Ledger.load(path).count_of("step") == 5
