"""Gaussian differential privacy beside the moments and a tight accountant."""
import json

import gdp
import pytest


def test_smoke_trains_both_optimizers_by_each_accountants_noise(run_script, tmp_path):
    run_script("gdp.py", "--smoke", "--dataset", "strokes", "--jobs", 2, "--out", "out", check=0)
    summary = json.loads((tmp_path / "out" / "gdp.json").read_text())
    assert [(one["optimizer"], one["by"]) for one in summary["trained"]] == [
        (optimizer, name) for optimizer in ("sgd", "adam") for name in gdp.ACCOUNTANTS]
    assert len(list((tmp_path / "out").glob("gdp-1-*-seed1.json"))) == 6
    assert (tmp_path / "out" / "gdp.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("setting, claim, tight", [
    # moments with orders up to 32 and the loss distribution, computed with dp_accounting 0.6.0
    ((1.3, 15), 1.192, 0.865), ((1.1, 60), 3.009, 2.382), ((0.7, 45), 7.123, 5.640)])
def test_the_limit_theorem_asks_for_less_noise_than_its_claim_is_worth(setting, claim, tight):
    found = gdp.claims_of(*setting)
    assert found["claim"] == pytest.approx(claim, abs=2e-3)
    noise = {name: one["noise_multiplier"] for name, one in found["accountants"].items()}
    worth = {name: one["worth"]["upper"] for name, one in found["accountants"].items()}
    assert noise["gaussian_clt"] < noise["loss_distribution"] < noise["moments"]
    assert noise["moments"] == pytest.approx(setting[0], abs=1e-3) and worth["moments"] == pytest.approx(tight, rel=3e-3)
    assert worth["gaussian_clt"] > found["claim"] >= worth["loss_distribution"]
    assert [one["certified"] for one in found["accountants"].values()] == [True, False, True]
