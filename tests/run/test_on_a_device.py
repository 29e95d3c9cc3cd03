"""Arrays that stand for a GPU's: the kernels and copies of a step."""

from dataclasses import replace

import numpy as np
import pytest

from minidp import nn
from minidp.backend import to_host
from tests.support import shim
from tests.support.counting import counting
from tests.support.guarded import guarded_backend, guarded_xp
from tools.benchmark import WORKLOADS
from tools.benchmark_ours import trainer_of

pytestmark = pytest.mark.skipif(
    not shim.COMPILER, reason="no C++ compiler: the kernels of a step were not executed"
)


LAUNCHES = {  # (workload, gradients): kernels of a step at most
    ("W1", "factored"): 20,
    ("W3", "factored"): 29,
    ("W5", "factored"): 53,
    ("W1", "explicit"): 18,
    ("W5", "auto"): 46,
    ("W1", "exact"): 222,
    ("W5", "exact"): 560,
}


def too_much(workload, gradients):
    """What the second step does more of than it may: the first one also makes what stays on the
    device.

    The lot's indices go to the device, nothing comes back, and nobody waits.
    """
    trainer, examples, streams = trainer_of(workload, gradients, guarded_backend())
    for step in range(2):
        with counting() as found:
            trainer.step(examples, np.arange(workload.lot), step, streams)
    over = {
        "launches": found.launches > LAUNCHES[workload.name, gradients],
        "to_device": found.to_device != [8 * workload.lot],
        "to_host": found.to_host != [],
        "waits": found.waits > 0,
        "memory_asked": found.memory_asked > 0,
    }
    return [name for name, wrong in over.items() if wrong]


@pytest.mark.parametrize("name, gradients", LAUNCHES)
def test_a_step_launches_few_kernels_and_copies_its_lot(name, gradients):
    assert too_much(replace(WORKLOADS[name], lot=4, examples=8), gradients) == []


@pytest.mark.parametrize("gradients", ["factored", "explicit"])
def test_a_larger_lot_launches_no_more(gradients):
    assert too_much(WORKLOADS["W1"], gradients) == []


@pytest.mark.parametrize(
    "mutant, found",
    [
        (lambda x: x + 0, ["launches"]),
        (to_host, ["to_host", "waits"]),
        (lambda x: guarded_xp.asarray(np.zeros(1)), ["to_device"]),
        (lambda x: guarded_xp.cuda.runtime.memGetInfo(), ["memory_asked"]),
    ],
    ids=["a kernel", "a copy back", "a copy to the device", "a question"],
)
def test_a_step_that_does_too_much_is_noticed(mutant, found, monkeypatch):
    forward = nn.Dense.compute_y

    def changed(self, x, rng):
        mutant(x)
        return forward(self, x, rng)

    monkeypatch.setattr(nn.Dense, "compute_y", changed)
    assert too_much(WORKLOADS["W1"].small(), "factored") == found
