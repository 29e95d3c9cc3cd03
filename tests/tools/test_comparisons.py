"""The comparisons with other libraries and with the GPU: their demands, and what they say of what is missing."""
import importlib.util
import subprocess
import sys
from dataclasses import replace

import pytest

from minidp import nn
from minidp.audit.cases import LAYERS
from tests.support.guarded import guarded_backend
from tools import compare_accountants
from tools.gpu import check as gpu_check
from tests.support.scripts import ROOT

TOOL = [sys.executable, "-m", "tools.compare_accountants"]


@pytest.mark.parametrize("change, fault", [
    ({}, []), ({"lower": 1.001, "upper": 1.0015}, ["lower above PLD"]), ({"upper": 1.0031}, ["upper"]),
    ({"lower": 0.99, "upper": 0.9999}, ["width"]), ({"renyi": 1.21}, ["renyi"])])
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


def test_guarded_arrays_agree_with_the_cpu(capsys):
    assert gpu_check.check(guarded_backend(), steps=5) == 0
    assert "0 failed" in capsys.readouterr().out


def test_a_layer_that_differs_is_noticed(monkeypatch, capsys):
    class Other(nn.Tanh):
        def _value(self, x, xp):
            return xp.tanh(x) * (1 if xp.__name__ == "numpy" else 1.01)

    wrong = replace(next(case for case in LAYERS if case.name == "tanh"), make=lambda rng, dtype: Other())
    monkeypatch.setattr(gpu_check, "LAYERS", [wrong])
    assert gpu_check.check(guarded_backend(), steps=1) == 2  # once for each dtype
    assert "FAIL" in capsys.readouterr().out
