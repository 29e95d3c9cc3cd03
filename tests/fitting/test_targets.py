"""A regression finds where its target lies, privately, however wide the public limits are."""

import math

import numpy as np
import pytest

import minidp
from minidp.errors import ParameterError
from minidp.fitting.column_look import equal, narrowed_coarsely, raw_counts

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (6000, 3))
Y = 1000 + 10 * X[:, 0]
ANYWHERE = (-math.inf, math.inf)


def fitted(y, bounds, rows=4500, **named):
    named = {"epsilon": 1.0, "delta": 1e-5, "seed": 1, "quiet": True, "bounds": (0, 1)} | named
    return minidp.fit(X[:rows], y[:rows], target_bounds=bounds, **named)


@pytest.mark.parametrize("bounds", [(900, 1100), (0, 2000), (-1e9, 1e9), (0, math.inf), ANYWHERE])
def test_limits_that_are_too_wide_or_unknown_cost_little(bounds):
    near, wide = (fitted(Y, each).score(X[4500:], Y[4500:]) for each in ((1000, 1010), bounds))
    assert wide > near - 0.03


@pytest.mark.parametrize("offset, spread", [(1e9, 1.0), (1e6, 1e-3), (-5e8, 1e12)])
def test_offsets_and_spreads_change_nothing(offset, spread):
    y = 3 * X[:, 0] - X[:, 1] + 0.1 * RNG.normal(size=len(X))
    plain, other = (fitted(each, ANYWHERE) for each in (y, offset + spread * y))
    assert other.score(X, offset + spread * y) > plain.score(X, y) - 0.03


def test_predictions_stay_within_public_limits():
    y = np.clip(4 * X[:, 0] - 2, 0, 1)
    model = fitted(y, (0, 1))
    found = model.predict(X)
    assert found.min() >= 0 and found.max() <= 1
    assert 0 <= model.target_bounds[0] < model.target_bounds[1] <= 1


def test_the_look_is_charged_before_training_and_said_in_ledger_and_statement():
    model = fitted(Y, (0, 2000), rows=2000)
    looks = [
        name for name in model.result["settings"] if name.startswith("target_") and "look" in name
    ]
    assert len(looks) >= 2 and model.epsilon <= 1
    assert "noisy histograms of the target" in model.statement
    assert "a private look" in model.result["choices"]["target"]
    assert model.ledger.count_of("setup") >= len(looks) + 2


def test_an_interrupted_regression_looks_once(tmp_path, monkeypatch):
    given = {"rows": 2000, "steps": 20}
    whole = fitted(Y, ANYWHERE, **given)

    def interrupted(self, *lot, step=minidp.train.Trainer.step):
        step(self, *lot)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("minidp.train.Trainer.step", interrupted)
        fitted(Y, ANYWHERE, **given, folder=tmp_path / "run")
    monkeypatch.setattr("minidp.fitting.column_look.raw_counts", None)  # the look is not made again
    again = fitted(Y, ANYWHERE, **given, folder=tmp_path / "run")
    assert again.target_bounds == whole.target_bounds
    assert (again.predict(X) == whole.predict(X)).all()


def test_targets_beyond_their_limits_are_named_to_their_owner(capsys):
    fitted(Y, (0, 1), rows=500)
    assert "500 of 500 targets are beyond target_bounds=(0, 1)" in capsys.readouterr().err


def test_too_few_rows_for_unknown_limits_are_refused_before_any_charge(tmp_path):
    with pytest.raises(ParameterError, match="40 rows are too few for a private look at the targ"):
        fitted(Y, ANYWHERE, rows=40, ledger=tmp_path / "all.json")
    assert not (tmp_path / "all.json").exists()


def test_a_regression_keeps_learning_with_rows():
    x = np.random.default_rng(1).uniform(-1, 1, (20_000, 3))
    x[:, 1] = x[:, 0] + 0.1 * x[:, 1]
    y = 2 * x[:, 0] - 1.5 * x[:, 1] + 0.5 * x[:, 2] ** 2

    def score(rows):
        given = {"bounds": (-1.1, 1.1), "target_bounds": (-2, 2), "epsilon": 1.0, "delta": 1e-5}
        return minidp.fit(x[:rows], y[:rows], seed=1, quiet=True, **given).score(x, y)

    few, many = score(2000), score(16_000)
    assert many > few + 0.02 and many > 0.98


def test_a_narrow_target_is_found_in_wide_cells_beside_noise():
    rng = np.random.default_rng(3)
    y = rng.uniform(0.0, 0.005, (1000, 1))
    edges = equal(np.array([-1.0]), np.array([1.0]), 4096)
    raw = raw_counts(y, edges)
    for _ in range(20):
        noisy = raw + 15 * rng.standard_normal(raw.shape)
        low, high = narrowed_coarsely(noisy, edges, 15.0, len(y))
        assert -0.1 < low[0] <= 0.0005 and 0.0045 <= high[0] < 0.1


def test_columns_without_limits_in_a_schema_are_looked_at_whole_and_drawn():
    rng = np.random.default_rng(0)
    number = {"type": "number"}
    table = {"a": rng.normal(1e9, 1, 5000), "b": rng.normal(50, 3, 5000)}
    y = (table["a"] - 1e9) + 0.3 * (table["b"] - 50)
    known = {"a": number | {"low": 1e9 - 5, "high": 1e9 + 5}, "b": number | {"low": 0, "high": 100}}
    named = {"epsilon": 1.0, "delta": 1e-5, "seed": 1, "quiet": True, "target_bounds": ANYWHERE}
    with_limits = minidp.fit(table, y, schema=known, **named)
    without = minidp.fit(table, y, schema={"a": number, "b": number}, **named)
    assert without.score(table, y) > with_limits.score(table, y) - 0.03
    assert without.terms()["b"].values.min() < 45 and without.terms()["b"].values.max() > 55
    few = {name: cells[:40] for name, cells in table.items()}
    with pytest.raises(ParameterError, match='give "low" and "high" of all'):
        minidp.fit(few, y[:40] > 0, schema={"a": number, "b": number}, epsilon=1.0)
