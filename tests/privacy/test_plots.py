"""Pictures and CSV files of curves."""
import csv
import math

from minidp.privacy import Bound
from minidp.privacy.plots import save_epsilon_curves


def test_epsilon_curves(tmp_path, drawn):
    curves = {"a": [Bound(0.1, 0.15, 0.2), Bound(0.3, 0.35, 0.4)],
              "b": [Bound(None, None, None), Bound(None, 1.0, math.inf)]}
    save_epsilon_curves(tmp_path / "e", [1, 2], curves, 1e-5, "title " * 30, [(1, 0.2, "printed")], notice="notice " * 30)
    rows = list(csv.reader((tmp_path / "e.csv").read_text().splitlines()))
    assert rows[0] == ["epochs", "a_lower", "a_estimate", "a_upper", "b_lower", "b_estimate", "b_upper"]
    assert rows[1] == ["1", "0.1", "0.15", "0.2", "", "", ""] and rows[2][-1] == "inf"
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
