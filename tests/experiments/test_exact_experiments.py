"""Every private experiment in exact arithmetic, run as a user runs it."""
import json

import pytest
from minidp.__main__ import main


@pytest.mark.parametrize("script, flags", [
    ("mnist_pca.py", ("--clipping", "flat")), ("mnist_pca.py", ("--projection", "random", "--gradients", "explicit")),
    ("mnist_variants.py", ("--final-noise-multiplier", 3, "--stage-lots", 2)), ("mnist_variants.py", ("--watch-norms",)),
    ("mnist_cnn.py", ()), ("mnist_best.py", ())])
def test_a_run_in_exact_arithmetic_verifies(script, flags, run_script, tmp_path):
    run_script(script, "--smoke", "--quiet", "--dataset", "strokes", "--steps", 5, "--arithmetic", "exact", "--out", "out", *flags,
               check=0)
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["arithmetic"] == "exact" and 0 < result["delta_added"] <= 1e-9
    assert all(group["sensitivity_factor"] == 1 and group["coordinates"] for group in result["settings"]["clip_groups"])
    assert "Released in ordinary arithmetic" not in (tmp_path / "out" / "privacy.md").read_text()
    assert all(setup["noise_multiplier"] > 0 for setup in result["settings"]["setup"])
    assert main(["verify", str(tmp_path / "out")]) == 0


def test_exact_arithmetic_without_clipping_is_refused_in_one_line(run_script):
    said = run_script("mnist_cnn.py", "--baseline", "--arithmetic", "exact", check=2).stderr
    assert said.count("\n") == 1 and "--arithmetic exact" in said
