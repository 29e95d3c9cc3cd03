"""Private PCA: each part of the release against its definition."""
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from minidp.backend import to_host
from minidp.errors import BudgetExceededError, DtypeError, ParameterError, ShapeError
from minidp.mechanism import PrivatePCA, pca, random_projection
from minidp.privacy import Filter, Gaussian, Ledger, MomentsAccountant, NeighbouringRelation

FALSE_ALARM = 1e-6  # chance that a right implementation fails such a test with another seed
REPLACE_ONE = NeighbouringRelation.REPLACE_ONE


def released_matrices(monkeypatch, noise_multiplier, raw, times, rng):
    """The noisy matrices that `release` takes its directions from."""
    seen = []
    monkeypatch.setattr(pca, "principal_directions", lambda matrix, dimensions: seen.append(matrix))
    for _ in range(times):
        PrivatePCA(1, noise_multiplier).release(raw, rng)
    return np.array(seen)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 3, 784])
def test_rows_are_scaled_to_at_most_unit_norm(dtype, width, backend, rng):
    scales = 10.0 ** np.array([[-30], [-3], [0], [3], [30]])
    x = (rng.standard_normal((5, width)) * scales).astype(dtype)
    rows = to_host(pca.unit_rows(backend.asarray(x)))
    assert rows.dtype == x.dtype
    for row, given in zip(rows, x):
        norm = sum(Fraction(float(v)) ** 2 for v in row)
        assert 1 - 1e-3 < norm <= 1
        np.testing.assert_allclose(row, given / np.linalg.norm(given.astype("float64")), rtol=1e-3)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf, -np.inf])
def test_a_row_that_is_zero_or_not_finite_becomes_zero(bad, backend, rng):
    x = rng.standard_normal((3, 4)).astype("float32")
    without = to_host(pca.unit_rows(backend.asarray(x[[0, 2]])))
    x[1] = [0, 0, bad, 0]
    rows = to_host(pca.unit_rows(backend.asarray(x)))
    np.testing.assert_array_equal(rows[1], np.zeros(4))
    np.testing.assert_array_equal(rows[[0, 2]], without)


@pytest.mark.parametrize("examples", [0, 1, 7])
def test_second_moments_equal_a_loop(examples, backend, rng, monkeypatch):
    monkeypatch.setattr(pca, "BATCH_ROWS", 3)
    x = rng.standard_normal((examples, 4)) + 2
    raw = PrivatePCA(2, 4.0).raw_second_moments(backend.asarray(x))
    expected = np.zeros((4, 4))
    for row in x:
        for i in range(4):
            for j in range(4):
                expected[i, j] += row[i] * row[j] / sum(v * v for v in row)
    assert type(raw) is np.ndarray and raw.dtype == np.float64
    np.testing.assert_allclose(raw, expected, rtol=1e-13, atol=1e-15)


def test_noise_is_isotropic_among_symmetric_matrices(monkeypatch, rng):
    size, sigma, times = 4, 3.0, 5000
    raw = np.arange(16.0).reshape(4, 4)
    raw += raw.T
    noise = released_matrices(monkeypatch, sigma, raw, times, rng) - raw
    np.testing.assert_allclose(noise, noise.transpose(0, 2, 1), atol=1e-12)
    i, j = np.triu_indices(size)
    # coordinates in the orthonormal basis E_ii, (E_ij + E_ji) / sqrt 2
    coordinates = noise[:, i, j] * np.where(i == j, 1, math.sqrt(2)) / sigma
    low, high = stats.chi2.ppf([FALSE_ALARM / 20, 1 - FALSE_ALARM / 20], times)
    for column in coordinates.T:
        assert stats.kstest(column, "norm").pvalue > FALSE_ALARM / 10
        assert low < (column**2).sum() < high
    correlations = np.corrcoef(coordinates.T)[np.triu_indices(10, 1)]
    # sqrt(times) times a correlation of independent normals is close to standard normal; 45 pairs, two sides
    assert np.abs(correlations).max() * math.sqrt(times) < stats.norm.isf(FALSE_ALARM / 90)


def test_without_noise_the_projection_is_ordinary_pca(rng):
    x = rng.standard_normal((50, 6)) * [1, 5, 2, 0.5, 3, 0.1] + 1
    state = rng.bit_generator.state
    pca_ = PrivatePCA(3, 0.0)
    projection = pca_.release(pca_.raw_second_moments(x), rng)
    assert rng.bit_generator.state == state  # nothing was drawn
    _, _, directions = np.linalg.svd(x / np.linalg.norm(x, axis=1, keepdims=True))
    assert projection.shape == (6, 3) and projection.dtype == np.float32
    cosines = projection.T @ directions[:3].T
    np.testing.assert_allclose(np.abs(cosines), np.eye(3), atol=1e-6)  # the same directions, largest first
    largest = projection[np.abs(projection).argmax(axis=0), range(3)]
    assert (largest > 0).all()  # signs that repeat


@pytest.mark.parametrize("relation", list(NeighbouringRelation))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sensitivity_is_reached_and_never_exceeded(relation, dtype, rng):
    """Search over neighbours: what one row changes in the matrix of second moments."""
    bound = PrivatePCA(1, 1.0).sensitivity(relation)
    worst = 0.0
    for trial in range(300):
        scale = 10.0 ** rng.uniform(-4, 4)
        row = (rng.standard_normal((1, 5)) * scale).astype(dtype)
        other = (rng.standard_normal((1, 5)) * 10.0 ** rng.uniform(-4, 4)).astype(dtype)
        if trial % 2:  # rows on different axes are the farthest apart
            row, other = (np.eye(5, dtype=dtype)[[place]] * row[0, 0] for place in (0, 1))
        measure = PrivatePCA(1, 1.0).raw_second_moments
        without = measure(other) if relation is REPLACE_ONE else measure(np.zeros_like(row))
        worst = max(worst, float(np.linalg.norm(measure(row) - without)))
    assert bound * (1 - 1e-5) < worst <= bound


@pytest.mark.parametrize("relation, multiplier", [
    (NeighbouringRelation.ADD_REMOVE, 7.0), (NeighbouringRelation.ZERO_OUT, 7.0), (REPLACE_ONE, 7 / math.sqrt(2))])
def test_event_follows_the_relation(relation, multiplier):
    assert PrivatePCA(60, 7.0).event(relation) == Gaussian(multiplier)


def test_fit_charges_before_it_looks(rng, monkeypatch):
    x = rng.standard_normal((20, 4))
    seen = []
    measure = PrivatePCA.raw_second_moments
    budget = Filter(MomentsAccountant(), 1.0, 1e-5)
    monkeypatch.setattr(PrivatePCA, "raw_second_moments",
                        lambda self, x: seen.append(budget.ledger.items()) or measure(self, x))
    assert PrivatePCA(2, 7.0).fit(x, budget, rng).shape == (4, 2)
    assert seen == [[(Gaussian(7.0), 1)]] == [budget.ledger.items()]
    with pytest.raises(BudgetExceededError):
        PrivatePCA(2, 4.0).fit(x, budget, rng)
    assert len(seen) == 1 and budget.ledger.items() == seen[0]


def test_fit_follows_the_relation_of_the_ledger(rng):
    budget = Filter(MomentsAccountant(REPLACE_ONE), math.inf, 1e-5, Ledger(REPLACE_ONE))
    PrivatePCA(2, 7.0).fit(rng.standard_normal((20, 4)), budget, rng)
    assert budget.ledger.items() == [(Gaussian(7 / math.sqrt(2)), 1)]


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
    with pytest.raises(ShapeError, match=r"PrivatePCA: expected x of shape \(N, D\), got \(4, 2, 2\)"):
        PrivatePCA(2, 4.0).raw_second_moments(np.zeros((4, 2, 2)))
    with pytest.raises(ParameterError, match="expected pca_dim=5 to be at most the 4 inputs"):
        PrivatePCA(5, 4.0).raw_second_moments(np.zeros((3, 4)))
    with pytest.raises(DtypeError, match="PrivatePCA"):
        PrivatePCA(2, 4.0).raw_second_moments(np.zeros((3, 4), int))
