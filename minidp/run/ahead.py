"""Compile the accountants' kernels in a process of its own while a run trains. Otherwise the first
run on a machine waits for them when it ends.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..host import jit
from ..privacy import Gaussian, Ledger, PoissonSampled
from ..privacy.accountants import all_bounds, every

CODE = "from minidp.run.ahead import compile_all; compile_all()"


@contextmanager
def compiled_ahead(wanted: bool = True) -> Iterator[None]:
    """A context in which another process compiles what is not in Numba's folder yet; its end waits
    for that process, because the kernels are needed next. Nothing depends on its success.
    """
    process = _started() if wanted and not is_compiled() else None
    try:
        yield
        if process:
            process.wait()
    finally:
        if process and process.poll() is None:  # the run was ended
            process.kill()
            process.wait()


def is_compiled() -> bool:
    """True if the kernels are in Numba's folder, or cannot be put there."""
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
    all_bounds(ledger, [each.name for each in every()], delta=1e-5)


def _started():
    paths = os.pathsep.join(filter(None, sys.path))
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    command, environment = [sys.executable, "-c", CODE], {**os.environ, "PYTHONPATH": paths}
    try:
        return subprocess.Popen(command, env=environment, **quiet)
    except OSError:  # no memory or no process to be had: the run compiles when it needs to
        return None
