"""A device's twins are tried before anything is charged, and those that fail are left out."""

import numpy as np
import pytest

from minidp import device
from minidp.device import launching
from minidp.kernels import TWINS, kernel, only
from minidp.train import twins
from tests.support import shim
from tests.support.guarded import guarded_backend

place = guarded_backend()
needs_compiler = pytest.mark.skipif(
    not shim.COMPILER, reason="no C++ compiler: the CUDA sources were not executed"
)
THERE = {name for name in TWINS if hasattr(device, name)}
TRIED = {names: set(names.split()) for names in twins.TRIALS}


def test_every_twin_of_a_device_is_tried():
    assert set().union(*TRIED.values()) == THERE


def test_a_device_that_was_not_tried_computes_by_definitions():
    x = place.asarray(np.ones(3, "float32"))
    with only(place.xp, ()):
        assert kernel("exp", x) is None and kernel("exp", x.get()) is not None


@needs_compiler
@pytest.mark.parametrize(
    "file, text, other, lost, why",
    [
        ("loss.cu", "", "", "", ""),
        ("loss.cu", "u64)classes;", "u64)classes", "softmax_cross_entropy", "Command"),
        (
            "elementwise.cu",
            "(float)tanh_(x[i])",
            "nextafterf((float)tanh_(x[i]), 9)",
            "exp log tanh relu relu_gradient",
            "other numbers",
        ),
        (
            "sums.cu",
            "w[b] * (double)value",
            "(double)value",
            "add_weighted_each add_weighted_products",
            "other numbers",
        ),
    ],
    ids=["right", "does not compile", "a bit off", "a wrong sum"],
)
def test_a_twin_that_fails_is_left_out_with_one_line(
    file, text, other, lost, why, monkeypatch, capsys
):
    source = launching.source
    monkeypatch.setattr(
        launching,
        "source",
        lambda name: source(name).replace(text, other) if name == file else source(name),
    )
    monkeypatch.setattr(launching, "_kernel", launching._kernel.__wrapped__)
    assert twins._right.__wrapped__(place.xp, 3) == THERE - TRIED.get(lost, set())
    said = capsys.readouterr().err
    assert said.count("\n") == (lost != "")
    if lost:
        assert said.startswith("NOTICE: GPU 3 computes without these compiled kernels, slower")
        assert lost.replace(" ", ", ") in said and why in said
