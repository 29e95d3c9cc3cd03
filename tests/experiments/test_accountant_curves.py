"""The accountants' figure, run as a user runs it."""
import json

import pytest


def test_figure_2_on_few_points(run_script, tmp_path):
    done = run_script("accountant_curves.py", "--smoke", "--out", "out", check=0)
    assert "1.259, expected 1.26" in done.stdout and "not reproduced" in done.stdout
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["epsilon_at_400_epochs"]["moments_paper_orders"]["upper"] == pytest.approx(2.5759, abs=5e-5)
    assert result["epsilon_at_100_epochs"]["paper_strong_composition"]["upper"] == pytest.approx(9.355, abs=1e-3)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"figure_2.csv", "figure_2.png", "all_accountants.csv", "all_accountants.png", "result.json"}
    lines = (tmp_path / "out" / "figure_2.csv").read_text().splitlines()
    assert len(lines) == 5 and lines[0].startswith("epochs,paper_strong_composition_lower")
    assert (tmp_path / "out" / "figure_2.png").read_bytes().startswith(b"\x89PNG")
