"""Arrays that stand for a GPU's: the kernels and copies of a step. `pytest -s` prints how many."""

from dataclasses import replace

import numpy as np
import pytest

from minidp import nn
from minidp.backend import to_host
from tests.support import shim
from tests.support.counting import counting
from tests.support.guarded import guarded_backend, guarded_xp
from tools.contenders import WORKLOADS, trainer_of

pytestmark = pytest.mark.skipif(
    not shim.COMPILER, reason="no C++ compiler: the kernels of a step were not executed"
)


MOST_LAUNCHES = 1000  # of a small lot's step, to notice a loop over examples or numbers
STEPS = [
    ("W1", "factored"),
    ("W3", "factored"),
    ("W5", "factored"),
    ("W1", "explicit"),
    ("W5", "auto"),
]


def second_step(workload, gradients):
    """Counts of the second step; the first one also makes what stays on the device."""
    trainer, examples, streams = trainer_of(workload, gradients, guarded_backend())
    for step in range(2):
        with counting() as found:
            trainer.step(examples, np.arange(workload.lot), step, streams)
    return found


def too_much(found, lot):
    """What a step does that it may not: the lot's indices go to the device, nothing comes back, and
    nobody waits.
    """
    over = {
        "to_device": found.to_device != [8 * lot],
        "to_host": found.to_host != [],
        "waits": found.waits > 0,
        "memory_asked": found.memory_asked > 0,
    }
    return [name for name, wrong in over.items() if wrong]


@pytest.mark.parametrize("name, gradients", STEPS)
def test_a_step_copies_its_lot_and_waits_for_nothing(name, gradients):
    found = second_step(replace(WORKLOADS[name], lot=4, examples=8), gradients)
    print(f"{name} {gradients}: {found.launches} launches")
    assert too_much(found, 4) == [] and found.launches <= MOST_LAUNCHES


def test_a_larger_lot_launches_no_more():
    workload = WORKLOADS["W1"]
    found = second_step(workload, "explicit")
    fewer = second_step(replace(workload, lot=4, examples=8), "explicit")
    assert too_much(found, workload.lot) == [] and found.launches == fewer.launches


@pytest.mark.parametrize(
    "mutant, more, found",
    [
        (lambda x: x + 0, 1, []),
        (to_host, 0, ["to_host", "waits"]),
        (lambda x: guarded_xp.asarray(np.zeros(1)), 0, ["to_device"]),
        (lambda x: guarded_xp.cuda.runtime.memGetInfo(), 0, ["memory_asked"]),
    ],
    ids=["a kernel", "a copy back", "a copy to the device", "a question"],
)
def test_a_step_that_does_more_is_noticed(mutant, more, found, monkeypatch):
    workload, forward = WORKLOADS["W1"].small(), nn.Dense.compute_y
    usual = second_step(workload, "factored")

    def changed(self, x, rng):
        mutant(x)
        return forward(self, x, rng)

    monkeypatch.setattr(nn.Dense, "compute_y", changed)
    changed_step = second_step(workload, "factored")
    assert too_much(changed_step, workload.lot) == found
    assert changed_step.launches == usual.launches + 2 * more  # two dense layers
