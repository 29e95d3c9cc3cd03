"""Many runs of an experiment, in processes of this machine. Neither a kill nor an interrupt loses
finished work.

Each run has a process of its own. The same call resumes runs that were interrupted or killed.
"""

import os
import shlex
import signal
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import RLock, Thread

from tqdm import tqdm

from minidp.errors import BudgetExceededError, MinidpError
from minidp.run.versions import git_commit
from minidp.util.files import read_json, write_json

from . import prepare_process
from .config import FREE, command_of, parse
from .results import result_of

NO_LOT = "no lot left"
INTERRUPTED = "interrupted; the same command resumes it from its checkpoint"
KILLED = (
    "its process was killed, perhaps for its memory; fewer --jobs need less, and the same command "
    "resumes it from its checkpoint"
)
# one thread a process: threads of several processes that wait for each other cost far more than
# they give
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Point:
    """One setting: a name for its files, its flags as they are typed, the experiment's script
    (without .py), and its command if any.
    """

    name: str
    flags: str = ""
    script: str = "mnist_pca"
    subcommand: str = ""


@dataclass(frozen=True)
class Run:
    """A point with a seed; `common` are the flags of all runs, `free` those that change no
    result.
    """

    point: Point
    seed: int
    common: str
    free: tuple
    out: Path

    @property
    def name(self):
        """Name of the run's folder, and of its JSON file beside it."""
        return f"{self.point.name}-seed{self.seed}"

    @property
    def json(self):
        """Path of the result of a finished run."""
        return self.out / f"{self.name}.json"

    @property
    def config(self):
        """The experiment's configuration. Raises what the experiment raises for its flags."""
        words = shlex.split(f"{self.common} {self.point.flags} --seed {self.seed}")
        script = import_module(self.point.script)
        return parse(
            getattr(script, "CONFIGS", {}).get(self.point.subcommand, script.Config),
            [*words, "--folder", str(self.out / self.name), *self.free],
        )

    @property
    def command(self):
        """The command line that makes this run alone."""
        return command_of(
            f"{self.point.script}.py {self.point.subcommand}".strip(), self.config, FREE
        )

    def result(self):
        """The run's result, None if it is not finished. Raises MinidpError if another command made
        it.
        """
        if not self.json.exists():
            return None
        found = read_json(self.json)
        if found["command"] != self.command:
            raise MinidpError(
                f"{self.json} was made by `{found['command']}`, expected `{self.command}`; "
                "choose another --out"
            )
        return found


def perform(runs, jobs, quiet=False):
    """Make the runs that are not finished, `jobs` at a time; returns {run: result} in the order of
    `runs`.

    Raises MinidpError, with the names of the runs that failed, after the others are done.
    KeyboardInterrupt stops every process at its next checkpoint; the same call resumes them.
    """
    runs = list(dict.fromkeys(runs))
    waiting = [run for run in runs if run.result() is None]
    active, failed = {}, []
    done = len(runs) - len(waiting)
    bar = tqdm(total=len(runs), initial=done, unit="run", disable=True if quiet else None)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops like Ctrl-C
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                run = waiting.pop(0)
                process, said = _start(run)
                active[process.sentinel] = run, process, said
            for sentinel in wait([*active]):
                run, process, said = active.pop(sentinel)
                process.join()
                if process.exitcode > 0:  # a fault of the program, which it printed
                    raise RuntimeError(f"{run.name}: exit status {process.exitcode}")
                problem = KILLED if process.exitcode else said.recv()
                if problem:
                    failed.append(f"{run.name}: {problem}")
                else:
                    bar.write(f"{run.name}: {_told(run.result())}", file=sys.stderr)
                bar.update()
    except BaseException:
        for _, process, _ in active.values():
            process.terminate()  # in training, a request to stop after the current lot
        for _, process, _ in active.values():
            process.join()
        raise
    finally:
        bar.close()
        signal.signal(signal.SIGTERM, before)
    if failed:
        raise MinidpError(f"{len(failed)} of {len(runs)} runs failed: {'; '.join(failed)}")
    return {run: run.result() for run in runs}


def _start(run):
    """(a process that makes a run, the end of a pipe at which it says what went wrong, or None)."""
    for name in THREADS:
        os.environ.setdefault(name, "1")
    context = get_context("spawn")
    said, saying = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(run, saying))
    process.start()
    saying.close()
    return process, said


def _work(run, saying):
    """Make one run in this process, which ends with its parent."""
    prepare_process()
    # a terminal's Ctrl-C reaches this process too, and the parent passes it on
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # whatever launcher started the parent, this is no rank of its run
    os.environ["MINIDP_RANKS"] = "solo"
    tqdm.set_lock(RLock())  # its own is a semaphore, which stays behind when this process is killed

    def watch():
        parent_process().join()
        while True:  # training stops with a checkpoint, whatever comes after is killed
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)

    Thread(target=watch, daemon=True).start()
    try:
        train(run)
        saying.send(None)
    except MinidpError as error:
        saying.send(str(error))


def train(run):
    """One run in this process; what it prints goes into a log beside its folder. Raises
    MinidpError.
    """
    folder = run.out / run.name
    config = run.config
    if (folder / "config.json").exists():
        config = replace(config, resume=True)
    with (
        open(run.out / f"{run.name}.log", "a", encoding="utf-8") as log,
        redirect_stdout(log),
        redirect_stderr(log),
    ):
        try:
            stopped = import_module(run.point.script).run(config)
        except BudgetExceededError as error:
            found = {
                "experiment": run.point.script,
                "command": run.command,
                "stopped": NO_LOT,
                "reason": str(error),
                "steps": 0,
                "seed": run.seed,
                "commit": git_commit(),
            }
            write_json(run.json, found)
            return
        except (MinidpError, OSError, MemoryError) as error:
            told = " ".join(str(error).split()) or type(error).__name__
            print(f"error: {told}")
            raise MinidpError(told) from None
        if stopped == "interrupted":
            print(INTERRUPTED)
            raise MinidpError(INTERRUPTED)
    write_json(run.json, result_of(folder))


def _told(result):
    if result["stopped"] == NO_LOT:
        return NO_LOT
    return (
        f"{result['test_accuracy']:.2%} after {result['steps']} lots, "
        f"{result['seconds_total']:.0f} s"
    )
