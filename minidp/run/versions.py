"""What made a result: the commit of the code, and the libraries that its last digits depend on."""

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np

from .. import host

ROOT = Path(__file__).resolve().parents[2]


def versions():
    """Python, the libraries, BLAS, its kernels and the threads that a result's rounding or random
    numbers depend on.
    """
    found = {"python": platform.python_version()}
    for name in ("numpy", "scipy", "numba"):
        found[name] = metadata.version(name)
    found["minidp"] = sys.modules["minidp"].__version__
    if "cupy" in sys.modules:
        found["cupy"] = sys.modules["cupy"].__version__
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    found["blas"] = f"{blas['name']} {blas.get('version', 'of unknown version')}"
    return {**found, **host.describe()}


def git_commit(root=ROOT):
    """The commit of the checkout, with "-dirty" where tracked files differ from it; None if there
    is none.
    """
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    # not a repository around the checkout
    ceiling = {"GIT_CEILING_DIRECTORIES": str(Path(root).resolve().parent)}
    try:
        done = subprocess.run(
            command, cwd=root, env={**os.environ, **ceiling}, capture_output=True, text=True
        )
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
