"""Compile the accountants' kernels in another process while a run trains. Otherwise the first run
on a machine waits for them at its end.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..host import jit
from ..privacy import Gaussian, Ledger, PoissonSampled
from ..privacy.accountants import ACCOUNTANTS, all_bounds

CODE = "from minidp.run.ahead import compile_all; compile_all()"


@contextmanager
def compiled_ahead(wanted: bool = True) -> Iterator[None]:
    """Context in which another process compiles kernels that are not yet in Numba's folder. Its end
    waits for that process, because the kernels are needed next. The process may fail without harm.
    """
    process = _started() if wanted and not is_compiled() else None
    try:
        yield
        if process:
            process.wait()
    finally:
        if process and process.poll() is None:  # the run ended early
            process.kill()
            process.wait()


def is_compiled() -> bool:
    """True if the kernels are in Numba's folder already, or cannot be kept there."""
    if jit.OFF or not jit.CACHED:
        return True
    from ..certified.loss_kernels import crossing

    folder = Path(str(crossing.stats.cache_path))
    return any(folder.glob("loss_kernels.crossing-*.nbi"))


def compile_all() -> None:
    """Compute a figure by every accountant, at low priority, so that its kernels are compiled."""
    os.nice(10)
    ledger = Ledger()
    ledger.append(PoissonSampled(0.01, Gaussian(4.0)), 100)
    all_bounds(ledger, ACCOUNTANTS, delta=1e-5)


def _started():
    paths = os.pathsep.join(filter(None, sys.path))
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    command, environment = [sys.executable, "-c", CODE], {**os.environ, "PYTHONPATH": paths}
    try:
        return subprocess.Popen(command, env=environment, **quiet)
    except OSError:  # no memory or no process: the run compiles when it needs the kernels
        return None
