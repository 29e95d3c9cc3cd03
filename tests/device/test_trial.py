"""Kernels are tried before anything is charged; where one fails, its definition computes."""

import numpy as np
import pytest

from minidp.arrays import to_host
from minidp.backend import Backend
from minidp.compiled import kernel, only
from minidp.device import launching
from minidp.host.chacha import STRETCH
from minidp.streams import Draws
from minidp.train import device_trial
from minidp.train.flat import flattened
from tests.support import shim
from tests.support.guarded import guarded_backend
from tools.contenders import WORKLOADS, trainer_of

BROKEN = {  # file, text, what stands in its place, the kernels, what the line says
    "does not compile": (
        "noise.cu",
        "double r = sqrt",
        "double r = root",
        "add_normals",
        "Command",
    ),
    "a bit off": (
        "noise.cu",
        "+ std * z[q]",
        "+ std * z[q] * (1 + 1e-16 * 3)",
        "add_normals",
        "other numbers",
    ),
    "wrong blocks": (
        "noise.cu",
        "x[13] = (u32)(block >> 32)",
        "x[13] = 0",
        "add_normals",
        "other numbers",
    ),
    "no weights": ("sums.cu", "* mine", "", "weigh, add_all, add_weighted", "other numbers"),
}
place = guarded_backend()
pytestmark = pytest.mark.skipif(
    not shim.COMPILER, reason="no C++ compiler: the CUDA source was not executed"
)


@pytest.fixture(params=[None, *BROKEN])
def broken(request, monkeypatch):
    """How a kernel is broken, if it is; they count as not tried."""
    source = launching.source
    if request.param:
        which, text, other, *_ = BROKEN[request.param]
        assert text in source(which)
        monkeypatch.setattr(
            launching,
            "source",
            lambda file: source(file).replace(text, other) if file == which else source(file),
        )
    monkeypatch.setattr(launching, "_kernel", launching._kernel.__wrapped__)
    device_trial._right.cache_clear()
    with only(place.xp, ()):
        yield request.param
    device_trial._right.cache_clear()


def test_a_kernel_that_fails_is_left_out_with_one_line_that_names_it(broken, capsys):
    x = place.asarray(np.ones(3))
    assert kernel("add_normals", x) is None
    for _ in range(2):
        device_trial.try_twins(place.xp)
    names = BROKEN[broken][3] if broken else ""
    assert (kernel("add_normals", x) is None) == ("add_normals" in names)
    assert (kernel("weigh", x.astype("float32")) is None) == ("weigh" in names)
    assert kernel("relu", x.astype("float32")) is not None
    assert kernel("add_normals", x.astype("float32")) is kernel("relu", x) is None
    said = capsys.readouterr().err
    assert said.count("\n") == bool(broken)
    if broken:
        assert said.startswith("NOTICE: GPU 0 computes without these compiled kernels, slower but")
        assert names in said and BROKEN[broken][4] in said


def test_each_device_of_a_library_has_a_trial_of_its_own(monkeypatch):
    """With two in a process, the last trial does not decide for both."""
    monkeypatch.setattr(device_trial, "_right", lambda xp, number: {"relu"} if number else set())
    x = place.asarray(np.ones(3, "float32"))
    runtime = place.xp.cuda.runtime
    with only(place.xp, ()):
        for number, there in ((0, False), (1, True)):
            monkeypatch.setattr(runtime, "getDevice", lambda number=number: number)
            device_trial.try_twins(place.xp)
            assert bool(kernel("relu", x)) is there
        monkeypatch.setattr(runtime, "getDevice", lambda: 0)
        assert kernel("relu", x) is None


def trained(backend, monkeypatch):
    """(weights after three seeded steps, {release: [(first, end) of sets that it took]})."""
    taken = {}
    take = Draws.take

    def watched(self, size):
        first = take(self, size)
        end = first + -(-size // STRETCH)
        taken.setdefault(self.state().tobytes(), []).append((first, end))
        return first

    workload = WORKLOADS["W1"].small()
    trainer, examples, streams = trainer_of(workload, "factored", backend, seed=1)
    with monkeypatch.context() as patched:
        patched.setattr(Draws, "take", watched)
        with flattened(trainer):
            for step in range(3):
                trainer.step(examples, np.arange(workload.lot), step, streams)
    weights = {key: to_host(array) for key, array in trainer.network.params.items()}
    return weights, taken


def test_training_takes_the_same_numbers_wherever_they_are_drawn_each_once(broken, monkeypatch):
    found, taken = trained(place, monkeypatch)
    expected, on_the_cpu = trained(Backend.numpy(), monkeypatch)
    assert taken == on_the_cpu and len(taken) == 3
    for ranges in taken.values():
        assert len(ranges) == len(found)
        assert all(end <= first for (_, end), (first, _) in zip(ranges, ranges[1:]))
    for key, weights in expected.items():
        np.testing.assert_allclose(found[key], weights, rtol=1e-5, atol=1e-6)
