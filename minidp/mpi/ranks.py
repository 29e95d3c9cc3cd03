"""The ranks of MPI's COMM_WORLD; mpi4py is loaded here alone."""

import os
import pickle
import sys
import threading
import time

from ..errors import MinidpError, ParameterError
from ..host.blas import thread_functions
from ..ranks import Solo, launched
from .agree import check_rows, check_run  # noqa: F401, which the Trainer asks for
from .exchange import release_over_ranks  # noqa: F401, which the Sanitizer asks for

# ranks: half of the roundings beside those of examples that `mechanism.rounding` charges
MOST = 2**12
PATIENCE = 2.0  # seconds in which ranks that all raise the same come to do so


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
        # MPICH: whoever waits lets others compute
        if launched("MPI_LOCALNRANKS") > (os.cpu_count() or 1):
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
        # the cores of a host are shared by its ranks
        if functions and "OPENBLAS_NUM_THREADS" not in os.environ:
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


def _end_with(launcher):
    """A thread: end this process when its launcher is gone."""
    while os.getppid() == launcher:
        time.sleep(PATIENCE)
    os._exit(1)


def _pickled(result, raised):
    """For the other ranks: both, or an error that says what could not be sent."""
    try:
        return pickle.dumps((result, raised))
    except Exception as error:
        return pickle.dumps((None, MinidpError(f"rank 0: {raised or error!r}")))
