"""The committed pictures show what the code says, and one that does not is noticed."""

import pytest

from tools import pictures
from tools.tables import ROOT


def test_committed_pictures_show_what_the_code_says():
    assert pictures.stale() == [] and pictures.main(["--check"]) == 0


def test_a_picture_of_other_code_is_noticed(monkeypatch, capsys):
    monkeypatch.setattr(pictures, "BOXES", pictures.BOXES[:-1])
    assert pictures.main(["--check"]) == 1
    assert "minidp/step.png: shows something else" in capsys.readouterr().out


def test_a_class_that_is_gone_is_an_error(monkeypatch):
    monkeypatch.setattr(pictures, "BOXES", (("data", "examples.Gone", 0, 0),))
    with pytest.raises(AttributeError, match="Gone"):
        pictures.step()


def test_algorithm_1_is_shown_whole():
    shown = pictures.shows(ROOT / pictures.ALGORITHM)
    assert len(shown) == 8 and all(places for _, _, places in shown)
