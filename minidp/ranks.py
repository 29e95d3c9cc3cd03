"""The processes of one run: one by itself, or the ranks that `mpiexec -n N python ...` started.

    mpiexec -n 4 python experiments/mnist_pca.py

It needs mpi4py: pip install 'minidp[mpi]', or mpi4py on a cluster's own MPI.

Every rank runs the same lines, holds the same parameters, and makes the same calls in the same
order. Only rank 0 writes files, by `of_first`, whose result or error all ranks get. mpi4py is
loaded only under a launcher. MINIDP_RANKS=solo in the environment ignores the launcher: each
process then runs by itself.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from .errors import ParameterError, RanksError
from .util.lazy import ring

# environment variables that launchers set
LAUNCHED = (
    "PMI_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "SLURM_STEP_NUM_TASKS",
)
_current: Any = None


class Solo:
    """A single process, which exchanges nothing."""

    rank, size, gpu_aware = 0, 1, False

    def of_first(self, function: Callable[[], Any]) -> Any:
        """Call `function` on rank 0 only, while the others wait; all ranks get its result or its
        error.
        """
        return function()

    def any(self, flag: bool) -> bool:
        """True if the value is true on any rank."""
        return any(self.collect(flag))

    def collect(self, value: Any) -> list:
        """The values of all ranks, in their order."""
        return [value]

    def scatter_sum(self, flat: Any) -> Any:
        """(P / size,) this rank's slice of the sum of the ranks' flat arrays (P,). P is a multiple
        of size.
        """
        return flat

    def gather(self, part: Any) -> Any:
        """(size n,) the ranks' arrays (n,) in one."""
        return part

    @contextmanager
    def one_voice(self) -> Iterator[None]:
        """Context in which only rank 0 prints on stdout and stderr."""
        if self.rank == 0:
            yield
            return
        with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
            yield

    def failing(self, line: str) -> None:
        """Return if all ranks reach this call, as after an error that all of them raise. Otherwise
        print the line and end all ranks.
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


def current() -> Any:
    """The ranks of this process: Mpi if a launcher started several processes, otherwise Solo.
    Raises ParameterError if several were started and mpi4py cannot join them, if torchrun started
    them, or if the launcher's variable is not a number of processes.
    """
    global _current
    if _current is None or getattr(_current, "pid", os.getpid()) != os.getpid():
        solo = os.environ.get("MINIDP_RANKS") == "solo"
        expected = 1 if solo else launched(*LAUNCHED)
        if expected == 1 and not solo:
            _refuse_torchrun()
        _current = SOLO if expected == 1 else _joined(expected)
    return _current


def _joined(expected):
    """The ranks of a launcher. By itself, each process would make releases of the same rows."""
    if (mpi := ring("ranks")) is None:
        raise ParameterError(
            f"this is one of {expected} processes of a launcher (mpiexec, srun), whose ranks the "
            "folder mpi of minidp joins, and it was left out here: set MINIDP_RANKS=solo for "
            "processes that have nothing to do with each other"
        )
    return mpi.Mpi(expected)


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


def launched(*names):
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
