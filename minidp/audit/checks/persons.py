"""Checks of what protects persons: which rows are used, means over them, and releases of them."""

import math
from fractions import Fraction
from functools import partial

import numpy as np

from ... import nn, train
from ...backend import to_host
from ...data.arrays import Inputs
from ...data.persons import Means, Persons, shared
from ...mechanism import (
    Plan,
    PoissonSampler,
    PrivatePCA,
    PrivateScaling,
    Sanitizer,
    per_layer_groups,
)
from ...mechanism.before import scaling
from ...privacy.events import NeighbouringRelation as Relation
from ...streams import Streams
from ..equation import Case
from . import holds, in_words, measures, slack, states, worst
from .before_training import PCA, SCALING
from .training import CARD, _setting, mean_gradient

EXACT, PERSONS = 1e-12, "data.persons.Persons"
MOST = 3


def _of_persons(rng, rows=23, persons=6):
    """(name of each row's person, {person: numbers of the rows of hers that are used})."""
    names = np.array(["eve", "al", "ida", "bo", "cy", "di"])[rng.integers(0, persons, rows)]
    used = {name: [] for name in sorted(set(names.tolist()))}
    for row, name in enumerate(names.tolist()):
        if len(used[name]) < MOST:
            used[name].append(row)
    return names, used


@measures(PERSONS, "F1 F2 F3", "lists by name, row by row", 0.0)
def each_person_has_her_first_rows(bench):
    for _ in range(5):
        names, used = _of_persons(bench.rng)
        persons = Persons(names, MOST)
        lot = bench.rng.permutation(len(persons))
        for number, rows, share in zip(lot, *persons.slots(lot)):
            mine = used[sorted(used)[number]]
            empty = MOST - len(mine)
            yield holds(rows.tolist() == mine + [mine[0]] * empty)
            yield holds(share.tolist() == [1 / len(mine)] * len(mine) + [0.0] * empty)


in_words(PERSONS, "F1 F2 F3", "counts rows and names places")


@states("data.persons.shared", "F1", 0.0)
def empty_places_become_zero_whatever_they_hold(bench):
    x, share = bench.rng.standard_normal((6, 2)), np.array([0.5, 0, 1, 0, 0.25, 0])
    x[1], x[3] = np.inf, np.nan
    y = to_host(shared(bench.asarray(x), bench.asarray(share)))
    yield Case({"x": x, "share": share, "y": y})


@states("data.persons.Means", "F1")
def persons_means_are_of_rows_that_are_used(bench):
    names, _ = _of_persons(bench.rng)
    x, persons = bench.rng.standard_normal((len(names), 2, 2)), Persons(names, MOST)
    inputs = Inputs(x, bench.backend, dtype="float64")
    means = Means(inputs, persons, np.arange(len(persons)))
    for span in (slice(None), slice(1, 3)):
        rows, share = persons.slots(np.arange(len(persons))[span])
        held = x[rows].reshape((*rows.shape, 4))
        yield Case({"x": held, "share": share, "person": to_host(means[span])})


@states(CARD, "V2")
def a_persons_gradient_is_the_mean_over_her_rows(bench):
    trainer, *_ = _setting(bench, 0.8, 0.5, PoissonSampler(1.0), rows_per_person=MOST)
    x, y = bench.rng.uniform(-1, 1, (5 * MOST, 4)), bench.rng.integers(0, 3, 5 * MOST)
    share = np.array([[1, 0, 0], [1 / 2, 1 / 2, 0], *[[1 / 3] * 3] * 3])
    z, caches = trainer.network.forward(bench.asarray(x))
    dz = trainer.loss(z, bench.asarray(y))[1]
    each = trainer.network.param_grads(dz.copy(), caches)
    for key, mean in trainer._over_rows(dz, caches, bench.asarray(share.ravel())).items():
        g, mean = (to_host(grad.materialise()) for grad in (each[key], mean))
        g, mean = g.reshape((5, MOST, -1)), mean.reshape((5, -1))
        yield Case({"g": g, "share": share, "person": mean})


@measures(CARD, "V2", "mean over a person's rows, one by one, clipped", EXACT)
def persons_gradients_are_averaged_before_clipping(bench):
    """All are clipped, none is, some are; every form of the gradients; weights; a row that is not
    finite takes its person out.
    """
    cases = (0.1, "auto", 4096), (5.0, "explicit", 2), (0.3, "factored", 4096), (0.3, "auto", 1)
    for clip, strategy, batch_size in cases:
        names, used = _of_persons(bench.rng)
        x, y = bench.rng.uniform(-1, 1, (len(names), 4)), bench.rng.integers(0, 3, len(names))
        weight = bench.rng.uniform(0, 1, len(used))
        dense = partial(nn.Dense, rng=bench.rng, dtype="float64")
        network = nn.Sequential([dense(4, 5), nn.Tanh(), dense(5, 3)], (4,))
        groups = per_layer_groups(list(network.params), clip, 0.0)
        expected = {key: array.copy() for key, array in network.params.items()}
        persons, left_out = [used[name] for name in sorted(used)], used[min(used)][-1]
        for number, rows in enumerate(persons[1:], 1):
            mean = mean_gradient(network, nn.SoftmaxCrossEntropy(), x[rows], y[rows])
            one = Sanitizer(groups).add_clipped(mean)
            for key, array in expected.items():
                array -= weight[number] * one[key] / 7
        x[left_out, 0] = np.nan
        plan = Plan(PoissonSampler(1.0), Sanitizer(groups, strategy), 1, 7)
        network.to(bench.backend)
        trainer = train.Trainer(
            network,
            nn.SoftmaxCrossEntropy(),
            train.SGD(1.0),
            plan,
            batch_size=batch_size,
            rows_per_person=MOST,
        )
        arrays = map(bench.asarray, (x, y))
        weight = bench.asarray(weight)
        trainer.run(*arrays, Streams(5), person=names, example_weight=weight)
        yield from (worst(network.params[key], expected[key]) for key in expected)


@measures(PCA, "F1 F2", "sums over each person's unit rows, over her number of rows", 2.0**-13)
def second_moments_of_persons_equal_a_loop(bench):
    names, used = _of_persons(bench.rng)
    x = bench.rng.standard_normal((len(names), 3))
    x[used[min(used)][-1], 0] = np.inf
    expected = np.zeros((3, 3))
    for name in sorted(used)[1:]:
        for row in x[used[name]]:
            expected += np.outer(row, row) / (row @ row) / len(used[name])
    return worst(
        PrivatePCA(2, 4.0).raw_second_moments(bench.asarray(x), Persons(names, MOST)), expected
    )


@measures(SCALING, "F1 F3", "means over each person's rows in whole numbers, towards zero", 0.0)
def scaling_of_persons_equals_a_loop(bench):
    names, used = _of_persons(bench.rng)
    x, limits = bench.rng.uniform(-9, 9, (len(names), 2)), np.array([8.0, 16.0])
    x[used[min(used)][-1], 0] = np.inf
    counts, moments = np.zeros((2, 61)), np.zeros((2, 2))
    for name in sorted(used)[1:]:
        rows = used[name]
        for d, limit in enumerate(limits):
            z = [round(min(max(x[row, d] / limit, -1.0), 1.0) * 2**14) for row in rows]
            moments[0, d] += math.trunc(Fraction(2**14 * sum(z), len(rows))) / 2**28
            moments[1, d] += math.trunc(Fraction(sum(v * v for v in z), len(rows))) / 2**28
            for row in rows:
                counts[d, math.floor(math.log2(abs(x[row, d]))) + 31] += 2**28 // len(rows) / 2**28
    persons = Persons(names, MOST)
    yield worst(scaling.raw_magnitudes(bench.asarray(x), persons), counts)
    yield worst(scaling.raw_moments(bench.asarray(x), limits, persons), moments)


def _sensitivity(bench, raw, claimed, on_axes):
    """`slack` of pairs of persons with up to MOST rows; on_axes: pairs of persons with one row."""
    pairs = [([one], [other]) for one, other in on_axes]
    for first, second in bench.rng.integers(1, MOST + 1, (50, 2)):
        pairs.append(tuple(bench.rng.uniform(-1.5, 1.5, (rows, 3)) for rows in (first, second)))

    def of_person(rows):
        return raw(bench.asarray(np.array(rows, float)), Persons(np.zeros(len(rows), int), MOST))

    for relation in Relation:
        yield slack(claimed(relation) * (1 + 1e-15), relation, of_person, pairs)


@measures(PCA, "S1", "worst pair of persons by search", 2.0**-14)
def no_person_moves_second_moments_further(bench):
    model, axes = PrivatePCA(1, 1.0), np.eye(3)
    return _sensitivity(bench, model.raw_second_moments, model.sensitivity, [axes[:2]])


@measures(SCALING, "S1 S2", "worst pair of persons by search", 1e-12)
def no_person_moves_counts_or_moments_further(bench):
    model, ones = PrivateScaling(1.0), np.ones(3)
    for raw, claimed in (
        (scaling.raw_magnitudes, model.count_sensitivity),
        (partial(_moments, limits=ones), model.moment_sensitivity),
    ):
        yield from _sensitivity(bench, raw, partial(claimed, features=3), [(ones, -2 * ones)])


def _moments(x, persons, limits):
    return scaling.raw_moments(x, limits, persons)
