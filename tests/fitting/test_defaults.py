"""The settings that need no tuning: sane for all public numbers, and good enough on drawn
digits.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.strokes import load_strokes
from minidp import fit
from minidp.fitting.defaults import LARGEST_LOT, choose, mu_of
from minidp.privacy.gaussian import gaussian_epsilon

sizes = st.integers(1, 10**9)
epsilons = st.floats(1e-3, 1e3)
deltas = st.floats(1e-12, 0.1)
shapes = {
    "parameters": st.integers(1, 10**8),
    "regression": st.booleans(),
    "hidden": st.booleans(),
    "row_norm": st.floats(0.01, 100),
}


@given(sizes, epsilons, deltas, st.fixed_dictionaries(shapes))
def test_settings_are_sane_for_all_public_numbers(size, epsilon, delta, shape):
    choice = choose(size, epsilon, delta, **shape)
    # 10^7 rows pass twice at most
    assert 1 <= choice.lot_size <= min(size, LARGEST_LOT) and 50 <= choice.steps <= 300
    assert 0 < choice.learning_rate < math.inf and 0 < choice.clip_norm < math.inf


@given(
    sizes, epsilons, deltas, st.fixed_dictionaries(shapes), st.floats(1, 100), st.integers(1, 100)
)
def test_more_budget_or_more_rows_never_shorten_the_way(
    size, epsilon, delta, shape, looser, larger
):
    rate = choose(size, epsilon, delta, **shape).learning_rate
    slack = 1 - 1e-9
    assert choose(size, looser * epsilon, delta, **shape).learning_rate >= slack * rate
    assert choose(larger * size, epsilon, delta, **shape).learning_rate >= slack * rate
    assert choose(size, epsilon, min(0.2, looser * delta), **shape).learning_rate >= slack * rate


@given(epsilons, deltas)
def test_mu_is_that_of_the_gaussian_mechanism(epsilon, delta):
    assert gaussian_epsilon(mu_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-5)


def test_small_synthetic_digits_are_learned_at_epsilon_3():
    digits = load_strokes((2000, 1000), progress=False)
    x, tested = (
        part.reshape(-1, 7, 4, 7, 4).mean((2, 4)).reshape(-1, 49)
        for part in (digits.x_train, digits.x_test)
    )
    model = fit(x, digits.y_train, epsilon=3.0, delta=1e-5, classes=range(10), seed=1, quiet=True)
    assert model.score(tested, digits.y_test) > 0.8  # a tenth is chance
