"""Running an experiment as its user does, in an empty folder and on the offline digits."""
import subprocess

import pytest

from tests.support.scripts import command, environment


@pytest.fixture
def run_script(tmp_path):
    """run_script("mnist_pca.py", *flags) -> CompletedProcess; check: the exit status it must have."""

    def run(script, *flags, offline=True, check=None):
        done = subprocess.run(command(script, *flags), cwd=tmp_path, env=environment(offline), text=True,
                              capture_output=True, timeout=300)
        if check is not None:
            assert done.returncode == check, done.stderr + done.stdout
        return done

    return run


@pytest.fixture
def start_script(tmp_path):
    """start_script(script, *flags) -> Popen in the same folder as run_script."""

    def start(script, *flags):
        return subprocess.Popen(command(script, *flags), cwd=tmp_path, env=environment(), text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    return start
