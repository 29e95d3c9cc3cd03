"""The convolutional network, run as a user runs it."""
import json

import pytest

from minidp.mechanism.rounding import products
from minidp.privacy import JointGaussian, Ledger, PoissonSampled

SMOKE = ("mnist_cnn.py", "--smoke", "--quiet", "--dataset", "strokes")


@pytest.mark.parametrize("setting, sigma, clip_norm", [(1, 1.3, 1.5), (2, 1.1, 1.0), (3, 0.7, 1.5)])
def test_settings_are_those_of_the_tutorial(setting, sigma, clip_norm, run_script, tmp_path):
    run_script(*SMOKE, "--out", "out", "--setting", setting, "--clipping", "per-layer", check=0)
    event, count = Ledger.load(tmp_path / "out" / "ledger.json").items()[0]
    charged = sigma / products(30, "auto").factor
    assert event == PoissonSampled(0.1, JointGaussian((charged,) * 4)) and count == 10
    assert "conv1.W, conv1.b" in (tmp_path / "out" / "privacy.md").read_text()
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert {group["clip_norm"] for group in result["settings"]["clip_groups"]} == {clip_norm}
