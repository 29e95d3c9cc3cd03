"""Accuracy and loss over a data set; descent: what changes in place, and moving averages that leave
the parameters alone.
"""

import numpy as np
import pytest

from minidp import nn
from minidp.fitting.defaults import Choice
from minidp.train import OPTIMIZERS, Averaged, Metrics, Momentum, evaluate
from minidp.train.averaging import noise_of_average
from tests.support.guarded import allow_sync, guarded_backend
from tests.support.training import NUMPY, make_data, make_network, side_by_side

LOSS = nn.SoftmaxCrossEntropy()


@pytest.mark.parametrize("batch_size, parts", [(1, 1), (7, 1), (4096, 1), (4096, 3)])
def test_metrics_equal_a_loop_whatever_the_batches_and_parts(
    batch_size, parts, backend, monkeypatch
):
    network, (x, y) = make_network(), make_data()
    z = network.predict(x)
    right = [int(z_b.argmax()) == label for z_b, label in zip(z, y)]
    side_by_side(parts, monkeypatch)
    with allow_sync():
        got = evaluate(make_network(backend), LOSS, *make_data(backend), batch_size=batch_size)
    assert got.accuracy == sum(right) / 40 and 0 < got.accuracy < 1
    assert got.loss == pytest.approx(np.mean(LOSS(z, y)[0]), rel=1e-12)
    assert type(got.accuracy) is type(got.loss) is float and got.examples == 40


def test_without_examples_there_are_no_figures():
    assert evaluate(make_network(), LOSS, *make_data(examples=0)) == Metrics(None, None, 0)


def test_a_regression_has_r2_and_no_accuracy(backend, rng):
    x, t = rng.uniform(-1, 1, (30, 5)), rng.uniform(-1, 1, (30, 3))
    errors = ((make_network().predict(x) - t) ** 2).sum()
    network, data = make_network(backend), map(backend.asarray, (x, t))
    with allow_sync():
        got = evaluate(network, nn.SquaredError(), *data, batch_size=7)
    assert got.accuracy is None
    assert got.r2 == pytest.approx(1 - errors / ((t - t.mean(axis=0)) ** 2).sum(), rel=1e-12)


def test_figures_that_make_no_sense_are_none(rng):
    def evaluated(targets):
        return evaluate(one, lambda z, t: ((z**2).sum(axis=1), 2 * z), x, targets)

    x, one = rng.uniform(-1, 1, (6, 2)), nn.Sequential([nn.Dense(2, 1, rng=rng)], (2,))
    assert evaluated(rng.integers(0, 2, 6)).accuracy is None  # of one logit
    alike = evaluated(np.ones(6))
    assert alike.r2 is None
    assert evaluated(np.ones((6, 4))).r2 is None


KEYS = [("dense1", "W"), ("dense1", "b")]
optimizers = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)


def make_params(rng, backend, dtype="float64"):
    return {
        KEYS[0]: backend.asarray(rng.standard_normal((3, 2)).astype(dtype)),
        KEYS[1]: backend.asarray(rng.standard_normal(2).astype(dtype)),
    }


@optimizers
def test_parameters_change_in_place_and_keep_their_dtype(make, backend, rng):
    params = make_params(rng, backend, "float32")
    arrays = dict(params)
    optimizer = make(0.1)
    for step in range(2):
        optimizer.update(params, make_params(rng, backend, "float32"), step)
    assert all(params[key] is arrays[key] for key in KEYS)
    for array in (
        *params.values(),
        *(a for slot in optimizer.slots.values() for a in slot.values()),
    ):
        assert array.dtype == np.float32 and type(array) is type(arrays[KEYS[0]])
    assert tuple(optimizer.slots) == make.slot_names


def test_parameters_come_back_after_an_error():
    params, optimizer = {KEYS[0]: np.array([3.0, 1.0])}, Averaged(Momentum(0.1), 0.9)
    for step in range(3):
        optimizer.update(params, {KEYS[0]: np.array([1.0 + step, -2.0])}, step)
    before = params[KEYS[0]].copy()
    with pytest.raises(RuntimeError), optimizer.averaged_weights(params):
        assert (params[KEYS[0]] != before).any()
        raise RuntimeError()
    np.testing.assert_array_equal(params[KEYS[0]], before)
    assert set(optimizer.slots) == {"velocity", "average"} and optimizer.learning_rate == 0.1


def test_a_device_is_given_more_rows_at_once_than_the_host(monkeypatch):
    for backend, calls in ((NUMPY, 3), (guarded_backend(), 1)):
        network, seen = make_network(backend), []
        right = nn.Sequential.forward

        def watched(self, x, **named):
            seen.append(len(x))
            return right(self, x, **named)

        with monkeypatch.context() as patch:
            patch.setattr(nn.Sequential, "forward", watched)
            evaluate(network, LOSS, *make_data(backend, examples=3000))
        assert len(seen) == calls and sum(seen) == 3000


@pytest.mark.parametrize(
    "momentum, average, steps", [(0.9, 0.9, 100), (0.0, 0.0, 7), (0.5, 0.9, 120)]
)
def test_noise_of_the_average_is_what_the_optimizer_leaves(momentum, average, steps):
    rng = np.random.default_rng(0)
    choice = Choice(1, steps, 1.0, 0.05, average, momentum)
    optimizer = Averaged(Momentum(choice.learning_rate, momentum), average)
    params = {("a", "W"): np.zeros(20_000)}
    for step in range(steps):
        optimizer.update(params, {("a", "W"): rng.standard_normal(20_000)}, step)
    with optimizer.averaged_weights(params):
        found = params["a", "W"].std()
    assert noise_of_average(choice) == pytest.approx(found, rel=0.03)
