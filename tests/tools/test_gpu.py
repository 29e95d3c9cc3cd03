"""The comparison of devices, on the guarded arrays that stand for a GPU."""
from dataclasses import replace

from minidp import nn
from minidp.audit.cases import LAYERS
from tests.support.guarded import guarded_backend
from tools.gpu import check as gpu_check


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
