"""The attack as its user runs it, on small settings, and what it says of broken training."""
import json

import pytest

from minidp.streams import Streams
from tools import audit_empirical


def test_it_attacks_reports_and_draws(tmp_path, capsys, drawn):
    page, figures = tmp_path / "page.html", tmp_path / "figures.json"
    assert audit_empirical.main(["--epsilon", "4", "--canaries", "500", "--releases", "100", "--seed", "1",
                                 "--html", str(page), "--json", str(figures)]) == 0
    assert "0 failed" in capsys.readouterr().out
    found = json.loads(figures.read_text())
    for one in found["attacks"]:
        assert 0 < one["beyond_doubt"] <= one["certified"] and one["gaussian"] >= one["needed"] * one["certified"]
    assert len(drawn) == 1 and "data:image/png;base64," in page.read_text() and "src=\"http" not in page.read_text()


@pytest.mark.parametrize("broken, column", [
    ("noise half as large", 1), ("clipping left out", 1), ("noise once a batch", 1), ("one seed at every step", 2),
    ("Poisson claimed, shuffling done", 3)])
def test_every_broken_implementation_is_noticed_by_its_check(broken, column, monkeypatch):
    monkeypatch.setattr(audit_empirical, "BROKEN", {broken: audit_empirical.BROKEN[broken]})
    (row,) = audit_empirical.caught(Streams(2), canaries=500, releases=60)
    assert row[0] == broken and row[column]


def test_a_broken_implementation_that_nobody_notices_is_a_failure(monkeypatch, capsys):
    monkeypatch.setattr(audit_empirical, "BROKEN", {"something harmless": {}})
    assert audit_empirical.main(["--epsilon", "4", "--canaries", "300", "--releases", "60", "--seed", "1"]) == 1
    assert "FAIL broken: something harmless; noticed by nobody" in capsys.readouterr().out
