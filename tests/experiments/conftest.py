"""Running an experiment as its user does."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run_script(tmp_path):
    """run_script("mnist_pca.py", *flags) -> CompletedProcess, in an empty folder, on the offline digits."""

    def run(script, *flags, offline=True, check=None):
        done = subprocess.run(command(script, *flags), cwd=tmp_path, env=environment(offline), text=True,
                              capture_output=True, timeout=300)
        if check is not None:
            assert done.returncode == check, done.stderr + done.stdout
        return done

    return run


def command(script, *flags):
    """The argument list that starts a script."""
    return [sys.executable, str(ROOT / "experiments" / script), *map(str, flags)]


def environment(offline=True):
    """The environment of a user: warnings as they come, the checkout importable, data only if asked for."""
    found = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    if offline:
        found.pop("MINIDP_DATA", None)
    return found


@pytest.fixture
def start_script(tmp_path):
    """start_script(script, *flags) -> Popen in the same folder as run_script."""

    def start(script, *flags):
        return subprocess.Popen(command(script, *flags), cwd=tmp_path, env=environment(), text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    return start
