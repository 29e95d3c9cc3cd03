"""Contenders, each alive in a process of its own, take turns: only one runs at any time.

So the noise of the machine hits all alike, no library's waiting threads disturb another's, and each
may have its own interpreter and its own settings of the C library's allocator.
"""

import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from .machine import available_cores, vector_flags

ENVIRONMENT = dict(
    os.environ
)  # before minidp is imported, which may choose kernels there for its own process

from minidp.errors import MinidpError

from .ours import FLOORS, STRATEGIES
from .worker import WARM_BELOW

ROOT = Path(__file__).resolve().parents[2]
KEPT = "+pages"  # a peer whose allocator keeps the pages it frees, as minidp's does
KEEP_PAGES = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1)}
OURS = (*STRATEGIES, *FLOORS)
TORCH, OPACUS, JAX = (
    ("torch", "torch-in-place"),
    ("opacus", "opacus-ghost", "opacus-ew", "opacus-functorch"),
    ("jax", "jax-vmap"),
)
PEERS = tuple(name + kept for name in TORCH + OPACUS for kept in ("", KEPT)) + JAX
SETTLE = (
    0.06  # seconds between turns: OpenBLAS's threads go on spinning for a while after a product
)


class ContenderError(MinidpError):
    """A contender cannot run, or died."""


@dataclass(frozen=True)
class Settings:
    """How a contest is held.

    rounds    turns of each contender; one whose step takes longer than WARM_BELOW seconds has every
              third
    seconds   length of a turn, at least one step
    most      steps in a turn at most
    """

    device: str = "cpu"
    threads: int = available_cores()
    rounds: int = 15
    seconds: float = 0.1
    most: int = 50
    peers_python: str = sys.executable


class Contender:
    """A process that times one library's step when told to."""

    def __init__(self, name, workload, settings):
        """Start the process and let it prepare. Raises ContenderError."""
        self.name, self.turns = name, []
        threads = str(settings.threads)
        env = {
            **ENVIRONMENT,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            **(KEEP_PAGES if name.endswith(KEPT) else {}),
        }
        self._errors = tempfile.TemporaryFile("w+")
        python = sys.executable if name in OURS else settings.peers_python
        self._process = subprocess.Popen(
            [python, "-m", "tools.bench.worker", threads],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=env,
            cwd=ROOT,
        )
        try:
            self.said = self.ask(
                do="prepare",
                contender=name.removesuffix(KEPT),
                workload=asdict(workload),
                device=settings.device,
            )
        except BaseException:
            self.close()
            raise

    def ask(self, **request):
        """The answer to one request. Raises ContenderError."""
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            answer = json.loads(self._process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError) as error:
            raise ContenderError(
                f"{self.name}: its process ended ({self._last_words()})"
            ) from error
        if "error" in answer:
            raise ContenderError(f"{self.name}: {answer['error'].removeprefix('error: ')}")
        return answer

    def _last_words(self):
        self._errors.seek(0)
        said = self._errors.read().strip().splitlines()
        try:
            killed = self._process.wait(timeout=5) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            killed = False
        return "killed, perhaps for its memory" if killed else said[-1] if said else "no message"

    def turn(self, number, settings):
        """Run in round `number`, unless slow and not yet due."""
        due = self.said["step_s"] < WARM_BELOW or number % 3 == 0
        answer = self.ask(do="turn", seconds=settings.seconds, most=settings.most) if due else {}
        times = answer.pop("times_s", None)
        self.turns.append(times and round(1000 * statistics.median(times), 4))
        self.said.update(answer)

    def close(self):
        """End the process."""
        with contextlib.suppress(BrokenPipeError):  # it is dead already
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def row(self):
        """What was measured: milliseconds by round (null where it did not run), their median,
        memory, versions.
        """
        ran = [t for t in self.turns if t is not None]
        said = {
            key: value for key, value in self.said.items() if key != "step_s" and value is not None
        }
        return {
            "contender": self.name,
            "step_ms": statistics.median(ran),
            "fastest_turn_ms": min(ran),
            "turns_ms": self.turns,
            **said,
        }


def hold(workload, names, settings, complain, bar):
    """Let the named contenders compete on one workload: (rows, whether it was interrupted).

    complain(line) is told of contenders that cannot run, or die; the others go on. bar is a tqdm
    bar.
    """
    contenders, dead, interrupted = [], set(), False

    def start(name):
        bar.set_description(f"{workload.name} {workload.lot} {name}")
        try:
            contenders.append(Contender(name, workload, settings))
        except ContenderError as error:
            complain(f"left out: {error}")
        bar.update()

    try:
        if settings.device == "cpu":
            for name in names:
                start(name)
        else:  # a device takes many seconds to start on; turns are still one at a time
            with ThreadPoolExecutor() as pool:
                list(pool.map(start, names))
        order = random.Random(0)
        for number in range(settings.rounds):
            bar.set_description(
                f"{workload.name} {workload.lot} round {number + 1} of {settings.rounds}"
            )
            for contender in order.sample(contenders, len(contenders)):
                if contender not in dead:
                    time.sleep(SETTLE)
                    try:
                        contender.turn(number, settings)
                    except ContenderError as error:
                        complain(str(error))
                        dead.add(contender)
                bar.update()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        for contender in contenders:
            contender.close()
    return [contender.row() for contender in contenders if any(contender.turns)], interrupted


def peers_installed(python):
    """Which of torch, opacus and jax the interpreter can import. Raises ContenderError if it does
    not run.
    """
    code = "import importlib.util as u; print(*(m for m in ('torch', 'opacus', 'jax') if u.find_spec(m)))"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ContenderError(f"{python}: no Python interpreter that runs") from error
    return done.stdout.split()


def needs(peer):
    """The libraries that a peer needs."""
    return (
        {"jax"} if peer in JAX else {"torch"} if peer.startswith("torch") else {"torch", "opacus"}
    )


def suits(peer, workload):
    """Opacus's modes for convolutions are no faster elsewhere."""
    return workload.convolutional or not peer.startswith(("opacus-ew", "opacus-functorch"))


def conditions(settings):
    """What all contenders of a contest share."""
    return {
        "device": settings.device,
        "threads": settings.threads,
        "cores": os.cpu_count(),
        "vector_flags": vector_flags(),
        "rounds": settings.rounds,
        "turn_s": settings.seconds,
    }
