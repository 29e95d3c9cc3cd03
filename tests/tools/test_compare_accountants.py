"""The comparison with other libraries: its demands, and what it says where they are not installed."""
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "compare_accountants.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("compare_accountants", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("change, fault", [
    ({}, []), ({"lower": 1.001, "upper": 1.0015}, ["lower above PLD"]), ({"upper": 1.0031}, ["upper"]),
    ({"lower": 0.99, "upper": 0.9999}, ["width"]), ({"renyi": 1.21}, ["renyi"])])
def test_demands(tool, change, fault):
    row = {"lower": 0.999, "upper": 1.001, "pld": 1.0, "renyi": 1.2, "rdp": 1.2, **change}
    assert tool.faults(row) == fault


def test_without_the_peers_it_says_what_to_install():
    if importlib.util.find_spec("dp_accounting"):
        done = subprocess.run([sys.executable, str(TOOL), "--settings", "1"], capture_output=True, text=True)
        assert done.returncode == 0 and "1 settings, 0 outside" in done.stdout
    else:
        done = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1 and "pip install '.[peers]'" in done.stderr
