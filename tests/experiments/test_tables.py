"""experiments/tables.py and tables_beside.py: a smoke run, and what they measure."""

import json

import numpy as np
import pytest
import tables
import tables_beside

from datasets import random_tables


def test_a_smoke_run_writes_its_figures(tmp_path):
    tables.main(["--smoke", "--json", str(tmp_path / "found.json")])
    found = json.loads((tmp_path / "found.json").read_text())
    (over,) = found["classes"].values()
    assert list(over) == ["0.5", "1", "2", "4", "inf"]
    for row in over.values():
        (run,) = row["runs"]
        assert row["less_constant"]["mean"] == pytest.approx(run["log_loss"] - run["constant"])
    assert over["2"]["rise"]["mean"] == over["2"]["ranked"] - over["1"]["ranked"]
    assert found["regressions"]["5"]["no bounds"]["mean"] > 0.2


def test_synthetic_targets_have_a_known_mean_and_spread():
    x, y, (low, high) = random_tables.regression(3, 20_000, 7)
    assert x.shape == (20_000, 7) and low.shape == high.shape == (7,) and (low < high).all()
    assert y.std() == pytest.approx(1, abs=0.05)


def test_units_of_a_split_are_held_out_whole():
    units, seen = np.repeat(np.arange(40), 3), []

    def fit(x, y, seed):
        seen.append(x["unit"])

        class Constant:
            def predict_proba(self, new):
                assert not np.isin(new["unit"], x["unit"]).any()
                return np.tile([0.75, 0.25], (len(new["unit"]), 1))

        return Constant()

    row = tables_beside.measure({"unit": units}, units % 4 == 0, units, fit, 2)
    assert [len(each) for each in seen] == [96, 96] and row["auroc"]["mean"] == 0.5


def test_a_schema_of_numbers_refuses_nothing_within_its_bounds():
    found = tables_beside.of_minidp(tables_beside.schema_of_rand())
    rng = np.random.default_rng(1)
    x = {
        name: rng.uniform(entry["low"], entry["high"], 300)
        for name, entry in tables_beside.schema_of_rand().items()
    }
    p = found["minidp"](x, x["educdec"] > 12, 1).predict_proba(x)
    assert p.shape == (300, 2) and np.isfinite(p).all()
