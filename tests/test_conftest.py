"""What tests/conftest.py promises, tried on small test files of their own."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def run(tmp_path):
    def run(text, *arguments, **environment):
        (tmp_path / "test_it.py").write_text(text)
        outside = {key: value for key, value in os.environ.items() if not key.startswith("MINIDP_")}
        command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "setup.cfg"), "--rootdir", str(tmp_path),
                   "-p", "tests.conftest", "-p", "no:cacheprovider", *arguments, str(tmp_path / "test_it.py")]
        done = subprocess.run(command, cwd=tmp_path, env={**outside, "PYTHONPATH": str(ROOT), **environment},
                              capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr

    return run


SLOW = "import pytest\n@pytest.mark.slow\ndef test_a(): pass\ndef test_b(): pass\n"


def test_slow_tests_run_only_when_asked(run):
    assert "1 passed, 1 deselected" in run(SLOW)
    assert "2 passed" in run(SLOW, "--slow")


REAL = "def test_a(mnist_dir):\n    assert (mnist_dir / 'mnist').is_dir()\ndef test_b(): pass\n"


def test_missing_real_data_is_said_loudly(run, tmp_path):
    output = run(REAL)
    assert "1 passed, 1 skipped" in output
    assert "REAL DATA MISSING: 1 tests skipped, set MINIDP_DATA" in output
    assert "no MNIST files in MINIDP_DATA" in run(REAL, "-rs", MINIDP_DATA=str(tmp_path))
