"""The noise kernel is tried before anything is charged; where it fails, noise is the host's."""

import numpy as np
import pytest

from minidp import device
from minidp.arrays import to_host
from minidp.backend import Backend
from minidp.compiled import kernel, only
from minidp.host.chacha import STRETCH
from minidp.streams import Draws
from minidp.train import device_trial
from tests.support import shim
from tests.support.guarded import guarded_backend
from tools.contenders import WORKLOADS, trainer_of

BROKEN = {  # what goes wrong: the text, what stands in its place, and what the line says
    "does not compile": ("double r = sqrt", "double r = root", "Command"),
    "a bit off": ("+ std * z[q]", "+ std * z[q] * (1 + 1e-16 * 3)", "numbers are not the host's"),
    "wrong blocks": ("x[13] = (u32)(block >> 32)", "x[13] = 0", "numbers are not the host's"),
}
place = guarded_backend()
pytestmark = pytest.mark.skipif(
    not shim.COMPILER, reason="no C++ compiler: the CUDA source was not executed"
)


@pytest.fixture(params=[None, *BROKEN])
def broken(request, monkeypatch):
    """How the kernel is broken, if it is; it counts as not tried."""
    if request.param:
        text, other, _ = BROKEN[request.param]
        changed = device.source().replace(text, other)
        assert changed != device.source()
        monkeypatch.setattr(device, "source", lambda: changed)
    monkeypatch.setattr(device, "_kernel", device._kernel.__wrapped__)
    device_trial._gives_the_hosts_bits.cache_clear()
    with only(place.xp, ()):
        yield request.param
    device_trial._gives_the_hosts_bits.cache_clear()


def test_a_kernel_that_fails_is_left_out_with_one_line(broken, capsys):
    x = place.asarray(np.ones(3))
    assert kernel("add_normals", x) is None
    for _ in range(2):
        device_trial.try_twins(place.xp)
    assert (kernel("add_normals", x) is None) == bool(broken)
    assert kernel("add_normals", x.astype("float32")) is kernel("relu", x) is None
    said = capsys.readouterr().err
    assert said.count("\n") == bool(broken)
    if broken:
        assert said.startswith("NOTICE: noise is drawn on the CPU and copied to GPU 0, slower but")
        assert BROKEN[broken][2] in said


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
