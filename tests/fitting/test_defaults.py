"""The settings that need no tuning: sane for all public numbers, and good enough on drawn
digits.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.strokes import load_strokes
from minidp import fit
from minidp.certified.gaussian import gaussian_epsilon
from minidp.fitting.defaults import LARGEST_LOT, choose, mu_of
from tools.table_rule import table

sizes = st.integers(1, 10**9)
epsilons = st.floats(1e-3, 1e3)
deltas = st.floats(1e-12, 0.1)
shapes = {
    "parameters": st.integers(1, 10**8),
    "regression": st.booleans(),
    "table": st.booleans(),
    "hidden": st.booleans(),
    "row_norm": st.floats(0.01, 100),
}


@given(sizes, epsilons, deltas, st.fixed_dictionaries(shapes))
def test_settings_are_sane_for_all_public_numbers(size, epsilon, delta, shape):
    choice = choose(size, epsilon, delta, **shape)
    # 10^7 rows pass twice at most
    assert 1 <= choice.lot_size <= min(size, LARGEST_LOT) and 50 <= choice.steps <= 400
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
    named = {"scale": "unit-norm", "classes": range(10)}
    model = fit(x, digits.y_train, epsilon=3.0, delta=1e-5, seed=1, quiet=True, **named)
    assert model.score(tested, digits.y_test) > 0.8  # a tenth is chance


@pytest.mark.parametrize("rows, columns, classes", [(1000, 30, 2), (4000, 5, 2), (4000, 15, 4)])
def test_probabilities_of_a_table_are_better_than_its_shares_of_classes(rows, columns, classes):
    """On a table of which none was in the search."""
    x, y, bounds = table(77, rows + 4000, columns, classes)
    model = fit(
        x[:rows], y[:rows], epsilon=1.0, delta=1e-5, bounds=bounds, classes=range(classes), seed=1
    )
    p, held = model.predict_proba(x[rows:]), y[rows:]
    share = np.bincount(y[:rows], minlength=classes) / rows
    assert -np.log(p[np.arange(4000), held]).mean() < -np.log(share[held]).mean() - 0.01


def test_a_weight_of_0_keeps_a_class_out_of_the_shares_that_the_bias_starts_at():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(3000, 3)), rng.integers(0, 3, 3000)
    given = {"epsilon": 8.0, "bounds": (-4, 4), "steps": 2, "seed": 1, "quiet": True}
    model = fit(x, y, example_weight=(y != 2) * 1.0, **given)
    assert model.predict_proba(x)[:, 2].max() < 0.05
    persons = np.arange(3000) // 2
    weight = rng.random(1500) < 0.5
    model = fit(x, y, person=persons, rows_per_person=2, example_weight=weight * 1.0, **given)
    assert model.epsilon.upper <= 8.0


def test_probabilities_of_a_hidden_layer_on_a_table_mean_something():
    x, y, bounds = table(77, 8000, 15, 4)
    named = {"bounds": bounds, "classes": range(4), "hidden": 16, "seed": 1, "quiet": True}
    model = fit(x[:4000], y[:4000], epsilon=1.0, **named)
    p, held = model.predict_proba(x[4000:]), y[4000:]
    share = np.bincount(y[:4000], minlength=4) / 4000
    assert -np.log(p[np.arange(4000), held]).mean() < -np.log(share[held]).mean() - 0.01
