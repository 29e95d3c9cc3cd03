"""The comparisons with other libraries: their demands, and what they say of what is missing."""

import importlib.util
import subprocess
import sys

import pytest

from tests.support.scripts import ROOT
from tools import compare_accountants

TOOL = [sys.executable, "-m", "tools.compare_accountants"]


@pytest.mark.parametrize(
    "change, fault",
    [
        ({}, []),
        ({"lower": 1.001, "upper": 1.0015}, ["lower above PLD"]),
        ({"upper": 1.0031}, ["upper"]),
        ({"lower": 0.99, "upper": 0.9999}, ["width"]),
        ({"renyi": 1.21}, ["renyi"]),
    ],
)
def test_demands(change, fault):
    row = {"lower": 0.999, "upper": 1.001, "pld": 1.0, "renyi": 1.2, "rdp": 1.2, **change}
    assert compare_accountants.faults(row) == fault


def test_without_the_peers_it_says_what_to_install():
    if importlib.util.find_spec("dp_accounting"):
        done = subprocess.run([*TOOL, "--settings", "1"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0 and "1 settings, 0 outside" in done.stdout
    else:
        done = subprocess.run(TOOL, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1 and "pip install '.[peers]'" in done.stderr
