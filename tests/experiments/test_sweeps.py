"""Many runs in processes, on an experiment that takes no time."""

import json
import os
import signal
import subprocess
import sys
import time

from common.sweeps import NO_LOT, Point, Run, perform

import pytest

from minidp.errors import MinidpError
from tests.support.scripts import ROOT, environment

TOY = """
import os
import time
from dataclasses import dataclass
from pathlib import Path

from common.config import command_of, option
from minidp.run.progress import stop_on_interrupt
from minidp.errors import BudgetExceededError, ParameterError
from minidp.util.files import write_json


@dataclass(frozen=True)
class Config:
    wish: str = option("finish", "what happens")
    seed: int = option(0, "seed")
    folder: str = option("", "folder")
    resume: bool = option(False, "go on")


def run(config):
    out = Path(config.folder)
    if config.wish == "nothing fits":
        raise BudgetExceededError("not one lot fits")
    if config.wish == "die":
        os.kill(os.getpid(), 9)
    if config.wish == "fail":
        raise ParameterError("expected better")
    out.mkdir(exist_ok=True)
    write_json(out / "config.json", {})
    if config.wish == "die once" and not config.resume:
        os.kill(os.getpid(), 9)
    if config.wish == "wait" and not config.resume:
        with stop_on_interrupt() as stop:
            while not stop():
                os.utime(out / "config.json")
                time.sleep(0.01)
        return "interrupted"
    rows = "".join(f"{i},{i},0.5,,\\n" for i in range(1, 1201))
    columns = "epoch,step,test_accuracy,train_accuracy_not_private,delta_at_epsilon\\n"
    (out / "metrics.csv").write_text(columns + rows)
    result = {
        "stopped": "finished",
        "test_accuracy": 0.5,
        "steps": 1200,
        "seconds_total": 0.1,
        "resumed": config.resume,
        "ranks": os.environ["MINIDP_RANKS"],
        "command": command_of("toy.py", config, ("folder", "resume")),
    }
    write_json(out / "result.json", result)
    return "finished"
"""
SWEEP = """
import sys
from pathlib import Path
import common
common.start(__name__)
from common.sweep_flags import SweepFlags
from common.sweeps import Point, Run
if __name__ == "__main__":
    jobs, last, *wishes = sys.argv[1:]
    runs = [Run(Point(wish, f"--wish '{wish}'", "toy"), seed, "", (), Path("out"))
            for wish in wishes for seed in range(1, int(last) + 1)]
    print(len(SweepFlags(jobs=int(jobs), quiet=True).perform(runs)))
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """toy(wish, seed) -> Run of the toy experiment."""
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "sweep.py").write_text(SWEEP)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "out").mkdir()
    return lambda wish="finish", seed=1: Run(
        Point(wish, f"--wish '{wish}'", "toy"), seed, "", (), tmp_path / "out"
    )


@pytest.fixture
def sweep(tmp_path):
    """sweep(jobs, last seed, *wishes) -> Popen of a sweep in tmp_path, in a group of its own."""

    def start(*words):
        path = os.pathsep.join([str(ROOT), str(ROOT / "experiments"), str(tmp_path)])
        # which a shell's background jobs ignore
        return subprocess.Popen(
            [sys.executable, "sweep.py", *map(str, words)],
            cwd=tmp_path,
            text=True,
            env={**environment(), "PYTHONPATH": path},
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    return start


def test_each_run_leaves_one_json_with_its_history_and_is_not_run_again(toy):
    runs = [toy(seed=1), toy(seed=2), toy("nothing fits")]
    done = perform(runs, 2, quiet=True)
    assert list(done) == runs and done[runs[0]]["test_accuracy"] == 0.5
    assert done[runs[2]]["stopped"] == NO_LOT and done[runs[2]]["reason"] == "not one lot fits"
    history = done[runs[0]]["history"]
    assert [*history] == ["epoch", "step", "test_accuracy"]
    assert history["epoch"] == list(range(3, 1201, 3))
    before = runs[0].json.stat().st_mtime_ns
    assert perform(runs[:1], 2, quiet=True) == {runs[0]: done[runs[0]]}
    assert runs[0].json.stat().st_mtime_ns == before


def test_runs_that_fail_or_are_killed_are_named_and_the_others_are_made(toy):
    words = "fail-seed1: expected better; die-seed1: its process was killed"
    with pytest.raises(MinidpError, match=f"2 of 3 runs failed: {words}"):
        perform([toy("fail"), toy("die"), toy()], 1, quiet=True)
    assert toy().result()


def test_a_killed_run_is_resumed_by_the_same_call_and_every_run_is_made_by_one_process(toy):
    runs = [toy("die once"), toy()]
    with pytest.raises(MinidpError, match="1 of 2 runs failed: die once-seed1"):
        perform(runs, 2, quiet=True)
    made = perform(runs, 2, quiet=True).values()
    assert [(one["resumed"], one["ranks"]) for one in made] == [(True, "solo"), (False, "solo")]


def test_a_result_of_another_command_is_refused(toy):
    toy().json.write_text(json.dumps({"command": "python experiments/toy.py --seed 7"}))
    with pytest.raises(MinidpError, match="choose another --out"):
        perform([toy()], 1, quiet=True)
    toy().json.write_text("{")
    with pytest.raises(MinidpError, match="damaged"):
        perform([toy()], 1, quiet=True)


@pytest.mark.parametrize("how", ["interrupt", "kill"])
def test_workers_end_with_their_parent_and_the_next_call_goes_on(how, toy, sweep):
    run, sweeping = toy("wait"), sweep(1, 4, "wait")
    alive, deadline = run.out / run.name / "config.json", time.monotonic() + 120
    try:
        while not alive.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        if how == "interrupt":
            os.killpg(sweeping.pid, signal.SIGINT)  # a terminal sends Ctrl-C to the whole group
        else:
            sweeping.kill()
        said = sweeping.communicate(timeout=60)[1]
        while time.time() - alive.stat().st_mtime < 1 and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        sweeping.kill()
    assert time.monotonic() < deadline and [path.name for path in run.out.glob("*.log")] == [
        "wait-seed1.log"
    ]
    assert how == "kill" or "interrupted" in said and "Traceback" not in said
    assert "interrupted" in run.json.with_suffix(".log").read_text()
    (done,) = perform([run], 1, quiet=True).values()
    assert done["resumed"] is True
