"""What the trial refuses before the first charge, by name, and what it lets pass."""

import re

import numpy as np
import pytest

from minidp import nn
from minidp.backend import to_host
from minidp.errors import TrialError
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.privacy import Ledger
from minidp.streams import NAMES, Streams
from minidp.train import SGD, Progress, Trainer, selfcheck
from tests.support.guarded import guarded_backend
from tests.support.training import make_data, make_network, make_trainer, values
from tests.support.wrong import LARGE, LARGE_LOSSES, LAYERS, LOSSES, Own, mixing

LABELS, LOSS = np.zeros(10, int), nn.SoftmaxCrossEntropy()


def network_of(*layers):
    rng = np.random.default_rng(0)
    return nn.Sequential([nn.Dense(4, 3, rng=rng), *layers, nn.Dense(3, 3, rng=rng)], (4,))


def trainer_of(network, loss=LOSS, ledger=None):
    plan = Plan(PoissonSampler(0.5), Sanitizer(flat_group(network.params, 1.0, 1.0)), 2, 5)
    return Trainer(network, loss, SGD(0.1), plan, ledger=ledger)


def refusal(network, loss=LOSS, y=LABELS):
    """The message with which training is refused, before anything is charged."""
    trainer = trainer_of(network, loss)
    with pytest.raises(TrialError) as caught:
        trainer.train(np.zeros((10, 4)), y, Streams(1))
    assert trainer.ledger.items() == []
    return str(caught.value)


@pytest.mark.parametrize("layer", [layer for layer, _ in LAYERS])
def test_wrong_layers_are_refused(layer):
    layer.name = None
    assert refusal(network_of(layer))


class Refused(nn.ReLU):
    """NumPy refuses its product."""

    def compute_y(self, x, rng):
        return x @ np.ones((7, 7)), x


def test_what_a_layer_raises_is_answered_and_kept_as_the_cause():
    with pytest.raises(TrialError, match="ValueError: matmul.* No step was charged") as caught:
        trainer_of(network_of(Refused())).train(np.zeros((10, 4)), LABELS, Streams(1))
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("loss", [loss for loss, _ in LOSSES])
def test_wrong_losses_are_refused(loss):
    assert refusal(network_of(), loss, np.zeros((10, 3)))


@pytest.mark.parametrize("name", LARGE)
def test_layers_that_are_wrong_in_large_batches_are_refused(name):
    LARGE[name].name = None
    assert re.match(r"(network|scaled1|dense\d\.[Wb])", refusal(network_of(LARGE[name])))


@pytest.mark.parametrize("name", LARGE_LOSSES)
def test_losses_that_are_wrong_in_large_batches_are_refused(name):
    y = np.zeros((10, 3), "float32")
    assert refusal(network_of(), LARGE_LOSSES[name], y).startswith("loss wrong: ")


def test_a_networks_own_gradients_and_a_replaced_forward_are_refused():
    layers = network_of().layers
    assert "per-example gradient of example" in refusal(Own(layers, (4,)))
    assert refusal(mixing(network_of())).startswith("network: the output of example")


def test_a_layer_that_needs_positive_numbers_passes():
    class Root(nn.Layer):
        def compute_y(self, x, rng):
            return np.sqrt(x), x  # no compute_dx: nothing below it is trained

    network = nn.Sequential([Root(), nn.Dense(4, 3, rng=np.random.default_rng(0))], (4,))
    selfcheck.check(network, LOSS, LABELS)


@pytest.mark.parametrize("y", [np.zeros(3, "uint8"), np.zeros(3, bool), np.zeros((3, 4), int)])
def test_targets_have_the_dtype_and_shape_of_y_and_name_a_class(y):
    drawn = selfcheck.targets(y, np.zeros((2, 4)), np.random.default_rng(0))
    assert drawn.dtype == y.dtype and drawn.shape == (2, *y.shape[1:])
    assert 0 <= drawn.min() <= drawn.max() < 4


def test_a_network_with_a_forward_of_its_own_is_tried_as_a_whole():
    class Mixing(nn.Sequential):
        def forward(self, x, *, rng=None):
            z, caches = super().forward(x, rng=rng)
            return z - z.mean(axis=0), caches

    assert refusal(Mixing(network_of().layers, (4,))).startswith("network: the output of example")


def test_neither_streams_nor_parameters_are_touched(backend):
    class Barely:
        """Inputs of which the shape may be asked for, and a few rows, to compare them."""

        xp, shape, ndim = backend.xp, (40, 5), 2
        __getitem__ = None

        def take(self, indices, axis=0):
            return backend.asarray(np.repeat(to_host(indices)[:, None] % 5 == 0, 5, axis=1) * 1.0)

    trainer, streams = make_trainer(backend, steps=0), Streams()
    before = values(trainer.network)
    trainer.train(Barely(), make_data(backend)[1], streams)
    selfcheck.check(trainer.network, trainer.loss, make_data(backend)[1])
    assert all(getattr(streams, name)(0) for name in NAMES[1:])  # not handed out yet
    for key, array in trainer.network.params.items():
        np.testing.assert_array_equal(to_host(array), before[key])


@pytest.mark.parametrize("layer", [layer for layer, _ in LAYERS])
def test_a_resumed_run_is_tried_again(layer):
    layer.name, ledger = None, Ledger()
    begun = trainer_of(network_of(), ledger=ledger)
    progress = begun.train(np.zeros((10, 4)), LABELS, 1, should_stop=lambda: True).progress
    assert progress == Progress(1, 2) and ledger.count_of("step") == 2
    with pytest.raises(TrialError):
        trainer_of(network_of(layer), ledger=ledger).train(
            np.zeros((10, 4)), LABELS, 1, progress=progress
        )


def test_arrays_anywhere_in_a_layer_come_to_the_host():
    class Masked(nn.Dense):
        """The layer's input goes through arrays in a dictionary of a part of its own."""

        def compute_y(self, x, rng):
            return super().compute_y(x * self.inner.mask["m"][0], rng)

    network = make_network(guarded_backend())
    layer, (x, y) = Masked(5, 6), make_data(guarded_backend())
    layer.inner = nn.Tanh()
    layer.inner.mask = {"m": [x[0]]}
    masked = nn.Sequential([layer, *network.layers[1:]], (5,)).to(guarded_backend())
    selfcheck.check(masked, LOSS, y)


ZEROS = np.zeros(3, int)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_a_loss_that_counts_the_classes_of_its_batch_is_refused(classes):
    def balanced(z, target):
        counts = np.bincount(target, minlength=classes)
        weights = counts.max() / counts[target]
        losses, dz = LOSS(z, target)
        return losses * weights, dz * weights[:, None]

    network = nn.Sequential([nn.Dense(4, classes, rng=np.random.default_rng(0))], (4,))
    with pytest.raises(TrialError, match="loss balanced: .* changes with the other examples"):
        selfcheck.check(network, balanced, np.arange(20) % classes)


class Rows:
    """`Examples` whose rows are change(rows of an array)."""

    xp, shape, ndim = np, (40, 5), 2

    def __init__(self, change):
        self.rows, self.change = make_data()[0], change

    def take(self, indices, axis=0):
        return self.change(self.rows.take(indices, axis=0))

    def __getitem__(self, span):
        return self.change(self.rows[span])


class Views(Rows):
    """Their views are change(rows plus numbers of their own)."""

    def take_views(self, indices, draws):
        return self.change(self.rows.take(indices, axis=0) + draws.random((len(indices), 5)))


DRAWN = np.random.default_rng(0)
MIXING = {
    "standardised": lambda x: (x - x.mean(axis=0)) / (x.std(axis=0) + 1),
    "mixed up": lambda x: 0.5 * (x + x[DRAWN.permutation(len(x))]),
    "in another order": lambda x: x[::-1],
    "scaled": lambda x: x / max(abs(x).max(), 1),
}
OF_THEIR_OWN = {
    "as they are": np.copy,
    "rounded": lambda x: x.astype("float32") * 3,
    "random": lambda x: x + DRAWN.normal(size=x.shape),
    "not finite": lambda x: np.where(x > 0, np.nan, x),
}


@pytest.mark.parametrize("kind", [Rows, Views])
@pytest.mark.parametrize("change", [*MIXING, *OF_THEIR_OWN])
def test_examples_that_mix_rows_are_refused(kind, change):
    trainer, y = make_trainer(steps=2), make_data()[1]
    x = kind({**MIXING, **OF_THEIR_OWN}[change])
    if change in MIXING:
        with pytest.raises(TrialError, match=r"x: the row of example \d+ changes with the other"):
            trainer.train(x, y, 1)
        assert trainer.ledger.items() == []
    else:
        trainer.train(x, y, 1)


class Running:
    """A loss divided by a running mean of the losses before, so that a row reaches later lots."""

    def __init__(self, decay):
        self.mean, self.decay = 0.0, decay

    def __call__(self, z, target):
        losses, dz = LOSS(z, target)
        self.mean = self.decay * self.mean + (1 - self.decay) * float(losses.mean())
        return losses / (1 + self.mean), dz / (1 + self.mean)


class RunningScale(nn.Layer):
    """A layer that keeps the mean size of its inputs in a number of its own."""

    size = 0.0

    def compute_y(self, x, rng):
        self.size = 0.9 * self.size + 0.1 * float(abs(x).mean())
        return x / (1 + self.size), self.size

    def compute_dx(self, dy, size):
        return dy / (1 + size)


@pytest.mark.parametrize("decay", [0.0, 0.9, 0.99, 0.999])
def test_a_loss_that_keeps_a_mean_of_the_lots_before_is_refused(decay):
    assert "loss Running" in refusal(network_of(), Running(decay))


def test_a_layer_that_keeps_a_number_of_the_batches_before_is_refused():
    assert re.match("running|layer|network", refusal(network_of(RunningScale())))


@pytest.mark.parametrize("coupling", [1e-2, 2e-3, 1e-3, 1e-4])
def test_a_loss_that_is_multiplied_a_little_by_the_mean_is_refused(coupling):
    def coupled(z, target):
        losses, dz = LOSS(z, target)
        factor = 1 + coupling * np.tanh(losses.mean())
        return losses * factor, dz * factor

    assert "loss coupled" in refusal(network_of(), coupled)
