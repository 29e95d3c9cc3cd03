"""One step after the other: the order of Algorithm 1, what is divided by what, and what does not
matter.
"""

import numpy as np
import pytest

from minidp import nn
from minidp.data import LabelledExamples
from minidp.errors import MinidpError, NoiseReuseError
from minidp.mechanism import LinearDecay, Sanitizer, flat_group
from minidp.mechanism.rounding import products
from minidp.privacy import Ledger
from minidp.streams import Streams
from minidp.train import SGD, Progress, Trainer
from tests.support.training import (
    LOT,
    make_data,
    make_network,
    make_plan,
    make_trainer,
    side_by_side,
    values,
)

FACTOR, LOSS = products(LOT, "auto").factor, nn.SoftmaxCrossEntropy()


def trained(data=None, **settings):
    """Final values of the parameters after a seeded run."""
    trainer = make_trainer(**settings)
    trainer.train(*(data or make_data()), Streams(1))
    return values(trainer.network)


def assert_same(first, second, rtol=0.0, atol=0.0):
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_allclose(first[key], second[key], rtol=rtol, atol=atol, err_msg=str(key))


def test_an_empty_data_set_trains_on_noise(backend):
    data = make_data(backend, examples=0)
    assert_same(
        trained(steps=3, backend=backend, data=data),
        trained(steps=3, data=make_data(examples=0)),
        rtol=1e-13,
    )


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-12), ("float32", 1e-4)])
def test_parts_side_by_side_do_not_matter(dtype, rtol, count, monkeypatch):
    settings = {"dtype": dtype, "data": make_data(dtype=dtype)}
    alone = trained(**settings)
    side_by_side(count, monkeypatch)
    runs = [trained(**settings), trained(**settings), trained(**settings, batch_size=2)]
    assert_same(runs[0], runs[1])  # bit for bit: timing has no say
    assert_same(runs[0], alone, rtol=rtol, atol=rtol)
    assert_same(runs[2], alone, rtol=rtol, atol=rtol)


def test_dropout_reaches_training():
    def dropping(rate):
        first, *rest = make_network().layers
        network = nn.Sequential([first, nn.Dropout(rate), *rest], (5,))
        plan = make_plan(network, steps=1)
        Trainer(network, LOSS, SGD(0.5), plan).train(*make_data(), Streams(1))
        return network.params["dense1", "W"]

    assert (dropping(0.5) != dropping(0.0)).any()


def test_a_second_run_with_the_same_streams_never_draws_the_same_noise():
    streams, data = Streams(), make_data()
    make_trainer().train(*data, streams)
    with pytest.raises(NoiseReuseError, match="Make new Streams"):
        make_trainer().train(*data, streams)
    trainer, examples = make_trainer(), LabelledExamples(*data)
    with pytest.raises(NoiseReuseError, match="stream dropout, release 3"):
        trainer.step(examples, np.arange(3), 3, streams)


def test_noise_does_not_repeat_from_step_to_step_nor_after_a_resume():
    """Training on nothing, each step is noise alone. Few numbers of the grid are equal by
    chance.
    """
    drawn, data, ledger = [], make_data(examples=0), Ledger()

    class Seeing(SGD):
        def update(self, params, grads, *rest):
            drawn.extend(array.ravel() for array in grads.values())

    for steps, progress in ((4, Progress()), (8, Progress(4, 4))):
        trainer = make_trainer(steps=steps, optimizer=Seeing(0.5), ledger=ledger)
        trainer.train(*data, Streams(), progress=progress)
    noise = np.concatenate(drawn)
    assert noise.size == 8 * 57 and len(np.unique(noise)) > 0.97 * noise.size


@pytest.mark.parametrize("setting", ["clip_norm", "noise_multiplier"])
def test_schedules_reach_the_release_and_the_ledger(setting, monkeypatch):
    groups, release = [], Sanitizer.release

    def seen(self, *arguments):
        groups.append(self.groups[0])
        return release(self, *arguments)

    monkeypatch.setattr(Sanitizer, "release", seen)
    schedule = {setting: LinearDecay(2.0, 1.0, 4)}
    trainer = make_trainer(steps=6, layout=flat_group, **schedule)
    record = trainer.train(*make_data(), Streams(1), block_steps=4)
    expected = [2.0, 1.75, 1.5, 1.25, 1.0, 1.0]
    assert [getattr(group, setting) for group in groups] == expected
    charged = [each.event.noise_multiplier for each, n in record.ledger.items() for _ in range(n)]
    assert charged == [group.noise_multiplier / FACTOR for group in groups]


def test_nothing_private_is_kept_or_returned():
    trainer = make_trainer(noise_multiplier=3.0)
    record = trainer.train(*make_data(), Streams(1))
    assert vars(record).keys() == {"progress", "ledger", "stopped", "gradients_ran"}
    kept = {
        name for name, value in vars(trainer).items() if "raw" in name or hasattr(value, "shape")
    }
    assert kept == set() and trainer.optimizer.slots == {}


def test_what_is_not_taken_is_refused_before_a_charge():
    (x, y), trainer = make_data(), make_trainer(sampler="shuffle")
    for arguments, words in (
        ((x, y, "seed"), "expected streams='seed' to be Streams"),
        ((iter(x), y, 1), "Trainer.train: x: expected an array, a memory map, data.Examples"),
        ((x, [[1], [1, 2]], 1), "Trainer.train: y: expected rows of one length"),
        ((x.astype(int), y, 1), "ids are for a network that begins with nn.Embedding"),
        ((x.astype("uint8"), y, 1), r"got uint8; convert it with .astype\(numpy.float32\)$"),
        ((x[:39], y[:39], 1), "expected 40 examples"),
        ((x[:, :4], y, 1), r"Trainer.train: expected x of shape \(N, 5\)"),
    ):
        with pytest.raises(MinidpError, match=words):
            trainer.train(*arguments)
    assert trainer.ledger.items() == []
