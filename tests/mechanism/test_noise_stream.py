"""The noise of whole runs: size per group, independent coordinates and steps, no repetition after a
resume.

FALSE_ALARM is the chance that a right implementation fails a test with another seed: unseeded runs
draw a new sample each time, so it is small. `test_noise_statistics.py` tests what a release draws.
"""

import math

import numpy as np
import pytest
from scipy import stats

from minidp import nn
from minidp.grads import Explicit
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, per_layer_groups
from minidp.streams import Streams
from minidp.train import SGD, Progress, Trainer

FALSE_ALARM = 1e-7
KEYS = (("one", "W"), ("one", "b"), ("two", "W"))
SHAPES = {KEYS[0]: (12, 10), KEYS[1]: (10,), KEYS[2]: (10, 5)}
STD = {KEYS[0]: 0.7 * 3.0, KEYS[1]: 0.7 * 3.0, KEYS[2]: 2.0 * 0.5}  # sigma C of each group


@pytest.mark.parametrize("seed", [1, None])
def test_noise_has_its_size_in_each_group_and_is_independent_of_other_coordinates_layers_and_steps(
    seed,
):
    sanitizer, streams = (
        Sanitizer(per_layer_groups(KEYS, {"one": 3.0, "two": 0.5}, {"one": 0.7, "two": 2.0})),
        Streams(seed),
    )
    drawn = {key: [] for key in KEYS}
    for step in range(300):
        raw_sum = sanitizer.add_clipped(
            {key: Explicit(np.zeros((2, *shape))) for key, shape in SHAPES.items()}
        )
        for key, released in sanitizer.release(raw_sum, streams.noise(step)).items():
            drawn[key].append(released.ravel() / STD[key])
    for z in map(np.array, drawn.values()):
        low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], z.size)
        assert low < (z**2).sum() < high and stats.kstest(z.ravel(), "norm").pvalue > FALSE_ALARM
    noise = np.concatenate([*drawn.values()], axis=1)
    for lag in (0, 1, 2, 7):
        products = np.abs(noise[lag:].T @ noise[: len(noise) - lag]) / math.sqrt(len(noise) - lag)
        # sums of 300 products of normals: a normal limit with slightly heavier tails, hence the
        # margin of 1.3
        most = products.max(initial=0, where=~np.eye(len(products), dtype=bool) | (lag > 0))
        assert most < 1.3 * stats.norm.isf(FALSE_ALARM / 2 / products.size)


def run(streams, steps, progress=Progress()):
    """Parameters after each step of training on nothing: every lot is empty, so that each step is
    noise alone.
    """
    network = nn.Sequential([nn.Dense(4, 3, rng=np.random.default_rng(1), dtype="float64")], (4,))
    groups = per_layer_groups(list(network.params), 1.0, 1.0)
    plan = Plan(PoissonSampler(0.0), Sanitizer(groups), steps, 1.0)
    moves, before = [], {key: array.copy() for key, array in network.params.items()}

    def keep(at):
        after = {key: array.copy() for key, array in network.params.items()}
        moves.append(np.concatenate([(after[key] - before[key]).ravel() for key in after]))
        before.update(after)

    Trainer(network, nn.SoftmaxCrossEntropy(), SGD(1.0), plan).run(
        np.zeros((5, 4)), np.zeros(5, int), streams, progress=progress, block_steps=1, on_block=keep
    )
    return np.array(moves)


def test_noise_does_not_repeat_after_a_resume():
    """Unseeded, the second part has another key; seeded, it equals the rest of the whole run."""
    first, second = run(Streams(), 4), run(Streams(), 8, Progress(4, 4))
    assert first.shape == second.shape == (4, 15)
    assert not any(np.isclose(a, b).any() for a in first for b in second)
    first, second = run(Streams(9), 4), run(Streams(9), 8, Progress(4, 4))
    np.testing.assert_allclose(np.concatenate([first, second]), run(Streams(9), 8), atol=1e-12)
    assert not any(np.isclose(a, b).all() for a in first for b in second)
