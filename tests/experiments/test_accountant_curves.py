"""The accountants' figure, run as a user runs it."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*flags):
    return subprocess.run([sys.executable, str(ROOT / "experiments" / "accountant_curves.py"), *flags],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_figure_2_on_few_points(tmp_path):
    done = run("--smoke", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "1.259, expected 1.26" in done.stdout and "not reproduced" in done.stdout
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["epsilon_at_400_epochs"]["moments_paper_orders"]["upper"] == pytest.approx(2.5759, abs=5e-5)
    assert result["epsilon_at_100_epochs"]["paper_strong_composition"]["upper"] == pytest.approx(9.355, abs=1e-3)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"figure_2.csv", "figure_2.png", "all_accountants.csv", "all_accountants.png", "result.json"}
    lines = (tmp_path / "out" / "figure_2.csv").read_text().splitlines()
    assert len(lines) == 5 and lines[0].startswith("epochs,paper_strong_composition_lower")
    assert (tmp_path / "out" / "figure_2.png").read_bytes().startswith(b"\x89PNG")


def test_bad_flags_take_one_line():
    for flags, message in ((("--sampling-probability", "2"), "expected sampling_probability=2.0 in (0, 1]"),
                           (("--noise-multiplier", "0"), "noise_multiplier=0.0"), (("--epochs", "1e300"), "epochs=1e+300")):
        done = run(*flags)
        assert done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
        assert message in done.stderr
