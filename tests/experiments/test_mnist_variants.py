"""The variants of the main job, run as a user runs them."""
import json

import pytest
from minidp.mechanism.rounding import products
from minidp.privacy import Gaussian, JointGaussian, Ledger, PoissonSampled

FACTOR = products(60, "auto").factor
SMOKE = ("mnist_variants.py", "--smoke", "--quiet", "--dataset", "strokes", "--no-train-metrics", "--out", "out")


@pytest.mark.parametrize("flags", [("--first-hidden", 20, "--hidden", 30),
                                   ("--projection", "none", "--first-hidden", 6, "--hidden", 20)])
def test_a_second_hidden_layer_is_clipped_and_charged_with_the_others(flags, run_script, tmp_path):
    run_script(*SMOKE, "--epochs", 1, *flags, check=0)
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [group["name"] for group in result["settings"]["clip_groups"]] == ["dense1", "dense2", "dense3"]
    ledger = Ledger.load(tmp_path / "out" / "ledger.json")
    assert ledger.items()[-1] == (PoissonSampled(0.1, JointGaussian((4.0 / FACTOR,) * 3)), 10)


def test_falling_noise_is_charged_stage_by_stage(run_script, tmp_path):
    run_script(*SMOKE, "--steps", 14, "--noise-multiplier", 6, "--final-noise-multiplier", 3, "--stage-lots", 4, check=0)
    ledger = Ledger.load(tmp_path / "out" / "ledger.json")
    assert ledger.items() == [(Gaussian(7.0), 1), *((PoissonSampled(0.1, JointGaussian((sigma / FACTOR,) * 2)), lots)
                                                    for sigma, lots in ((6.0, 4), (5.0, 4), (4.0, 4), (3.0, 2)))]
    assert "Stages(first=6.0, last=3.0, stages=4, length=4): follows the step" in (tmp_path / "out" / "privacy.md").read_text()


def test_watched_norms_are_named_not_private(run_script, tmp_path):
    run_script(*SMOKE, "--steps", 25, "--watch-norms", check=0)
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    norms = result["median_norms_not_private"]
    assert result["not_private"] == ["median_norms_not_private"] and "result.json" in result["not_for_release"]
    assert "median_norms_not_private" in (tmp_path / "out" / "privacy.md").read_text()
    assert set(norms) == {"dense1", "dense2"}
    assert all(len(medians) == 3 and min(medians) > 0 for medians in norms.values())
