"""Private PCA and the noisy mean of rows: each part of the release against its definition."""

import numpy as np
import pytest
from scipy import stats

from minidp.errors import BudgetExceededError, DtypeError, ParameterError, ShapeError
from minidp.mechanism import PrivatePCA, mean_sanitizer, noisy_mean, random_projection
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


def test_wrong_data_is_refused():
    for dimensions, x, error, words in (
            (2, np.zeros((4, 2, 2)), ShapeError, r"PrivatePCA: expected x of shape \(N, D\), got \(4, 2, 2\)"),
            (5, np.zeros((3, 4)), ParameterError, "expected pca_dim=5 to be at most the 4 inputs"),
            (2, np.zeros((3, 4), int), DtypeError, "PrivatePCA")):
        with pytest.raises(error, match=words):
            PrivatePCA(dimensions, 4.0).raw_second_moments(x)


def test_without_noise_it_is_the_mean_of_the_clipped_rows(rng):
    x = rng.normal(size=(5000, 6)).astype("float32")
    x[3] = np.nan
    clipped = np.delete(x, 3, 0) / np.maximum(1, np.linalg.norm(np.delete(x, 3, 0), axis=1, keepdims=True))
    np.testing.assert_allclose(noisy_mean(x, mean_sanitizer(0.0), 5000, rng), clipped.sum(0) / 5000, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("rows", [np.zeros((0, 4), "float32"), np.full((3, 4), np.inf, "float32")])
def test_rows_without_a_mean_give_noise_of_the_public_size(rows, rng):
    assert noisy_mean(rows, mean_sanitizer(1.0), 10, Streams(1).noise("mean")).shape == (4,)


def test_the_size_is_public_and_positive(rng):
    with pytest.raises(ParameterError, match="size"):
        noisy_mean(np.zeros((3, 2), "float32"), mean_sanitizer(1.0), 0, rng)
