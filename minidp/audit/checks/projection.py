"""Checks of differentially private PCA."""
import math
from fractions import Fraction
from unittest import mock

import numpy as np

from ...backend import to_host
from ...mechanism import PrivatePCA, pca
from ...privacy.events import Gaussian
from ...privacy.events import NeighbouringRelation as Relation
from ...streams import Streams
from .. import reference
from . import measures, worst

CARD = "mechanism.pca.PrivatePCA"
EXACT = 1e-12
SENSITIVITIES = {Relation.ADD_REMOVE: 1.0, Relation.ZERO_OUT: 1.0, Relation.REPLACE_ONE: math.sqrt(2)}


@measures(CARD, "F1", method="each row over its norm, beyond a cell; infinity if longer than 1 in fractions", tolerance=EXACT)
def rows_are_scaled_to_unit_norm(bench):
    """Of many sizes; zero where not finite; all in cells of 2^-16."""
    for dtype, width, scale in (("float32", 1, 15), ("float32", 784, 15), ("float64", 5, 30), ("float64", 784, 30)):
        x = (bench.rng.standard_normal((20, width)) * 10.0 ** bench.rng.uniform(-scale, scale, (20, 1))).astype(dtype)
        x[3], x[5, 0] = 0.0, np.nan
        got = to_host(pca.unit_rows(bench.asarray(x)))
        expected = np.array([np.zeros(width) if n in (3, 5) else row / math.sqrt(math.fsum(v * v for v in row))
                             for n, row in enumerate(x.astype(float))])
        if (got * 2**16 % 1).any() or any(sum(Fraction(float(v)) ** 2 for v in row) > 1 for row in got):
            yield math.inf
        yield float(np.abs(got - expected).max()) - 2.0**-16


@measures(CARD, "F2", method="loop over rows", tolerance=EXACT)
def second_moments_equal_a_loop(bench):
    for examples in (0, 1, 7):
        x, expected = bench.rng.integers(-9, 9, (examples, 4)) * 2.0**-16, np.zeros((4, 4))
        for row in x:
            for i, j in np.ndindex(4, 4):
                expected[i, j] += row[i] * row[j]
        with mock.patch.object(pca, "BATCH_ROWS", 3), mock.patch.object(pca, "unit_rows", lambda rows: rows):
            yield worst(PrivatePCA(2, 4.0).raw_second_moments(bench.asarray(x)), expected)


@measures(CARD, "F3", method="the same numbers, drawn again: the diagonal's, and then those above it", tolerance=EXACT)
def noise_is_added_to_the_moments(bench):
    raw = np.add.outer(np.arange(4.0), np.arange(4.0))
    places = [(i, i) for i in range(4)], [(i, j) for i in range(4) for j in range(i + 1, 4)]
    with mock.patch.object(pca, "principal_directions", lambda matrix, dimensions: matrix):
        for arithmetic in ("ordinary", "exact"):
            draws, expected = Streams(7).noise("pca"), np.empty((4, 4))
            for part, std in zip(places, (3.0, 4.5**0.5)):
                values = np.array([raw[place] for place in part])
                values = (reference.noisy(values, std, draws) if arithmetic == "ordinary" else
                          reference.integer_noisy(values, std, 2.0**-32, draws))
                for (i, j), value in zip(part, values):
                    expected[i, j] = expected[j, i] = value
            got = PrivatePCA(1, 3.0, arithmetic).release(raw, Streams(7).noise("pca"))
            yield worst(got, expected)


@measures(CARD, "F4", method="singular value decomposition", tolerance=1e-5)
def directions_are_the_principal_ones(bench):
    x = bench.rng.standard_normal((60, 5)) * [1, 5, 2, 0.5, 3]
    model = PrivatePCA(3, 0.0)
    projection = model.release(model.raw_second_moments(bench.asarray(x)), None)
    directions = np.linalg.svd(x / np.linalg.norm(x, axis=1, keepdims=True))[2][:3]
    return worst(np.abs(projection.T @ directions.T), np.eye(3)) if projection.shape == (5, 3) else math.inf


@measures(CARD, "S1", method="worst pair of rows by search: 1 - reached / claimed, but for the cut", tolerance=1e-6)
def sensitivity_is_reached_and_not_exceeded_by_rows(bench):
    model = PrivatePCA(1, 1.0)
    for relation in Relation:
        claimed, reached = model.sensitivity(relation), 0.0
        for trial in range(200):
            rows = bench.rng.standard_normal((2, 4)) * 10.0 ** bench.rng.uniform(-4, 4)
            if trial % 2:
                rows = np.eye(4)[:2] * rows[0, 0]  # rows on different axes are the farthest apart
            first, second = (model.raw_second_moments(bench.asarray(row[None].astype(["float32", "float64"][trial // 2 % 2])))
                             for row in rows)
            moved = first - second if relation is Relation.REPLACE_ONE else first
            reached = max(reached, float(np.linalg.norm(moved)))
        if reached > claimed:
            yield math.inf
        yield 1 - 2.0**-15 - reached / claimed


@measures(CARD, "S2", method="sigma_p over the sensitivity", tolerance=EXACT)
def event_follows_the_relation(bench):
    events = [PrivatePCA(60, 7.0).event(relation) for relation in Relation]
    if not all(isinstance(event, Gaussian) for event in events):
        return math.inf
    return worst([event.noise_multiplier for event in events], [7.0 / SENSITIVITIES[relation] for relation in Relation])
