"""The noise of whole runs: size per group, independence, no repetition, and streams that differ.

Every statistical test states its false-alarm rate: the chance that a right implementation fails it with another
seed. Unseeded runs draw a new sample each time, so theirs is small.
"""
import math

import numpy as np
import pytest
from scipy import stats

from minidp import nn
from minidp.backend import Backend, to_host
from minidp.grads import Explicit
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, per_layer_groups
from minidp.streams import Streams
from minidp.train import SGD, Progress, Trainer

FALSE_ALARM = 1e-7
KEYS = (("one", "W"), ("one", "b"), ("two", "W"))
SHAPES = {KEYS[0]: (12, 10), KEYS[1]: (10,), KEYS[2]: (10, 5)}
STEPS = 300
STD = {KEYS[0]: 0.7 * 3.0, KEYS[1]: 0.7 * 3.0, KEYS[2]: 2.0 * 0.5}  # sigma C of each group


def sanitizer():
    return Sanitizer(per_layer_groups(KEYS, {"one": 3.0, "two": 0.5}, {"one": 0.7, "two": 2.0}))


def noises(backend, streams, steps=STEPS):
    """(steps, coordinates) of standardised noise, all parameters side by side, through clipped_sum and release."""
    rows = []
    for step in range(steps):
        grads = {key: Explicit(backend.asarray(np.zeros((2, *shape)))) for key, shape in SHAPES.items()}
        released = sanitizer().release(sanitizer().add_clipped(grads), streams.noise(step))
        rows.append(np.concatenate([to_host(released[key]).ravel() / STD[key] for key in KEYS]))
    return np.array(rows)


@pytest.fixture(scope="module", params=[1, None], ids=["seeded", "unseeded"])
def noise(request):
    return noises(Backend.numpy(), Streams(request.param))


def columns_of(key):
    sizes = [math.prod(SHAPES[k]) for k in KEYS]
    start = sum(sizes[: KEYS.index(key)])
    return slice(start, start + math.prod(SHAPES[key]))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: ".".join(key))
def test_each_group_has_its_claimed_standard_deviation_and_is_normal(noise, key):
    z = noise[:, columns_of(key)].ravel()
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], z.size)
    assert low < (z**2).sum() < high
    assert stats.kstest(z, "norm").pvalue > FALSE_ALARM


def assert_uncorrelated(left, right, but=False):
    """All correlations over steps of two sets of columns, but those of a mask, in standard errors."""
    products = np.abs(left.T @ right / math.sqrt(len(left)))
    # sums of 300 products of normals: a normal limit with slightly heavier tails, hence the margin of 1.3
    assert np.where(but, 0, products).max() < 1.3 * stats.norm.isf(FALSE_ALARM / 2 / products.size)


def test_coordinates_and_layers_are_independent(noise):
    assert_uncorrelated(noise, noise, but=np.eye(noise.shape[1], dtype=bool))


@pytest.mark.parametrize("lag", [1, 2, 7])
def test_steps_are_independent(noise, lag):
    assert_uncorrelated(noise[lag:], noise[:-lag])
    flat = noise.ravel()  # in the order drawn
    assert abs((flat[lag:] * flat[:-lag]).mean()) * math.sqrt(flat.size) < stats.norm.isf(FALSE_ALARM / 2)


def run(streams, steps, progress=Progress()):
    """Parameters after each step of training on nothing: every lot is empty, so that each step is noise alone."""
    network = nn.Sequential([nn.Dense(4, 3, rng=np.random.default_rng(1), dtype="float64")], (4,))
    groups = per_layer_groups(list(network.params), 1.0, 1.0)
    plan = Plan(PoissonSampler(0.0), Sanitizer(groups), steps, 1.0)
    moves, before = [], {key: array.copy() for key, array in network.params.items()}

    def keep(at):
        after = {key: array.copy() for key, array in network.params.items()}
        moves.append(np.concatenate([(after[key] - before[key]).ravel() for key in after]))
        before.update(after)

    Trainer(network, nn.SoftmaxCrossEntropy(), SGD(1.0), plan).run(
        np.zeros((5, 4)), np.zeros(5, int), streams, progress=progress, block_steps=1, on_block=keep)
    return np.array(moves)


def test_noise_does_not_repeat_after_a_resume():
    """Unseeded, the second part has another key; seeded, it equals the rest of the whole run."""
    first, second = run(Streams(), 4), run(Streams(), 8, Progress(4, 4))
    assert first.shape == second.shape == (4, 15)
    assert not any(np.isclose(a, b).any() for a in first for b in second)
    first, second = run(Streams(9), 4), run(Streams(9), 8, Progress(4, 4))
    np.testing.assert_allclose(np.concatenate([first, second]), run(Streams(9), 8), atol=1e-12)
    assert not any(np.isclose(a, b).all() for a in first for b in second)
