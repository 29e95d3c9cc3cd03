"""The core by itself: what is copied, and what each part costs."""

import pytest

from tools import core


def test_a_part_that_costs_more_than_it_may_fails(monkeypatch, capsys):
    assert core.prices() == 0
    monkeypatch.setattr(core, "PRICES", {**core.PRICES, "core": 40_000})
    assert core.prices() == 1 and "over what they may cost: core" in capsys.readouterr().out


def test_a_ring_that_is_dearer_than_its_price_may_not_grow(monkeypatch, capsys):
    monkeypatch.setattr(core, "PRICES", {"mpi": 100})
    monkeypatch.setattr(core, "DEARER", {"mpi": 200})
    assert core.prices() == 1 and "over what they may cost: mpi" in capsys.readouterr().out


def test_every_file_is_of_the_core_or_of_one_ring():
    rows = {row: {*core.files_of(row)} for row in core.PRICES}
    every = {path for path in (core.ROOT / "minidp").rglob("*.py")}
    assert set().union(*rows.values()) == every
    assert sum(map(len, rows.values())) == len(every)


def test_a_copy_is_made_into_an_empty_folder_alone(tmp_path):
    core.copy_core(tmp_path / "new")
    copied = {path.name for path in (tmp_path / "new/minidp").iterdir()}
    assert {"nn", "train", "privacy", "mechanism"} <= copied
    assert copied.isdisjoint({"fast", "layers", "certified", "run", "audit", "fitting"})
    with pytest.raises(SystemExit, match="is not empty"):
        core.copy_core(tmp_path / "new")
