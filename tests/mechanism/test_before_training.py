"""Releases before the first step: each part against its definition."""

import numpy as np
import pytest
from scipy import stats

import minidp
from minidp.errors import DtypeError, ParameterError
from minidp.fitting.column_look import (
    centre_and_spread,
    equal,
    magnitudes,
    narrowed,
    piece_edges,
    raw_counts,
    shares_of,
    widest,
)
from minidp.host.blas import thread_functions
from minidp.mechanism import (
    ColumnLook,
    PrivatePCA,
    Sanitizer,
    mean_sanitizer,
    noisy_mean,
    random_projection,
)
from minidp.streams import Streams
from tests.support.training import make_trainer

FALSE_ALARM = 1e-6  # chance that a right implementation fails such a test with another seed


def test_random_projection_keeps_squared_norms_on_average(rng):
    inputs, dimensions = 40, 2000
    P = random_projection(inputs, dimensions, rng)
    assert P.shape == (inputs, dimensions) and P.dtype == np.float32
    x = rng.standard_normal(inputs)
    ratio = ((x @ P) ** 2).sum() / (x**2).sum() * dimensions  # chi-squared
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], dimensions)
    assert low < ratio < high


def test_without_noise_it_is_the_mean_of_the_clipped_rows(rng):
    x = rng.normal(size=(5000, 6)).astype("float32")
    x[3] = np.nan
    clipped = np.delete(x, 3, 0) / np.maximum(
        1, np.linalg.norm(np.delete(x, 3, 0), axis=1, keepdims=True)
    )
    np.testing.assert_allclose(
        noisy_mean(x, mean_sanitizer(0.0), 5000, rng), clipped.sum(0) / 5000, rtol=1e-5, atol=1e-7
    )


def test_rows_without_a_mean_give_noise_of_the_public_size_which_is_positive():
    for rows in (np.zeros((0, 4), "float32"), np.full((3, 4), np.inf, "float32")):
        assert noisy_mean(rows, mean_sanitizer(1.0), 10, noise("mean")).shape == (4,)
    with pytest.raises(ParameterError, match="size"):
        noisy_mean(rows, mean_sanitizer(1.0), 0, noise("mean"))


def rows_that_round_apart(blocks, block=1024):
    """(blocks * block, 1) rows below norm 1: each block rounds up, and down without the first row.

    In units of the last place of the sum so far, the sum of a block ends with a little more than
    one half, and with a little less where the block begins one row later.
    """
    row = 1 - 2.0**-19
    last_place = np.spacing(float(block) * np.arange(1, blocks + 1))
    drift = np.arange(blocks) * -(2.0**-6) % 1
    rows = np.full((blocks, block), row)
    rows[:, 0] = row + drift * last_place
    rows[:, -1] = row + (0.5 + 2.0**-7 - drift) % 1 * last_place
    return rows.reshape(-1, 1)


def test_rounding_does_not_move_the_sums_of_neighbours_apart(monkeypatch):
    released, release = [], Sanitizer.release

    def watched(self, raw, draws):
        released.append(float(raw["rows", "mean"][0]))
        return release(self, raw, draws)

    monkeypatch.setattr(Sanitizer, "release", watched)
    rows = rows_that_round_apart(2**13)
    for each in (rows, rows[1:]):
        noisy_mean(each, mean_sanitizer(1.0), 2**23, noise("mean"))
    assert 0.999 < released[0] - released[1] <= 1


@pytest.mark.parametrize("size, factor", [(380_000, 1.0), (14_500_000, 1.000195848596)])
def test_a_mean_of_very_many_rows_has_as_much_more_noise_as_their_rounding_needs(size, factor):
    rows, sanitizer = np.zeros((0, 2), "float32"), mean_sanitizer(3.0)
    few, many = (noisy_mean(rows, sanitizer, each, noise("mean")) * each for each in (1, size))
    np.testing.assert_allclose(many / few, factor, rtol=1e-12)


def test_more_rows_than_the_public_size_allows_are_refused():
    most = 767_610
    rows, sanitizer = np.broadcast_to(np.float32(0), (most + 1, 1)), mean_sanitizer(1.0)
    assert noisy_mean(rows[:most], sanitizer, 1000, noise("mean")).shape == (1,)
    with pytest.raises(ParameterError, match=f"{most + 1:,} rows"):
        noisy_mean(rows, sanitizer, 1000, noise("mean"))


def looked(x, noise_std, cells, bounds=None):
    """(centre, spread, edges of 4 pieces) of columns by looks at them with so much noise."""
    columns, size, rng = x.shape[1], len(x), np.random.default_rng(1)

    def counts(edges):
        raw = raw_counts(x, edges)
        return raw + noise_std * rng.standard_normal(raw.shape)

    low, high = np.full((2, columns), [[-1.0], [1.0]])
    if bounds is None:
        low, high = magnitudes(counts(widest(columns)), noise_std, size)
    edges = equal(low, high, 4096)
    low, high = narrowed(counts(edges), edges, noise_std, size)
    edges = equal(low, high, cells)
    shares = shares_of(counts(edges), noise_std, size)
    return *centre_and_spread(shares, edges), piece_edges(shares, edges, 4)


@pytest.mark.parametrize("offset", [0, 1e6, -1.7e9])
def test_a_look_finds_centres_spreads_and_pieces_wherever_the_numbers_lie(rng, offset):
    spread = 1.0 if abs(offset) < 1e7 else 1e5
    x = np.stack([rng.normal(size=40_000), rng.uniform(-2, 2, 40_000)], axis=1) * spread + offset
    for noise_std in (0.0, 60.0):
        centre, found, edges = looked(x, noise_std, 128)
        np.testing.assert_allclose(centre, x.mean(axis=0), atol=0.2 * spread)
        np.testing.assert_allclose(found, x.std(axis=0), rtol=0.3)
        assert (np.diff(edges, axis=1) > 0).all()
        middle = [(column < edge).mean() for column, edge in zip(x.T, edges[:, 1])]
        np.testing.assert_allclose(middle, 0.5, atol=0.1)


def test_a_column_that_is_seldom_anything_but_zero_has_pieces_beyond_zero(rng):
    x = np.where(rng.random((40_000, 1)) < 0.9, 0, rng.uniform(0, 50, (40_000, 1)))
    _, _, edges = looked(x, 30.0, 128)
    assert edges[0, -1] > 5


def test_a_tenth_of_a_column_is_not_lost_beside_a_value_that_most_have(rng):
    """Whatever the noise on the cells between them sums to."""
    x = np.where(rng.random((26_000, 1)) < 0.92, 0, rng.uniform(0, 1, (26_000, 1)))
    size, edges = len(x), equal(np.array([-1.0]), np.array([1.0]), 4096)
    raw = raw_counts(x, edges)
    for _ in range(40):
        noisy = raw + 70 * rng.standard_normal(raw.shape)
        low, high = narrowed(noisy, edges, 70.0, size)
        assert (low, high) == (-1, 1)


def test_columns_that_show_nothing_still_have_a_spread(rng):
    """Constants, columns of gaps, and far more noise than there are rows."""
    x = np.stack([np.full(500, 7.0), np.full(500, np.nan), rng.normal(size=500)], axis=1)
    for noise_std in (0.0, 20.0, 1e4):
        centre, spread, edges = looked(x, noise_std, 8)
        assert np.isfinite(centre).all() and (spread > 0).all() and np.isfinite(edges).all()


def noise(name="some"):
    return Streams(1).noise(name)


@pytest.mark.skipif(
    thread_functions() is None, reason="BLAS cannot be told how many threads to use"
)
def test_releases_are_the_same_bits_in_any_order_and_on_any_number_of_threads(rng):
    x, found = rng.standard_normal((9000, 30)).astype("float32"), set()
    get, set_threads = thread_functions()
    before = get()
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            rows, model = rng.permutation(x), PrivatePCA(5, 7.0)
            released = (
                model.release(model.raw_second_moments(rows), noise("pca")),
                ColumnLook(3.0).release(rows, widest(30), noise("columns")),
            )
            found.add(b"".join(each.tobytes() for each in released))
    finally:
        set_threads(before)
    assert len(found) == 1


def test_float16_is_refused_or_taken_for_what_it_is(rng):
    half, y = rng.standard_normal((40, 6)).astype("float16"), rng.integers(0, 2, 40)
    with pytest.raises(DtypeError, match=r"float16; convert it with .astype\(numpy.float32\)"):
        make_trainer().train(half, y, Streams(1))
    for release in (
        PrivatePCA(2, 4.0).raw_second_moments,
        lambda x: raw_counts(x, widest(6)),
        lambda x: noisy_mean(x, mean_sanitizer(7.0), 40, noise()),
        lambda x: minidp.fit(x, y, epsilon=8.0, seed=1, quiet=True).predict_proba(x),
    ):
        assert release(half).tobytes() == release(half.astype("float32")).tobytes()
