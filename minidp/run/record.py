"""What a run says of itself in result.json."""
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from .. import host

ROOT = Path(__file__).resolve().parents[2]


def versions():
    """Python, the libraries, the kernels and the threads whose rounding or random numbers a result depends on."""
    found = {"python": platform.python_version()}
    for name in ("numpy", "scipy", "numba", "minidp"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # a checkout that was not installed
            found[name] = getattr(sys.modules.get(name), "__version__", None)
    if "cupy" in sys.modules:
        found["cupy"] = sys.modules["cupy"].__version__
    return {**found, **host.describe()}


def git_commit(root=ROOT):
    """The commit of the checkout, with "-dirty" where tracked files differ from it; None if there is none."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    ceiling = {"GIT_CEILING_DIRECTORIES": str(Path(root).resolve().parent)}  # not a repository around the checkout
    try:
        done = subprocess.run(command, cwd=root, env={**os.environ, **ceiling}, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
