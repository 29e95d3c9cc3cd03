"""Runs in parallel processes, on an experiment that takes no time."""
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from common.sweeps import NO_LOT, Point, Run, perform

from minidp.errors import MinidpError
from tests.support.scripts import hear_interrupts

ROOT = Path(__file__).resolve().parents[2]
TOY = '''
import os
import time
from dataclasses import dataclass
from pathlib import Path

from common.config import option
from minidp.run.progress import stop_on_interrupt
from minidp.errors import BudgetExceededError, ParameterError
from minidp.files import write_json


@dataclass(frozen=True)
class Config:
    wish: str = option("finish", "what happens")
    seed: int = option(0, "seed")
    out: str = option("", "folder")
    resume: bool = option(False, "go on")


def run(config):
    out = Path(config.out)
    if config.wish == "nothing fits":
        raise BudgetExceededError("not one lot fits")
    if config.wish == "die":
        os.kill(os.getpid(), 9)
    if config.wish == "fail":
        raise ParameterError("expected better")
    out.mkdir(exist_ok=True)
    write_json(out / "config.json", {})
    if config.wish == "wait" and not config.resume:
        with stop_on_interrupt() as stop:
            while not stop():
                time.sleep(0.01)
        return None, "interrupted"
    rows = "".join(f"{i},{i},0.5,,\\n" for i in range(1, 1201))
    (out / "metrics.csv").write_text("epoch,step,test_accuracy,train_accuracy_not_private,delta_at_epsilon\\n" + rows)
    write_json(out / "result.json", {"stopped": "finished", "test_accuracy": 0.5, "steps": 1200, "seconds_total": 0.1,
                                     "resumed": config.resume, "command": f"python experiments/toy.py --wish "
                                     f"{config.wish} --seed {config.seed}".replace(" --wish finish", "")})
    return {}, "finished"
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """toy(wish, seed) -> Run of the toy experiment."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "out").mkdir()
    return lambda wish="finish", seed=1: Run(Point(wish.replace(" ", "-"), ("--wish", wish), "toy"), seed, (), (),
                                             tmp_path / "out")


def test_each_run_leaves_one_json_with_its_history_and_is_not_run_again(toy):
    runs = [toy(seed=1), toy(seed=2), toy("nothing fits")]
    done = perform(runs, 2, quiet=True)
    assert list(done) == runs and done[runs[0]]["test_accuracy"] == 0.5
    assert done[runs[2]]["stopped"] == NO_LOT and done[runs[2]]["reason"] == "not one lot fits"
    history = done[runs[0]]["history"]
    assert history["epoch"] == list(range(3, 1201, 3)) and set(history) == {"epoch", "step", "test_accuracy"}
    before = runs[0].json.stat().st_mtime_ns
    assert perform(runs[:1], 2, quiet=True) == {runs[0]: done[runs[0]]}
    assert runs[0].json.stat().st_mtime_ns == before


def test_a_failure_is_named_and_the_other_runs_are_kept(toy):
    with pytest.raises(MinidpError, match="1 of 2 runs failed: fail-seed1: expected better"):
        perform([toy("fail"), toy()], 1, quiet=True)
    assert toy().json.exists()


def test_a_killed_process_is_named_and_what_was_done_is_kept(toy):
    with pytest.raises(MinidpError, match="killed, perhaps for its memory; those that are not finished: die-seed1, finish-seed2"):
        perform([toy(), toy("die"), toy(seed=2)], 1, quiet=True)
    assert toy().json.exists() and list(perform([toy(), toy(seed=2)], 1, quiet=True)) == [toy(), toy(seed=2)]


def test_a_result_of_another_command_is_refused(toy):
    toy().json.write_text(json.dumps({"command": "python experiments/toy.py --seed 7"}))
    with pytest.raises(MinidpError, match="choose another --out"):
        perform([toy()], 1, quiet=True)
    mine = {"command": toy().command, "stopped": "finished"}
    for damage in ({}, mine, {**mine, "test_accuracy": "NaN"}, {**mine, "test_accuracy": 7.5}):
        toy().json.write_text(json.dumps(damage) if damage else "{")
        with pytest.raises(MinidpError, match="damaged"):
            perform([toy()], 1, quiet=True)


def test_an_interrupt_stops_every_process_and_the_next_call_goes_on(toy, tmp_path):
    run = toy("wait")
    code = ("import sys; from pathlib import Path; from common.sweeps import Point, Run, perform\n"
            "if __name__ == '__main__':\n"
            "    runs = [Run(Point('wait', ('--wish', 'wait'), 'toy'), seed, (), (), Path('out')) for seed in range(1, 5)]\n"
            "    perform(runs, 1, quiet=True)\n")
    (tmp_path / "parent.py").write_text(code)
    path = os.pathsep.join([str(ROOT), str(ROOT / "experiments"), str(tmp_path)])
    parent = subprocess.Popen([sys.executable, "parent.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
                              stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=hear_interrupts)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "out" / run.name / "config.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        os.killpg(parent.pid, signal.SIGINT)  # a terminal sends Ctrl-C to the whole group
        assert parent.communicate(timeout=60)[1].strip() == "interrupted" and parent.returncode == -signal.SIGINT
    finally:
        parent.kill()
    assert [path.name for path in (tmp_path / "out").glob("*.log")] == [f"{run.name}.log"]  # nothing else was begun
    assert not run.json.exists() and "interrupted" in (tmp_path / "out" / f"{run.name}.log").read_text()
    (done,) = perform([run], 1, quiet=True).values()
    assert done["resumed"] is True
