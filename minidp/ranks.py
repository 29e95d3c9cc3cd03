"""The processes of one run: one by itself, or the ranks that `mpiexec -n N python ...` started.

    mpiexec -n 4 python experiments/mnist_pca.py

It needs mpi4py: pip install 'minidp[mpi]', or mpi4py on a cluster's own MPI.

Every rank runs the same lines, holds the same parameters, and comes to the same calls in the same
order. Rank 0 alone writes files; `of_first` is how: what it returns or raises comes to all. mpi4py
is loaded under a launcher only, which MINIDP_RANKS=solo in the environment denies: each process
then runs by itself.
"""

import atexit
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
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
        import socket

        self._failing, self._hook = world.Dup(), sys.excepthook
        self._over, self._line, self._since = False, None, None
        served = self.comm.bcast(self._serve(neighbours == self.size) if self.rank == 0 else None)
        with suppress(
            OSError
        ):  # in a network without such connections launchers end the others all the same
            if served:
                self._line = socket.create_connection(served[0], PATIENCE)
                self._line.settimeout(PATIENCE / 10)
                self._say(
                    f"{served[1]} rank {self.rank} of {self.size} (process {os.getpid()} on "
                    f"{socket.gethostname()})\n".encode()
                )
        atexit.register(self._leave, b"b")
        sys.excepthook = self._excepthook
        threading.Thread(
            target=self._end_with_others, args=[os.getppid()], daemon=True, name="minidp ranks"
        ).start()

    def _serve(self, one_host):
        """Start `host.witness`, which names a rank that ends without a word; (address, token), or
        None where it cannot be.
        """
        import secrets
        import socket
        import subprocess

        host, token = "127.0.0.1" if one_host else "", secrets.token_hex()
        with (
            suppress(OSError, ValueError),
            socket.create_server((host, 0), backlog=self.size) as server,
        ):
            words = [
                str(Path(__file__).parent / "host" / "witness.py"),
                str(server.fileno()),
                token,
            ]
            self._witness = subprocess.Popen(
                [sys.executable, "-I", "-S", *words],
                pass_fds=[server.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            return (host or socket.gethostname(), server.getsockname()[1]), token

    def _end_with_others(self, launcher):
        """A thread: end this process when another or the launcher is gone, or one has left that
        this one waits for.
        """
        left = False
        while os.getppid() == launcher:
            try:
                if self._line is None:
                    time.sleep(PATIENCE)
                elif not self._line.recv(1):
                    break
                else:
                    left = True
            except TimeoutError:
                pass
            except OSError:
                break
            since = self._since
            if (
                left
                and since is not None
                and time.monotonic() > since + 2 * PATIENCE + self.rank / 2
            ):
                print(
                    f"rank {self.rank} of {self.size} ends the run: another rank left it, by "
                    "sys.exit or at the end of its script, and this one waits for it",
                    file=sys.__stderr__,
                    flush=True,
                )
                self._say(b"t")
                break
        if not self._over:
            os._exit(1)

    def _say(self, word):
        with suppress(
            OSError, AttributeError
        ):  # the witness is gone, and this rank is about to be; or there is none
            self._line.sendall(word)

    def _leave(self, word):
        self._over = True
        self._say(word)

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
                self._leave(b"t")
                self.comm.Abort(1)
            time.sleep(0.01)
        self._leave(b"b")
        self._failing.Barrier()  # a launcher may kill the others as soon as the first has left

    def _wait(self, function, *arguments):
        """What function(*arguments) returns, in which this rank waits for the others."""
        self._since = time.monotonic()
        try:
            return function(*arguments)
        finally:
            self._since = None

    def of_first(self, function):
        if self._alone:  # called by what rank 0 does alone
            return function()
        if self.rank:
            result, raised = pickle.loads(self._wait(self.comm.bcast, None))
        else:
            result = raised = None
            self._alone = True
            try:
                result = function()
            except (Exception, KeyboardInterrupt) as error:
                raised = error
            self._alone = False
            self._wait(self.comm.bcast, _pickled(result, raised))
        if raised is not None:
            raise raised
        return result

    def collect(self, value):
        return self._wait(self.comm.allgather, value)

    def scatter_sum(self, flat):
        part = flat[: flat.size // self.size].copy()
        self._wait(self.comm.Reduce_scatter_block, flat, part)
        return part

    def gather(self, part):
        whole = part.repeat(self.size)
        self._wait(self.comm.Allgather, part, whole)
        return whole


def current() -> Any:
    """The ranks that this process is one of: Solo, or Mpi under a launcher that started several.

    Raises ParameterError where several were started and mpi4py cannot join them, or where the
    launcher's variable is no number of processes.
    """
    global _current
    if _current is None or getattr(_current, "pid", os.getpid()) != os.getpid():
        solo = os.environ.get("MINIDP_RANKS") == "solo"
        expected = 1 if solo else _launched(*LAUNCHED)
        _current = SOLO if expected == 1 else Mpi(expected)
    return _current


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
