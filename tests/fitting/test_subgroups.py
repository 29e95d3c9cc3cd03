"""Accuracy by the values of columns of a public test table: in result, statement and picture."""

import numpy as np
import pytest

import minidp
from minidp.errors import ParameterError
from minidp.run import picture
from minidp.run.verify import verify

pandas = pytest.importorskip("pandas")


def problem(rows=400):
    """Two tables with their labels, to train on and to test on; the labels follow column a."""
    rng = np.random.default_rng(5)
    table = pandas.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "b"])
    table["sex"] = rng.integers(0, 2, rows)
    y = (table["a"] + table["sex"] * rng.normal(size=rows) > 0).astype(int)
    half = rows // 2
    return (table[:half], y[:half]), (table[half:], y[half:])


def fitted(**named):
    (x, y), test = problem()
    named = {"epsilon": 3.0, "delta": 1e-3, "steps": 20, "seed": 1, "quiet": True} | named
    return minidp.fit(x, y, **{"test": test} | named)


def test_each_value_of_a_column_has_its_accuracy(tmp_path, monkeypatch):
    drawn = []
    draw = picture.draw_subgroups
    monkeypatch.setattr(picture, "draw_subgroups", lambda *given: drawn.append(draw(*given)))
    model = fitted(subgroups=["sex"], folder=tmp_path / "run")
    x, y = problem()[1]
    found = model.result["subgroups"]["sex"]
    for value in (0, 1):
        of = (x["sex"] == value).to_numpy()
        expected = {"examples": int(of.sum()), "accuracy": model.score(x[of], y[of])}
        assert found[str(value)] == pytest.approx(expected)
        line = f"| sex | {value} | {of.sum()} | {expected['accuracy']:.2%} |"
        assert line in (tmp_path / "run" / "privacy.md").read_text()
    assert found["0"]["accuracy"] > found["1"]["accuracy"]
    assert len(drawn) == 1 and not verify(tmp_path / "run").failed


def test_a_regression_has_r2():
    (x, _), (test, _) = problem()
    model = fitted(target_bounds=(-3, 3), test=(test, test["a"]), subgroups="sex, sex")
    assert {"examples", "r2"} == set(model.result["subgroups"]["sex"]["1"])


@pytest.mark.parametrize(
    "given, words",
    [
        ({"test": None}, "expected test=.*column 'sex'"),
        ({"subgroups": ["age"]}, "column 'age'"),
        ({"subgroups": ["sex", "a"]}, "at most 50 values, got 'a' with 200"),
    ],
)
def test_training_rows_and_other_columns_are_refused(given, words, tmp_path):
    with pytest.raises(ParameterError, match=words):
        fitted(**{"subgroups": ["sex"], "ledger": tmp_path / "all"} | given)
    assert not (tmp_path / "all").exists()
