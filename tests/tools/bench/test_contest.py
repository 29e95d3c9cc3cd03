"""Contenders answer over their pipe, take turns, and fail in words."""
import contextlib
import sys
from dataclasses import replace

import pytest
from tqdm import tqdm

from tools.bench import contest
from tools.bench.workloads import WORKLOADS

TINY = WORKLOADS["W1"].small()
SETTINGS = contest.Settings(threads=1, rounds=4, seconds=0.0)


def test_a_turn_has_from_one_step_to_the_asked_number_and_a_slow_step_every_third_turn():
    with contextlib.closing(contest.Contender("factored", TINY, SETTINGS)) as contender:
        assert len(contender.ask(do="turn", seconds=0.0, most=5)["times_s"]) == 1
        times = contender.ask(do="turn", seconds=60.0, most=3)["times_s"]
        assert len(times) == 3 and all(t > 0 for t in times)
        contender.said["step_s"] = 2 * contest.WARM_BELOW
        for number in range(4):
            contender.turn(number, SETTINGS)
    assert [t is not None for t in contender.turns] == [True, False, False, True]


def test_what_a_library_raises_comes_back_over_the_pipe():
    """A network that does not fit together: the layers are built in the contender's process."""
    wrong = replace(TINY, layers=(("dense", 59, 10, False),))
    with pytest.raises(contest.ContenderError, match="factored: ShapeError: "):
        contest.Contender("factored", wrong, SETTINGS)


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
