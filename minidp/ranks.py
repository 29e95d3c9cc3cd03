"""The processes of one run: one by itself, or the ranks that `mpiexec -n N python ...` started.

    mpiexec -n 4 python experiments/mnist_pca.py

It needs mpi4py: pip install 'minidp[mpi]', or mpi4py on a cluster's own MPI.

Every rank runs the same lines, holds the same parameters, and comes to the same calls in the same
order. Rank 0 alone writes files; `of_first` is how: what it returns or raises comes to all. mpi4py
is loaded under a launcher only, which MINIDP_RANKS=solo in the environment denies: each process
then runs by itself.
"""

import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from .errors import MinidpError, ParameterError, RanksError
from .host.blas import thread_functions

# set by launchers
LAUNCHED = (
    "PMI_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "SLURM_STEP_NUM_TASKS",
)
# ranks: half of the roundings beside those of examples that `mechanism.rounding` charges
MOST = 2**12
PATIENCE = 2.0  # seconds in which ranks that all raise the same come to do so
_current: Any = None


class Solo:
    """One process by itself: nothing is exchanged."""

    rank, size, gpu_aware = 0, 1, False

    def of_first(self, function: Callable[[], Any]) -> Any:
        """What `function` returns or raises on rank 0, the only one that calls it; the others
        wait.
        """
        return function()

    def any(self, flag: bool) -> bool:
        """True if it is true on any rank."""
        return any(self.collect(flag))

    def collect(self, value: Any) -> list:
        """The values of all ranks, in their order."""
        return [value]

    def scatter_sum(self, flat: Any) -> Any:
        """(P / size,) this rank's slice of the sum of the ranks' flat arrays (P,), P a multiple of
        size.
        """
        return flat

    def gather(self, part: Any) -> Any:
        """(size n,) the ranks' arrays (n,), one behind the other."""
        return part

    @contextmanager
    def one_voice(self) -> Iterator[None]:
        """A context in which rank 0 alone is heard on stdout and stderr."""
        if self.rank == 0:
            yield
            return
        with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
            yield

    def failing(self, line: str) -> None:
        """Return where all ranks come here, as after an error that all of them raise; else print
        the line and end them all.
        """

    def check_equal(self, what: str, value: Any) -> None:
        """Raise RanksError on all ranks unless all have the same value."""
        found = self.collect(value)
        odd = [rank for rank, each in enumerate(found) if each != found[0]]
        if odd:
            raise RanksError(
                f"{what} differ between rank 0 and rank {', '.join(map(str, odd))}: every rank has "
                "to run the same lines on the same data, with the same software; stopped before "
                "anything more was released"
            )


SOLO = Solo()


class Mpi(Solo):
    """The ranks of MPI's COMM_WORLD. Arrays that are exchanged are on the host, or on devices with
    MINIDP_GPU_AWARE_MPI=1.
    """

    def __init__(self, expected: int):
        """expected: how many processes the launcher started. Raises ParameterError unless mpi4py
        sees as many.
        """
        why = f"this is one of {expected} processes of a launcher (mpiexec, srun)"
        how = (
            "install mpi4py for that launcher's MPI (pip install 'minidp[mpi]' brings both), or "
            "set MINIDP_RANKS=solo for processes that have nothing to do with each other"
        )
        if _launched("MPI_LOCALNRANKS") > (
            os.cpu_count() or 1
        ):  # MPICH: whoever waits lets others compute
            os.environ.setdefault("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
        try:
            from mpi4py import MPI
        except Exception as error:  # a library that it cannot find is a RuntimeError
            raise ParameterError(f"{why}, and mpi4py cannot be imported ({error}): {how}") from None
        world = MPI.COMM_WORLD
        if world.size != expected:
            raise ParameterError(f"{why}, of which mpi4py sees {world.size}: {how}")
        if world.size > MOST:
            raise ParameterError(f"expected at most {MOST} ranks, got {world.size}")
        self.comm, self.rank, self.size = world.Dup(), world.rank, world.size
        self.gpu_aware = os.environ.get("MINIDP_GPU_AWARE_MPI") == "1"
        self.pid, self._alone = os.getpid(), False
        os.environ["MINIDP_RANKS"] = "solo"  # processes that a rank starts are none
        neighbours, functions = world.Split_type(MPI.COMM_TYPE_SHARED).size, thread_functions()
        if (
            functions and "OPENBLAS_NUM_THREADS" not in os.environ
        ):  # the cores of a host are shared by its ranks
            functions[1](max(1, functions[0]() // neighbours))
        self._failing, self._hook = world.Dup(), sys.excepthook
        sys.excepthook = self._excepthook
        threading.Thread(
            target=_end_with, args=[os.getppid()], daemon=True, name="minidp ranks"
        ).start()

    def _excepthook(self, kind, error, trace):
        import traceback

        at = traceback.extract_tb(trace)[-1] if trace else None
        self.failing(f"{kind.__name__}: {error}" + (f" ({at.filename}:{at.lineno})" if at else ""))
        if self.rank == 0:
            self._hook(kind, error, trace)

    def failing(self, line):
        # the lowest speaks first
        came, until = (
            self._failing.Ibarrier(),
            time.monotonic() + PATIENCE + min(self.rank, 20) / 10,
        )
        while not came.Test():
            if time.monotonic() > until:
                print(
                    f"rank {self.rank} of {self.size} ends the run: {' '.join(line.split())}",
                    file=sys.__stderr__,
                    flush=True,
                )
                self.comm.Abort(1)
            time.sleep(0.01)
        self._failing.Barrier()  # a launcher may kill the others as soon as the first has left

    def of_first(self, function):
        if self._alone:  # called by what rank 0 does alone
            return function()
        if self.rank:
            result, raised = pickle.loads(self.comm.bcast(None))
        else:
            result = raised = None
            self._alone = True
            try:
                result = function()
            except (Exception, KeyboardInterrupt) as error:
                raised = error
            self._alone = False
            self.comm.bcast(_pickled(result, raised))
        if raised is not None:
            raise raised
        return result

    def collect(self, value):
        return self.comm.allgather(value)

    def scatter_sum(self, flat):
        part = flat[: flat.size // self.size].copy()
        self.comm.Reduce_scatter_block(flat, part)
        return part

    def gather(self, part):
        whole = part.repeat(self.size)
        self.comm.Allgather(part, whole)
        return whole


def current() -> Any:
    """The ranks that this process is one of: Solo, or Mpi under a launcher that started several.

    Raises ParameterError where several were started and mpi4py cannot join them, where torchrun
    started several, or where the launcher's variable is no number of processes.
    """
    global _current
    if _current is None or getattr(_current, "pid", os.getpid()) != os.getpid():
        solo = os.environ.get("MINIDP_RANKS") == "solo"
        expected = 1 if solo else _launched(*LAUNCHED)
        if expected == 1 and not solo:
            _refuse_torchrun()
        _current = SOLO if expected == 1 else Mpi(expected)
    return _current


def _refuse_torchrun():
    """Raise ParameterError in one of several processes of torchrun: each would release a result of
    its own, from the same rows.
    """
    size = os.environ.get("WORLD_SIZE", "1")
    if "RANK" in os.environ and size.isdecimal() and int(size) > 1:
        raise ParameterError(
            f"this is one of {size} processes (WORLD_SIZE, RANK: torchrun, accelerate), each of "
            "which would make a release of its own and spend epsilon again: start ranks by mpiexec "
            "or srun, or set MINIDP_RANKS=solo for processes that have nothing to do with each "
            "other"
        )


def _end_with(launcher):
    """A thread: end this process when its launcher is gone."""
    while os.getppid() == launcher:
        time.sleep(PATIENCE)
    os._exit(1)


def _launched(*names):
    """The number of processes that the first of these environment variables says; 1 without any."""
    for name in names:
        text = os.environ.get(name)
        if text is None:
            continue
        try:
            number = int(text)
        except ValueError:
            number = 0
        if number < 1:
            raise ParameterError(
                f"{name}={text!r:.80} in the environment: expected the number of processes that a "
                "launcher (mpiexec, srun) started, at least 1; unset it, or set MINIDP_RANKS=solo "
                "for a process that runs by itself"
            )
        return number
    return 1


def _pickled(result, raised):
    """For the other ranks: both, or an error that says what could not be sent."""
    try:
        return pickle.dumps((result, raised))
    except Exception as error:
        return pickle.dumps((None, MinidpError(f"rank 0: {raised or error!r}")))
