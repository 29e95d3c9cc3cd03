"""The settings that need no tuning: sane for all public numbers, and good enough on drawn digits."""
import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from minidp import nn
from minidp.data.strokes import load_strokes
from minidp.defaults import LARGEST_LOT, TASKS, choose, mu_of
from minidp.errors import ParameterError
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.privacy.gaussian import gaussian_epsilon
from minidp.streams import Streams
from minidp.train import SGD, Averaged, Trainer, evaluate

sizes = st.integers(1, 10**9)
epsilons = st.floats(1e-3, 1e3)
deltas = st.floats(1e-12, 0.1)
shapes = {"parameters": st.integers(1, 10**8), "task": st.sampled_from(TASKS), "hidden": st.booleans(),
          "row_norm": st.floats(0.01, 100)}


@given(sizes, epsilons, deltas, st.fixed_dictionaries(shapes))
def test_settings_are_sane_for_all_public_numbers(size, epsilon, delta, shape):
    choice = choose(size, epsilon, delta, **shape)
    assert 1 <= choice.lot_size <= min(size, LARGEST_LOT) and 50 <= choice.steps <= 500
    assert 0 < choice.learning_rate < math.inf and 0 < choice.clip_norm < math.inf and 0 <= choice.average < 1


@given(sizes, epsilons, deltas, st.fixed_dictionaries(shapes), st.floats(1, 100), st.integers(1, 100))
def test_more_budget_or_more_rows_never_shorten_the_way(size, epsilon, delta, shape, looser, larger):
    rate = choose(size, epsilon, delta, **shape).learning_rate
    slack = 1 - 1e-9
    assert choose(size, looser * epsilon, delta, **shape).learning_rate >= slack * rate
    assert choose(larger * size, epsilon, delta, **shape).learning_rate >= slack * rate
    assert choose(size, epsilon, min(0.2, looser * delta), **shape).learning_rate >= slack * rate


@given(epsilons, deltas)
def test_mu_is_that_of_the_gaussian_mechanism(epsilon, delta):
    assert gaussian_epsilon(mu_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-5)


def test_ten_million_rows_are_passed_over_once_or_twice():
    choice = choose(10**7, 1.0, 1e-8, 10_000)
    assert choice.lot_size * choice.steps <= 2 * 10**7


def test_only_public_numbers_go_in():
    kinds = {name: each.annotation for name, each in inspect.signature(choose).parameters.items()}
    assert set(kinds.values()) <= {"int", "float", "bool", "str"} and not {"x", "y", "rows", "labels"} & set(kinds)


@pytest.mark.parametrize("wrong", [{"dataset_size": 0}, {"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"parameters": 0},
                                   {"task": "ranking"}, {"row_norm": 0.0}])
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        choose(**({"dataset_size": 1000, "epsilon": 1.0, "delta": 1e-5, "parameters": 100} | wrong))


def test_small_drawn_digits_are_learned_at_epsilon_3():
    digits = load_strokes((2000, 1000), progress=False)
    x, tested = (unit_rows(part.reshape(len(part), 7, 4, 7, 4).mean((2, 4))) for part in (digits.x_train, digits.x_test))
    epsilon, delta, streams = 3.0, 1e-5, Streams(1)
    network = nn.Sequential([nn.Dense(49, 10, rng=streams.init, init=nn.init.zeros)], (49,))
    choice = choose(2000, epsilon, delta, 500, row_norm=3.0)
    assert choice.lot_size == 2000
    sigma = math.sqrt(choice.steps) / mu_of(epsilon, delta)
    plan = Plan(PoissonSampler(1.0), Sanitizer(flat_group(list(network.params), choice.clip_norm, sigma)), choice.steps, 2000)
    optimizer = Averaged(SGD(choice.learning_rate), choice.average)
    Trainer(network, nn.SoftmaxCrossEntropy(), optimizer, plan).run(x, digits.y_train, streams)
    with optimizer.averaged_weights(network.params):
        accuracy = evaluate(network, nn.SoftmaxCrossEntropy(), tested, digits.y_test).accuracy
    assert accuracy > 0.7  # a tenth is chance


def unit_rows(images):
    """Rows of norm 3 about the brightness of a row, which says nothing about a digit."""
    rows = images.reshape(len(images), 49).astype(np.float32)
    rows = rows - rows.mean(axis=1, keepdims=True)
    return 3 * rows / np.linalg.norm(rows, axis=1, keepdims=True)
