"""The pictures and statistics as their user runs them, on small settings, and what they say of
broken noise.
"""

import json
from contextlib import contextmanager

import numpy as np
import pytest

from tools import attack_pictures, noise_statistics as tool


def test_pictures_and_figures_are_written_and_the_attacks_fail(tmp_path):
    attack_pictures.main(["--smoke", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "attacks.json").read_text())
    assert (
        (tmp_path / "attack_noise.png").stat().st_size
        > 5000
        < (tmp_path / "attack_sums.png").stat().st_size
    )
    shares = {
        name: [abs(a - b) for a, b in zip(*rows.values())]
        for name, rows in found["on_lattice"].items()
    }
    assert min(shares["before: float32"]) > 0.6 > 0.15 > max(shares["ordinary"] + shares["exact"])
    assert found["worst"]["before: float32"][-1] > 1.05 > found["charged"][-1]
    assert all(
        a <= b
        for name in ("ordinary", "exact")
        for a, b in zip(found["worst"][name], found["charged"])
    )


TONE = np.sin(2 * np.pi * 1000 / tool.CHUNK * np.arange(tool.CHUNK))
ALWAYS = np.random.default_rng(0).standard_normal(tool.CHUNK)


def test_a_million_draws_pass(tmp_path, capsys):
    file = tmp_path / "found.json"
    assert tool.main(["--draws", "1e6", "--seed", "1", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert found["draws"] >= 10**6 and found["reproducible"] and found["verdict"] == "nothing found"
    assert len(found["tests"]) == 42 and capsys.readouterr().out.count(" p ") == 42 + 1
    assert (
        found["command"] == f"python -m tools.noise_statistics --draws 1e6 --seed 1 --json {file}"
    )


@pytest.mark.parametrize(
    "broken, test",
    [
        (lambda x, cells: (1.01 * x, cells), "moment 2"),
        (lambda x, cells: (x + 0.01, cells), "moment 1"),
        (lambda x, cells: (np.clip(x, -4, 4), cells), "beyond 4 sigma"),
        (lambda x, cells: (x, cells // 2 * 2), "modulo"),
        (lambda x, cells: (x + 0.02 * np.roll(x, 1), cells), "1 apart: product, z"),
        (lambda x, cells: (x + 0.02 * np.roll(x, 256), cells), "256 apart: product, z"),
        (lambda x, cells: (np.repeat(x[::2], 2), cells), "1 apart: product of squares"),
        (lambda x, cells: (x + 0.05 * TONE, cells), "ordinate"),
        (lambda x, cells: (ALWAYS, cells), "successive"),
        (lambda x, cells: (np.cumsum(x) / np.sqrt(1 + np.arange(x.size)), cells), "bands"),
    ],
)
def test_noise_that_is_wrong_is_noticed(broken, test, monkeypatch, tmp_path):
    right, file = tool.draw, tmp_path / "found.json"
    monkeypatch.setattr(tool, "draw", lambda *args: broken(*right(*args)))
    assert tool.main(["--draws", "5e5", "--seed", "1", "--json", str(file)]) == 1
    found = json.loads(file.read_text())
    for noise in ("ordinary", "exact"):
        assert any(
            test in row["test"]
            for row in found["tests"]
            if row["noise"] == noise and row["p_value"] < found["level"]
        )


def test_an_interrupt_keeps_what_was_counted(monkeypatch, tmp_path):
    @contextmanager
    def at_once():
        yield lambda: True

    monkeypatch.setattr(tool, "stop_on_interrupt", at_once)
    assert tool.main(["--draws", "1e9", "--seed", "1", "--json", str(tmp_path / "found.json")]) == 0
    assert json.loads((tmp_path / "found.json").read_text())["draws"] == tool.CHUNK
