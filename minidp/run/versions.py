"""Versions that a result depends on: the commit of the code, and the libraries."""

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from .. import host
from ..errors import CheckpointError

ROOT = Path(__file__).resolve().parents[2]
BY_ROW = "0.1.0"  # the version that took persons' weights by the numbers of rows
FALSE_WEIGHTS = (
    f"its epsilon is not what it says: minidp {BY_ROW} took the weights of persons with one row "
    "each by the numbers of rows, so that one person's leaving changed the weights of others"
)


def weights_were_false(version: str, rows_per_person: int | None, weighted: bool) -> bool:
    """True for a run of a minidp version that gave its `example_weight` to the wrong persons."""
    return version == BY_ROW and rows_per_person == 1 and weighted


def refuse_false_weights(folder: Any, privacy: Any, example_weight: Any) -> None:
    """Raise CheckpointError for the folder of a run that began with false weights."""
    weighted = example_weight is not None
    if weights_were_false(folder.version, privacy.rows_per_person, weighted):
        raise CheckpointError(f"{folder.path}: {FALSE_WEIGHTS}; train again in another folder")


def versions():
    """Versions of Python, the libraries and BLAS, and the BLAS kernels and threads: a result's
    rounding or random numbers depend on them.
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
    """The commit of the checkout, with "-dirty" if tracked files differ from it; None without a
    checkout.
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
