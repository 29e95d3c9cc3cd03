"""Contenders answer over their pipe, take turns, and fail in words."""
import sys

from tqdm import tqdm

from tools.bench import contest
from tools.bench.workloads import WORKLOADS

TINY = WORKLOADS["W1"].small()
SETTINGS = contest.Settings(threads=1, rounds=4, seconds=0.0)


def test_a_contender_that_cannot_run_is_left_out(tmp_path):
    """An interpreter without any library stands in for one without the peers."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    settings = contest.Settings(threads=1, rounds=2, seconds=0.0, peers_python=str(bare))
    said = []
    rows, interrupted = contest.hold(TINY, ["floor", "torch"], settings, said.append, tqdm(disable=True))
    assert [row["contender"] for row in rows] == ["floor"] and not interrupted
    assert said == ["left out: torch: ModuleNotFoundError: No module named 'numpy'"]


def test_a_contender_that_dies_keeps_its_rounds_and_the_others_go_on(monkeypatch):
    turn, said = contest.Contender.turn, []

    def dying(contender, number, settings):
        if contender.name == "factored" and number == 2:
            contender._process.kill()
        turn(contender, number, settings)

    monkeypatch.setattr(contest.Contender, "turn", dying)
    rows, interrupted = contest.hold(TINY, ["factored", "floor"], SETTINGS, said.append, tqdm(disable=True))
    assert [len(row["turns_ms"]) for row in rows] == [2, 4] and not interrupted
    assert said == ["factored: its process ended (killed, perhaps for its memory)"]
