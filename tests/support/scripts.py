"""Starting an experiment as its user does."""
import os
import shutil
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def command(script, *flags):
    """The argument list that starts a script of experiments/."""
    return [sys.executable, str(ROOT / "experiments" / script), *map(str, flags)]


def environment(offline=True):
    """The environment of a user who has the checkout importable, and the real data only if asked for.

    Matrix products have the kernels and threads of this process, so that both round alike.
    """
    found = {**os.environ, "PYTHONPATH": str(ROOT), "MINIDP_KERNELS": "default"}
    if offline:
        found.pop("MINIDP_DATA", None)
    return found


def hear_interrupts():
    """For Popen's preexec_fn: a shell's background job ignores Ctrl-C, and its children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def mpiexec():
    """Path of MPI's launcher, beside this Python (from pip) or on the PATH."""
    return shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
