"""Normal numbers from uniform ones: the formula, the distribution, and that threads do not matter."""
import numpy as np
import pytest
from scipy import stats

from minidp.host import threads
from minidp.host.normal import BLOCK, float32_normals

FALSE_ALARM = 1e-7  # chance that a right implementation fails such a test with another seed
COUNT = 2_000_000


@pytest.fixture(scope="module")
def many():
    return float32_normals(np.random.default_rng(1), COUNT).astype("float64")


@pytest.mark.parametrize("size", [0, 1, 2, 7, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_equals_the_formula_in_double_precision(size):
    got = float32_normals(np.random.default_rng(2), size)
    assert got.shape == (size,) and got.dtype == np.float32
    rng, expected = np.random.default_rng(2), []
    for start in range(0, size, BLOCK):
        width = min(BLOCK, size - start)
        u, v = rng.random((2, (width + 1) // 2))
        r = np.sqrt(-2 * np.log1p(-u))
        expected += [*(r * np.cos(2 * np.pi * v)), *(r * np.sin(2 * np.pi * v))][:width]
    np.testing.assert_allclose(got, np.array(expected), rtol=1e-6, atol=4e-6)  # an angle of 24 bits, times r


@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads_change_no_bit(count, monkeypatch):
    monkeypatch.setattr(threads, "limit", lambda: 1)
    alone = float32_normals(np.random.default_rng(3), 5 * BLOCK + 9)
    monkeypatch.setattr(threads, "limit", lambda: count)
    monkeypatch.setattr(threads, "_pool", None)
    np.testing.assert_array_equal(float32_normals(np.random.default_rng(3), 5 * BLOCK + 9), alone)


def test_distribution_is_normal(many):
    assert stats.kstest(many, "norm").pvalue > FALSE_ALARM
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], COUNT)
    assert low < (many**2).sum() < high


@pytest.mark.parametrize("bound", [1e-3, 3.0, 4.0, 4.5])
def test_tails_and_the_middle_weigh_what_they_should(many, bound):
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], COUNT, 2 * stats.norm.sf(bound))
    assert low <= (np.abs(many) > bound).sum() <= high


def test_numbers_are_on_no_coarse_grid(many):
    assert len(np.unique(many)) > 0.9 * COUNT


def test_the_two_numbers_of_a_pair_are_independent(many):
    blocks = many[: COUNT - COUNT % BLOCK].reshape(-1, 2, BLOCK // 2)
    first, second = blocks[:, 0].ravel(), blocks[:, 1].ravel()
    for left, right in ((first, second), (first**2, second**2), (np.abs(first), second), (first[1:], first[:-1])):
        error = np.corrcoef(left, right)[0, 1] * np.sqrt(len(left))
        assert abs(error) < stats.norm.isf(FALSE_ALARM / 2)


class Extreme:
    """A generator at the ends of its range."""

    def __init__(self, value):
        self.value = value

    def random(self, shape):
        return np.full(shape, self.value)


@pytest.mark.parametrize("value, largest", [(0.0, 0.0), (1 - 2.0**-53, 8.6)])
def test_the_ends_of_the_uniform_range_are_finite(value, largest):
    got = float32_normals(Extreme(value), 10)
    assert np.isfinite(got).all() and np.abs(got).max() <= largest
