"""Checks of what is released before training: differentially private PCA, the noisy mean and spread
of features.
"""

import math
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np

from ...backend import to_host
from ...mechanism import PrivatePCA, PrivateScaling
from ...mechanism.before import pca, scaling
from ...mechanism.before.centring import shrunk
from ...privacy.events import Gaussian
from ...privacy.events import NeighbouringRelation as Relation
from ...streams import Streams
from .. import reference
from . import holds, measures, relative, slack, worst

PCA, SCALING = "mechanism.before.pca.PrivatePCA", "mechanism.before.scaling.PrivateScaling"
EXACT = 1e-12
# of the integers of each arithmetic
GRIDS = {"ordinary": 0.0, "exact": 2.0**-32}


@measures(
    PCA,
    "F1",
    "each row over its norm, beyond a cell; infinity if longer than 1 in fractions",
    EXACT,
)
def rows_are_scaled_to_unit_norm(bench):
    """Of many sizes; zero where not finite; all in cells of 2^-16."""
    for (dtype, scale), width in product((("float32", 15), ("float64", 30)), (1, 5, 784)):
        sizes = 10.0 ** bench.rng.uniform(-scale, scale, (20, 1))
        x = (bench.rng.standard_normal((20, width)) * sizes).astype(dtype)
        x[3], x[5, 0] = 0.0, np.nan
        got = to_host(pca.unit_rows(bench.asarray(x)))
        for n, (row, unit) in enumerate(zip(x.astype(float), got)):
            norm = math.inf if n in (3, 5) else math.sqrt(math.fsum(v * v for v in row))
            yield np.abs(unit - np.nan_to_num(row) / norm).max() - 2.0**-16
            longer = sum(Fraction(float(v)) ** 2 for v in unit) > 1
            yield holds(not (longer or (unit * 2**16 % 1).any()))


@measures(PCA, "F2", "sums over unit rows, also of two batches", EXACT)
def second_moments_equal_a_loop(bench):
    for examples in (0, 1, pca.BATCH_ROWS + 3):
        x = bench.asarray(bench.rng.standard_normal((examples, 3)))
        columns = to_host(pca.unit_rows(x)).T
        expected = [[math.fsum(first * second) for second in columns] for first in columns]
        yield worst(PrivatePCA(2, 4.0).raw_second_moments(x), expected)


@measures(
    PCA, "F3", "the same numbers, drawn again: the diagonal's, and then those above it", EXACT
)
def noise_is_added_to_the_moments(bench):
    raw = np.add.outer(np.arange(4.0), np.arange(4.0))
    places = [(i, i) for i in range(4)], [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for arithmetic, grid in GRIDS.items():
        draws, expected = Streams(7).noise("pca"), np.empty((4, 4))
        for part, std in zip(places, (3.0, 4.5**0.5)):
            values = np.array([raw[place] for place in part])
            for (i, j), value in zip(part, reference.noisy(values, std, draws, grid)):
                expected[i, j] = expected[j, i] = value
        got = PrivatePCA(1, 3.0, arithmetic).noisy_second_moments(raw, Streams(7).noise("pca"))
        yield worst(got, expected)


@measures(PCA, "F4", "singular value decomposition", 1e-5)
def directions_are_the_principal_ones(bench):
    x = bench.rng.standard_normal((60, 5)) * [1, 5, 2, 0.5, 3]
    model = PrivatePCA(3, 0.0)
    projection = model.release(model.raw_second_moments(bench.asarray(x)), None)
    directions = np.linalg.svd(x / np.linalg.norm(x, axis=1, keepdims=True))[2][:3]
    yield holds(projection.shape == (5, 3))
    yield worst(np.abs(projection.T @ directions.T), np.eye(3))


@measures(PCA, "S1", "worst pair of rows by search: 1 - reached / claimed, but for the cut", 1e-6)
def sensitivity_is_reached_and_not_exceeded_by_rows(bench):
    model, pairs = PrivatePCA(1, 1.0), []
    for dtype in ("float32", "float64"):
        sizes = 10.0 ** bench.rng.uniform(-4, 4, (50, 1, 1, 1))
        for drawn in bench.rng.standard_normal((50, 2, 1, 4)) * sizes:
            # rows on different axes are the farthest apart
            on_axes = np.eye(4)[:2, None] * drawn[0, 0, 0]
            pairs += [drawn.astype(dtype), on_axes.astype(dtype)]

    def raw(row):
        return model.raw_second_moments(bench.asarray(row))

    for relation in Relation:
        yield slack(model.sensitivity(relation), relation, raw, pairs) - 2.0**-15


@measures(PCA, "S2", "sigma_p over the sensitivity", EXACT)
def event_follows_the_relation(bench):
    for relation in Relation:
        event = PrivatePCA(60, 7.0).event(relation)
        factor = math.sqrt(2) if relation is Relation.REPLACE_ONE else 1
        yield holds(isinstance(event, Gaussian))
        yield relative(event.noise_multiplier, 7.0 / factor)


def _rows(bench, size=40):
    """Features of very different sizes, some zero, one row that is not finite."""
    x = bench.rng.standard_normal((size, 3)) * [1e-3, 1.0, 5e4] + [0.0, 2.0, 0.0]
    x[1, 0], x[2] = 0.0, [np.nan, 1.0, 1.0]
    return x


@measures(SCALING, "F1", "loop over numbers, by logarithms", 0.0)
def magnitudes_are_counted(bench):
    x = np.vstack([_rows(bench), [[1.0, 2.0, 0.5]], [[1e-30, 1e30, -4.0]]])
    expected = np.zeros((3, 61))
    for row in x[np.isfinite(x).all(axis=1)]:
        for d, value in enumerate(row):
            e = -30 if value == 0 else min(max(math.floor(math.log2(abs(value))) + 1, -30), 30)
            expected[d, e + 30] += 1
    return worst(scaling.raw_magnitudes(bench.asarray(x)), expected)


@measures(SCALING, "F2", "without noise, of features whose values are one number", 0.0)
def limits_are_twice_the_top_of_the_fullest_count(bench):
    x = bench.asarray(np.full((9, 3), [3.0, -0.25, 0.0]))  # 2 <= 3 < 4, 1/4 <= 1/4 < 1/2, and zero
    return worst(PrivateScaling(0.0).release_limits(x, Relation.ADD_REMOVE, None), [8, 1, 2.0**-29])


@measures(SCALING, "F3", "loop over numbers", EXACT)
def moments_equal_a_loop(bench):
    x, limits, expected = _rows(bench), np.array([2e-3, 2.0, 2e5]), np.zeros((2, 3))
    for row in x[np.isfinite(x).all(axis=1)]:
        for d, value in enumerate(row):
            z = round(min(max(value / limits[d], -1.0), 1.0) * 2**14) / 2**14
            expected[:, d] += z, z * z
    return worst(scaling.raw_moments(bench.asarray(x), limits), expected)


@measures(
    SCALING, "F4", "mean and standard deviation of values within the limits; the floor", EXACT
)
def centre_and_spread_are_those_of_the_values(bench):
    limits = np.array([4.0, 64.0])
    x = bench.rng.uniform(-1, 1, (50, 2)) * [3, 40] + [0.5, 10]
    x = np.round(x / limits * 2**14) / 2**14 * limits
    raw = scaling.raw_moments(bench.asarray(x), limits)
    floor = scaling.centre_and_spread(limits, np.array([[25.0, 0.0], [12.5, -3.0]]), 50)[1]
    found = *scaling.centre_and_spread(limits, raw, 50), floor
    yield from map(worst, found, (x.mean(axis=0), x.std(axis=0), limits / 16))


@measures(SCALING, "F5", "the same numbers, drawn again", EXACT)
def both_releases_carry_noise(bench):
    x, limits = _rows(bench), np.array([2e-3, 2.0, 2e5])
    cases = [(Relation.ADD_REMOVE, 3, 6), (Relation.REPLACE_ONE, 6, 12)]
    for arithmetic, (relation, counts, moments) in product(GRIDS, cases):

        def noisy(raw, variance, number):
            noise_std = 3 * math.sqrt(variance)
            # below 2^-28
            grid = 2.0 ** math.floor(math.log2(noise_std)) * GRIDS[arithmetic]
            return reference.noisy(raw, noise_std, Streams(7).noise(number), grid)

        model = PrivateScaling(3.0, arithmetic)
        got = model.release_moments(bench.asarray(x), limits, relation, Streams(7).noise(0))
        yield worst(got, noisy(scaling.raw_moments(x, limits), moments, 0))
        released = model.release_limits(bench.asarray(x), relation, Streams(7).noise(1))
        fullest = noisy(scaling.raw_magnitudes(x), counts, 1).argmax(axis=1)
        yield worst(released, 2.0 ** (fullest - 29))


@measures(SCALING, "S1 S2", "worst pair of rows by search: 1 - reached / claimed", 1e-12)
def sensitivities_are_reached_and_not_exceeded(bench):
    model, ones = PrivateScaling(1.0), np.ones((1, 3))
    # corners first
    pairs = [(ones, -2 * ones), *bench.rng.uniform(-1.5, 1.5, (200, 2, 1, 3))]
    counts = scaling.raw_magnitudes, model.count_sensitivity
    moments = partial(scaling.raw_moments, limits=ones[0]), model.moment_sensitivity
    for (raw, sensitivity), relation in product((counts, moments), Relation):
        yield slack(sensitivity(relation, 3) * (1 + 1e-15), relation, raw, pairs)


@measures(SCALING, "S3", "noise over sensitivity", EXACT)
def event_is_that_of_each_release(bench):
    event = PrivateScaling(3.0).event()
    return worst([event.noise_multiplier], [3.0]) if isinstance(event, Gaussian) else math.inf


@measures("mechanism.before.centring.shrunk", "F1", "loop; noise explains none, a part, all", 1e-14)
def shrinking_equals_a_loop(bench):
    yield worst(shrunk(np.array([3.0, 4.0]), 1e3), [3.0, 4.0])
    for noise_std in (0.0, 0.1, 0.7, 50.0):
        mean = bench.rng.standard_normal(9)
        share = 1 - 7 * noise_std * noise_std / sum(float(m) * float(m) for m in mean)
        yield worst(shrunk(mean, noise_std), [float(m) * share if share > 0 else 0.0 for m in mean])
