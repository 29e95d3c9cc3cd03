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


@pytest.mark.parametrize("name", ["mnist/train-images-idx3-ubyte.gz", "mnist/train-images-idx3-ubyte"])
def test_real_data_is_found_and_counted(run, tmp_path, name):
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).touch()
    output = run(REAL, MINIDP_DATA=str(tmp_path))
    assert "real data: 1 tests ran on real MNIST" in output and "MISSING" not in output


def test_cache_is_a_temporary_directory_that_disappears(run, tmp_path):
    note = tmp_path / "note"
    text = ("import os, pathlib\n"
            f"def test_a(): pathlib.Path({str(note)!r}).write_text(os.environ['MINIDP_CACHE'])\n")
    assert "1 passed" in run(text)
    assert not Path(note.read_text()).exists()
    assert "1 passed" in run(text, MINIDP_CACHE=str(tmp_path))
    assert note.read_text() == str(tmp_path) and tmp_path.exists()
