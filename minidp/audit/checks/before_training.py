"""Checks of releases before training: differentially private PCA, a look at the columns, a shrunk
mean.
"""

import math
from itertools import product
from types import SimpleNamespace

import numpy as np

from ...backend import to_host
from ...data.persons import Persons
from ...fitting import column_look as columns
from ...fitting.average_noise import noise_of_average
from ...fitting.mean import shrunk
from ...mechanism import ColumnLook, PrivatePCA, pca
from ...mechanism.noise import noise_grid
from ...privacy.events import Gaussian
from ...streams import Streams
from ..equation import Case
from . import holds, in_words, measures, slack, states, worst
from .exact_values import sq_norms

PCA, LOOK = "mechanism.pca.PrivatePCA", "mechanism.columns.ColumnLook"
MOST = 3  # rows of a person
EDGES = np.array([[-1.0, 0.0, 0.5], [0.0, 1e-3, 1e3], [-(2.0**64), 2.0, 2.0]])
SEARCHED = "worst row or person by search: 1 - reached / claimed"
# a quantity before noise, and its sensitivity
PCA_SUMS = [(PrivatePCA(1, 1.0).raw_second_moments, PrivatePCA(1, 1.0).sensitivity)]
COUNTS = [
    (lambda x, units=None: columns.raw_counts(x, EDGES, units), columns.sensitivity(len(EDGES)))
]


@measures(PCA, "F1", "infinity if longer than 1 in fractions", 0.0)
def rows_are_no_longer_than_one(bench):
    """Rows of many sizes."""
    for (dtype, scale), width in product((("float32", 15), ("float64", 30)), (1, 5, 784)):
        sizes = 10.0 ** bench.rng.uniform(-scale, scale, (20, 1))
        x = (bench.rng.standard_normal((20, width)) * sizes).astype(dtype)
        for square in sq_norms(to_host(pca.unit_rows(bench.asarray(x), np.ones((len(x), 1))))):
            yield holds(1 - 1e-3 < square <= 1)


@states(PCA, "F1 F2")
def unit_rows_and_their_second_moments(bench):
    x = bench.rng.standard_normal((6, 3)) * 10.0 ** bench.rng.uniform(-9, 9, (6, 1))
    x[1], x[2, 0], x[3, 1] = 0.0, np.nan, np.inf
    a = to_host(pca.unit_rows(bench.asarray(x), np.ones((len(x), 1))))
    G = PrivatePCA(2, 4.0).raw_second_moments(bench.asarray(x))
    yield Case({"x": x, "a": a, "G": G, "inf": math.inf})


@measures(PCA, "F2", "the sum over two parts; no rows", 0.0)
def second_moments_of_batches_are_added(bench):
    x = bench.asarray(bench.rng.standard_normal((pca.BATCH_ROWS + 3, 3)))
    whole, *parts = map(PrivatePCA(2, 4.0).raw_second_moments, (x, x[:5], x[5:], x[:0]))
    yield worst(whole, sum(parts))


@states(PCA, "F3")
def noise_is_added_to_the_moments(bench):
    """The lower half of the matrix, which does not count, differs from the upper."""
    raw = np.rint(bench.rng.uniform(-9, 9, (4, 4)))
    places = np.diag_indices(4), np.triu_indices(4, 1)
    draws = Streams(7).noise("pca")
    z, q = np.ones((2, 4, 4))
    for at, std in zip(places, (3.0, 4.5**0.5)):
        z[at], q[at] = draws.standard_normal(at[0].shape), noise_grid(std)
    got = PrivatePCA(1, 3.0).noisy_second_moments(raw, Streams(7).noise("pca"))
    yield Case({"G": raw, "released": got, "sigma_p": 3.0, "z": z, "q": q})


@measures(PCA, "F4", "singular value decomposition", 1e-5)
def directions_are_the_principal_ones(bench):
    x = bench.rng.standard_normal((60, 5)) * [1, 5, 2, 0.5, 3]
    model = PrivatePCA(3, 0.0)
    projection = model.release(model.raw_second_moments(bench.asarray(x)), None)
    directions = np.linalg.svd(x / np.linalg.norm(x, axis=1, keepdims=True))[2][:3]
    yield holds(projection.shape == (5, 3))
    yield worst(np.abs(projection.T @ directions.T), np.eye(3))


@measures(PCA, "S1", SEARCHED, 2.0**-14, case=(np.eye(3)[:1], PCA_SUMS))
@measures(LOOK, "S1", SEARCHED, 1e-12, case=(np.full((1, 3), 8.0), COUNTS))
def sensitivities_are_reached_and_not_exceeded(bench, case):
    """The largest change by rows and persons of many sizes."""
    farthest, sums = case
    sizes = 10.0 ** bench.rng.uniform(-4, 4, (100, 1, 1, 1))
    drawn = (bench.rng.standard_normal((100, 2, MOST, 3)) * sizes).reshape(200, MOST, 3)
    examples = [farthest, *(rows[: 1 + n % MOST] for n, rows in enumerate(drawn))]
    for raw, claimed in sums:

        def of_row(rows):
            return raw(bench.asarray(rows[:1]))

        def of_person(rows):
            person = np.zeros(len(rows), int)
            return raw(bench.asarray(rows), units=Persons(person, MOST))

        for of in (of_row, of_person):
            yield slack(claimed * (1 + 1e-15), of, examples)


@states(PCA, "S1 S2")
def event_of_the_second_moments(bench):
    model = PrivatePCA(60, 7.0)
    m = model.event().noise_multiplier
    yield Case({"S": model.sensitivity, "sigma_p": 7.0, "m": m})


in_words(PCA, "F4", "names eigenvectors")
in_words(LOOK, "S2", "names the event")


@states(LOOK, "F1")
def counts_of_cells(bench):
    """For numbers on edges, far away, infinite, and NaN; for rows, and for persons' shares."""
    x = bench.rng.standard_normal((9, 3)) * [1.0, 1e2, 1e30]
    x[0], x[1, 0], x[2] = EDGES[:, 0], np.nan, [np.inf, -np.inf, 2.0]
    persons = Persons(np.array([0, 1, 1, 1, 2, 2, 3, 3, 3]), 2)
    ends = np.pad(EDGES, ((0, 0), (1, 1)), constant_values=[(0, 0), (-np.inf, np.inf)])
    for units in (None, persons):
        raw = columns.raw_counts(bench.asarray(x), EDGES, units)
        rows, share = np.arange(9)[:, None], np.ones((9, 1))
        if units is not None:
            rows, share = units.slots(np.arange(len(units)))
        finite = np.where(np.isfinite(x), x, np.nan)
        given = {"x": finite[rows.ravel()], "share": share.ravel(), "raw": raw}
        yield Case({**given, "l": ends[:, :-1], "u": ends[:, 1:]})


@states(LOOK, "F2 S1")
def counts_carry_noise(bench):
    x, look = bench.rng.standard_normal((40, 3)), ColumnLook(3.0)
    raw = columns.raw_counts(bench.asarray(x), EDGES)
    z = Streams(7).noise(0).standard_normal(raw.shape)
    released = look.release(bench.asarray(x), EDGES, Streams(7).noise(0))
    S = columns.sensitivity(3)
    given = {"raw": raw, "released": released, "z": z, "q": noise_grid(3.0 * S), "sigma": 3.0}
    yield Case({**given, "S": S, "D": 3})


@measures(LOOK, "S2", "a Gaussian of sigma", 0.0)
def event_is_that_of_each_release(bench):
    return holds(ColumnLook(3.0).event() == Gaussian(3.0))


@states("mechanism.mean.shrunk", "F1")
def shrinking(bench):
    """Noise explains nothing, a part or all of a vector; two coordinates do not change."""
    for noise_std, D in ((0.0, 9), (0.1, 9), (0.7, 9), (50.0, 9), (1e3, 2)):
        m = bench.rng.standard_normal(D)
        yield Case({"m": m, "D": D, "s": noise_std}, {"m": shrunk(m.copy(), noise_std)})


AVERAGED = "fitting.average_noise.noise_of_average"
in_words(AVERAGED, "F1", "nested sums over steps")


@measures(AVERAGED, "F1", "each step's noise by itself, step by step", 1e-12)
def noise_of_each_step_goes_on_to_the_average(bench):
    for momentum, average, steps in ((0.0, 0.0, 1), (0.9, 0.5, 7), (0.5, 0.95, 40)):
        settings = SimpleNamespace(
            learning_rate=0.3, momentum=momentum, average=average, steps=steps
        )
        variance = 0.0
        for noisy in range(steps):
            velocity = weight = averaged = 0.0
            for step in range(steps):
                velocity = momentum * velocity + (step == noisy)
                weight -= settings.learning_rate * velocity
                averaged = average * averaged + (1 - average) * weight
            variance += averaged**2
        yield worst(np.array(noise_of_average(settings)), np.array(math.sqrt(variance)))
