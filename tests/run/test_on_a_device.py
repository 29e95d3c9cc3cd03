"""A run whose arrays stand for a GPU's: its data go there once, and its epochs leave it for metrics
and the checkpoint only.
"""

import numpy as np
import pytest

from minidp.run import folder, progress as seen, run as running
from minidp.train import trainer
from tests.support import launches, shim
from tests.support.guarded import guarded_backend
from tests.support.running import STEPS, make_arrays, make_run


@pytest.mark.skipif(
    not shim.COMPILER, reason="no C++ compiler: the kernels of a step were not executed"
)
def test_a_step_takes_its_lot_and_an_epoch_leaves_for_metrics_and_the_checkpoint(
    tmp_path, monkeypatch
):
    found = {}

    def apart(owner, name):
        plain = getattr(owner, name)

        def counted(*arguments, **named):
            with launches.counting() as each:
                found.setdefault(name, []).append(each)
                return plain(*arguments, **named)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in (
        (trainer.Trainer, "step"),
        (trainer.trial, "check"),
        (seen, "evaluate"),
        (running, "save_model"),
        (running, "describe"),
        (folder.RunFolder, "checkpoint"),
    ):
        apart(owner, name)
    backend = guarded_backend()
    private = make_run(tmp_path / "run", seed=1, check=False)
    private.network.to(backend)
    with launches.counting() as rest:
        private.train(*map(backend.asarray, make_arrays()))
    assert len(rest.to_device) == 4 and rest.to_host == [] and rest.memory_asked == 1
    assert (
        rest.waits == len(found["checkpoint"]) - 1 == STEPS / 5
    )  # at the end of each epoch of five steps
    assert len(found["step"]) == STEPS and all(
        len(step.to_device) <= 1 and step.waits == len(step.to_host) == 0 for step in found["step"]
    )
    assert all(
        len(each.to_host) == 2 and not each.to_device for each in found["evaluate"]
    )  # loss and accuracy
    arrays = len(np.load(tmp_path / "run" / "checkpoint.npz").files) - 1  # less the header
    assert all(len(each.to_host) <= arrays and not each.to_device for each in found["checkpoint"])
