"""Private PCA: each part of the release against its definition."""
import math

import numpy as np
import pytest
from scipy import stats

from minidp.errors import BudgetExceededError, DtypeError, ParameterError, ShapeError
from minidp.mechanism import PrivatePCA, random_projection
from minidp.privacy import Filter, Gaussian, MomentsAccountant
from minidp.streams import Streams

FALSE_ALARM = 1e-6  # chance that a right implementation fails such a test with another seed


def test_fit_charges_before_it_looks(rng, monkeypatch):
    x = rng.standard_normal((20, 4))
    seen = []
    measure = PrivatePCA.raw_second_moments
    budget = Filter(MomentsAccountant(), 1.0, 1e-5)
    monkeypatch.setattr(PrivatePCA, "raw_second_moments",
                        lambda self, x: seen.append(budget.ledger.items()) or measure(self, x))
    assert PrivatePCA(2, 7.0).fit(x, budget, Streams(1).noise("pca")).shape == (4, 2)
    assert seen == [[(Gaussian(7.0), 1)]] == [budget.ledger.items()]
    with pytest.raises(BudgetExceededError):
        PrivatePCA(2, 4.0).fit(x, budget, rng)
    assert len(seen) == 1 and budget.ledger.items() == seen[0]


def test_random_projection_keeps_squared_norms_on_average(rng):
    inputs, dimensions = 40, 2000
    P = random_projection(inputs, dimensions, rng)
    assert P.shape == (inputs, dimensions) and P.dtype == np.float32
    x = rng.standard_normal(inputs)
    ratio = ((x @ P) ** 2).sum() / (x**2).sum() * dimensions  # chi-squared
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], dimensions)
    assert low < ratio < high


@pytest.mark.parametrize("make, message", [
    (lambda: PrivatePCA(0, 4.0), "dimensions=0"), (lambda: PrivatePCA(2, -1.0), "pca_noise_multiplier=-1.0"),
    (lambda: PrivatePCA(2, math.inf), "pca_noise_multiplier=inf"),
    (lambda: PrivatePCA(2, math.nan), "pca_noise_multiplier=nan"),
    (lambda: random_projection(4, 0, None), "dimensions=0")])
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_wrong_data_is_refused():
    for dimensions, x, error, words in (
            (2, np.zeros((4, 2, 2)), ShapeError, r"PrivatePCA: expected x of shape \(N, D\), got \(4, 2, 2\)"),
            (5, np.zeros((3, 4)), ParameterError, "expected pca_dim=5 to be at most the 4 inputs"),
            (2, np.zeros((3, 4), int), DtypeError, "PrivatePCA")):
        with pytest.raises(error, match=words):
            PrivatePCA(dimensions, 4.0).raw_second_moments(x)
