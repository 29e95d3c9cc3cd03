"""Starting Python and experiments as their user does."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# pip's first
MPIEXEC = shutil.which(
    "mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
)


def command(line):
    """The argument list that starts a script of experiments/ with its flags."""
    script, *flags = shlex.split(line)
    return [sys.executable, str(ROOT / "experiments" / script), *flags]


def environment():
    """The environment of a user who has the checkout importable, and not the real data.

    Matrix products have the kernels and threads of this process, so that both round alike.
    """
    found = {**os.environ, "PYTHONPATH": str(ROOT), "MINIDP_KERNELS": "default"}
    found.pop("MINIDP_DATA", None)
    return found


def python(*words, **named):
    """A process of this Python, when it has ended."""
    named = {"env": environment(), "capture_output": True, "text": True} | named
    return subprocess.run([sys.executable, *map(str, words)], **named)
