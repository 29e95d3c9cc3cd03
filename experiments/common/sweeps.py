"""Many runs of an experiment in parallel processes; what is done stays done, and an interrupt loses nothing."""
import csv
import json
import os
import signal
import sys
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing import active_children, get_context
from pathlib import Path

from tqdm import tqdm

from minidp.errors import BudgetExceededError, MinidpError
from minidp.files import write_json
from minidp.run.record import git_commit

from .config import FREE, command_of, parse

HISTORY = ("epoch", "step", "test_accuracy", "train_accuracy_not_private", "delta_at_epsilon")
MOST_ROWS = 500  # of a history; every second, third ... row of a longer one
NO_LOT = "no lot left"
# one thread a process: threads of several processes that wait for each other cost far more than they give
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Point:
    """One setting: a name for its files, its flags, the experiment's script (without .py), and its command if any."""

    name: str
    flags: tuple = ()
    script: str = "mnist_pca"
    subcommand: str = ""


@dataclass(frozen=True)
class Run:
    """A point with a seed; `common` are the flags of all runs, `free` those that change no result."""

    point: Point
    seed: int
    common: tuple
    free: tuple
    out: Path

    @property
    def name(self):
        """Name of the run's folder, and of its JSON file beside it."""
        return f"{self.point.name}-seed{self.seed}"

    @property
    def json(self):
        """Where the result lies once the run is finished."""
        return self.out / f"{self.name}.json"

    @property
    def config(self):
        """The experiment's configuration. Raises what the experiment raises for its flags."""
        words = [*self.common, *self.point.flags, "--seed", self.seed, "--out", self.out / self.name, *self.free]
        return parse(import_module(self.point.script).Config, [str(word) for word in words])

    @property
    def command(self):
        """The command line that makes this run alone."""
        return command_of(f"{self.point.script}.py {self.point.subcommand}".strip(), self.config, FREE)

    def result(self):
        """What the run left, None if it is not finished. Raises MinidpError where another command made it."""
        if not self.json.exists():
            return None
        try:
            found = json.loads(self.json.read_text(encoding="utf-8"))
            if found["command"] != self.command:
                raise MinidpError(f"{self.json} was made by `{found['command']}`, expected `{self.command}`; choose another "
                                  "--out")
            if found["stopped"] != NO_LOT and not 0 <= found["test_accuracy"] <= 1:
                raise ValueError(f"test accuracy {found['test_accuracy']}")
        except (ValueError, KeyError, TypeError) as error:
            raise MinidpError(f"{self.json}: damaged ({error}); delete it to run it again") from error
        return found


def perform(runs, jobs, quiet=False):
    """Run what is not done yet, `jobs` processes at a time; returns {run: result} in the order of `runs`.

    Raises MinidpError naming the runs that failed, once the others are done. KeyboardInterrupt stops every process
    at its next checkpoint; the same call goes on from there.
    """
    runs = list(dict.fromkeys(runs))
    waiting = [run for run in runs if run.result() is None]
    for name in THREADS:
        os.environ.setdefault(name, "1")
    failed, before = [], signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops like Ctrl-C
    pool = ProcessPoolExecutor(min(jobs, max(1, len(waiting))), get_context("spawn"), _leave_interrupts_to_the_parent)
    try:
        with tqdm(total=len(runs), initial=len(runs) - len(waiting), unit="run", disable=True if quiet else None,
                  file=sys.stderr, dynamic_ncols=True) as bar:
            pending = {}
            while waiting or pending:
                while waiting and len(pending) < jobs:  # what lies in the pool's own queue cannot be taken back
                    run = waiting.pop(0)
                    pending[pool.submit(work, run)] = run
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for run, problem in [(pending.pop(future), future.exception()) for future in done]:
                    if isinstance(problem, BrokenProcessPool):
                        raise MinidpError("a run's process was killed, perhaps for its memory; those that are not finished: "
                                          f"{', '.join(run.name for run in runs if run.result() is None)}. The same command "
                                          "goes on; fewer --jobs need less memory")
                    if isinstance(problem, MinidpError):
                        failed.append(f"{run.name}: {problem}")
                    elif problem is not None:
                        raise problem
                    else:
                        bar.write(f"{run.name}: {_told(run.result())}", file=sys.stderr)
                    bar.update()
    except BaseException:
        pool.shutdown(wait=False)
        for process in active_children():
            process.terminate()  # in training, a request to stop after the current lot
        raise
    finally:
        pool.shutdown()
        signal.signal(signal.SIGTERM, before)
    if failed:
        raise MinidpError(f"{len(failed)} of {len(runs)} runs failed: {'; '.join(failed)}")
    return {run: run.result() for run in runs}


def _leave_interrupts_to_the_parent():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all; the parent asks with SIGTERM


def work(run):
    """One run, in a process of the pool; what it prints goes into a log beside its folder. Raises MinidpError."""
    folder = run.out / run.name
    config = run.config
    if (folder / "config.json").exists():
        config = replace(config, resume=True)
    with open(run.out / f"{run.name}.log", "a", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
        try:
            _, stopped = import_module(run.point.script).run(config)
        except BudgetExceededError as error:
            write_json(run.json, {"experiment": run.point.script, "command": run.command, "stopped": NO_LOT,
                                  "reason": str(error), "steps": 0, "seed": run.seed, "commit": git_commit()})
            return
        except (MinidpError, OSError, MemoryError) as error:
            told = " ".join(str(error).split()) or type(error).__name__
            print(f"error: {told}")
            raise MinidpError(told) from None
        if stopped == "interrupted":
            print("interrupted; the same command goes on from its checkpoint")
            raise MinidpError("interrupted; the same command goes on from its checkpoint")
    write_json(run.json, with_history(folder))


def with_history(folder):
    """The result of a finished run, with the columns of its metrics."""
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    with open(folder / "metrics.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rows = [row for i, row in enumerate(rows, 1) if i % -(-len(rows) // MOST_ROWS) == 0 or i == len(rows)]
    result["history"] = {name: [float(row[name]) if row[name] else None for row in rows] for name in HISTORY
                         if any(row[name] for row in rows)}
    return result


def _told(result):
    if result["stopped"] == NO_LOT:
        return NO_LOT
    return f"{result['test_accuracy']:.2%} after {result['steps']} lots, {result['seconds_total']:.0f} s"
