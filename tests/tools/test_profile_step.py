"""The table of where a step's time goes."""
import json
import time

import pytest

from tools import profile_step


@pytest.mark.parametrize("workload, strategy, rows", [
    ("W1", "factored", {"draw the lot", "gather", "forward dense", "backward relu", "norms", "draw noise", "update"}),
    ("W1", "explicit", {"form gradients", "clipped sums"}),
    ("W5", "auto", {"forward conv", "backward conv", "forward maxpool", "forward flatten"}),
])
def test_every_part_of_a_step_has_its_row(workload, strategy, rows, tmp_path, capsys):
    file = tmp_path / "profile.json"
    assert profile_step.main(["--workload", workload, "--strategy", strategy, "--steps", "2", "--smoke",
                              "--json", str(file)]) == 0
    (found,) = json.loads(file.read_text(encoding="utf-8"))
    assert rows <= set(found["rows"]) and all(spent >= 0 for spent in found["rows"].values())
    assert found["workload"] == workload and found["strategy"] == strategy and found["step_ms"] > 0
    printed = capsys.readouterr().out
    assert all(row in printed for row in rows) and f"{workload} {strategy}" in printed


def test_time_inside_another_row_counts_there():
    clock = profile_step.Clock()
    inner = clock.timed("inner", lambda: time.sleep(0.02))
    clock.timed("outer", lambda: [inner(), time.sleep(0.005)])()
    assert clock.seconds["inner"] >= 0.02 and 0.005 <= clock.seconds["outer"] < clock.seconds["inner"]


def test_functions_are_themselves_again_afterwards():
    before = [getattr(owner, name) for functions in profile_step.ROWS.values() for owner, name in functions]
    with profile_step.watched(profile_step.Clock()):
        pass
    assert before == [getattr(owner, name) for functions in profile_step.ROWS.values() for owner, name in functions]


@pytest.mark.parametrize("wrong", [["--steps", "0"], ["--json", "nowhere/at/all.json"], ["--workload", "W9"]])
def test_wrong_arguments_end_in_one_line(wrong, capsys):
    with pytest.raises(SystemExit) as stopped:
        profile_step.main(wrong)
    assert stopped.value.code == 2 and "error:" in capsys.readouterr().err
