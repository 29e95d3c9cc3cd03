"""What tests/conftest.py promises, tried on a small test file of its own."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = ("import pytest\n@pytest.mark.slow\ndef test_a(): pass\ndef test_b(): pass\n"
        "def test_c(mnist_dir):\n    assert (mnist_dir / 'mnist').is_dir()\n")


def test_slow_tests_wait_to_be_asked_for_and_missing_real_data_is_said_loudly(tmp_path):
    (tmp_path / "test_it.py").write_text(TEXT)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MINIDP_")}
    for more, expected in (((), "1 passed, 1 skipped, 1 deselected"), (("--slow",), "2 passed, 1 skipped")):
        command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "setup.cfg"), "--rootdir", str(tmp_path),
                   "-p", "tests.conftest", "-p", "no:cacheprovider", *more, str(tmp_path / "test_it.py")]
        said = subprocess.run(command, cwd=tmp_path, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True,
                              text=True, timeout=120).stdout
        assert expected in said and "REAL DATA MISSING: 1 tests skipped, set MINIDP_DATA" in said
