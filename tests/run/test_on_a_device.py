"""Arrays that stand for a GPU's: the kernels and copies of a step. `pytest -s` prints how many."""

from dataclasses import replace

import numpy as np
import pytest

from minidp import nn
from minidp.backend import Backend, to_host
from minidp.train.flat import flattened
from tests.support import shim
from tests.support.counting import counting
from tests.support.guarded import guarded_backend, guarded_xp
from tools.contenders import WORKLOADS, trainer_of

pytestmark = pytest.mark.skipif(
    not shim.COMPILER, reason="no C++ compiler: the kernels of a step were not executed"
)


LAUNCHES = {"W1": 12, "W2": 12, "W3": 17, "W4": 41, "W5": 35}  # kernels that a step starts


def second_step(workload, gradients):
    """Counts of the second step; the first one also makes what stays on the device."""
    trainer, examples, streams = trainer_of(workload, gradients, guarded_backend())
    with flattened(trainer):
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


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_step_starts_few_kernels_copies_its_lot_and_waits_for_nothing(name):
    found = second_step(replace(WORKLOADS[name], lot=4, examples=8), "auto")
    assert too_much(found, 4) == [] and found.launches == LAUNCHES[name]


@pytest.mark.parametrize("gradients", ["factored", "explicit"])
@pytest.mark.parametrize("name", ["W1", "W5"])
def test_other_forms_of_gradients_copy_and_wait_as_little(name, gradients):
    assert too_much(second_step(WORKLOADS[name].small(), gradients), 16) == []


@pytest.mark.parametrize("name", WORKLOADS)
def test_weights_after_a_few_steps_are_the_cpus_to_rounding(name):
    """Of lots with rows that are clipped and rows that are not."""
    found = []
    for backend in (guarded_backend(), Backend.numpy()):
        workload = replace(WORKLOADS[name], lot=12, examples=40)
        trainer, examples, streams = trainer_of(workload, "auto", backend, seed=3)
        with flattened(trainer):
            for step, lot in enumerate(([0, 3, 9, 30, 31], [], range(12))):
                trainer.step(examples, np.array(lot, int), step, streams)
        found.append({key: to_host(array) for key, array in trainer.network.params.items()})
    for key, array in found[1].items():
        assert np.abs(found[0][key] - array).max() <= 2e-6 * np.abs(array).max()


def test_a_lot_of_rows_that_are_not_there_is_refused_on_the_host():
    trainer, examples, streams = trainer_of(WORKLOADS["W1"].small(), "auto", guarded_backend())
    for step, lot in enumerate(([0, 64], [-1, 3])):
        with pytest.raises(IndexError, match="numbers from 0 to 63"):
            trainer.step(examples, np.array(lot), step, streams)


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
