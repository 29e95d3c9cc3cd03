"""Checks of samplers, schedules and the plan."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np

from ... import mechanism
from ...mechanism import Plan, PoissonSampler, Sanitizer, flat_group, sampling
from ...privacy.events import (
    BallsInBins,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    TotalVariation,
)
from ...privacy.events import NeighbouringRelation as Relation
from ...streams import Streams
from . import measures, worst

EXACT, SIGMAS = 1e-12, 6.0  # a right implementation exceeds six standard errors once in 500 million
KEYS = (("one", "W"), ("one", "b"), ("two", "W"))


def _included(sampler, n, lots):
    """0 or 1 of each lot and example; NaN, which fails, where a lot holds an example twice or one
    that is not there.
    """
    seen = np.zeros((lots, n))
    for row, lot in zip(seen, sampler.lots(n, lots, Streams(3).sampling)):
        row[lot] = 1 if len(set(lot.tolist())) == len(lot) and min(lot, default=0) >= 0 else np.nan
    return seen


@measures(
    "mechanism.sampling.PoissonSampler",
    "F1",
    method="inclusions, pairs and sizes, in standard errors",
    tolerance=SIGMAS,
)
def poisson_inclusions_are_independent(bench):
    return max(_poisson_errors(12, 0.3, 20_000), _poisson_errors(300, 0.5, 2000))


def _poisson_errors(n, q, lots):
    seen = _included(PoissonSampler(q), n, lots)
    z = (seen - q) / math.sqrt(q * (1 - q))
    # off the diagonal standard normal if inclusions are independent
    products = z.T @ z / math.sqrt(lots)
    pairs = np.abs(products[~np.eye(n, dtype=bool)]).max()
    sizes = seen.sum(axis=1)
    variance = n * q * (1 - q)
    kurtosis = 3 + (1 - 6 * q * (1 - q)) / variance
    spread = abs(((sizes - n * q) ** 2).mean() / variance - 1) / math.sqrt((kurtosis - 1) / lots)
    follow = abs((z[1:] * z[:-1]).sum() / math.sqrt(n * lots))
    return max(np.abs(z.sum(axis=0)).max() / math.sqrt(lots), pairs, spread, follow)


@measures(
    "mechanism.sampling.PoissonSampler",
    "F2",
    method="binomial probabilities in exact fractions; absolute, of 2^64",
    tolerance=2.0**-62,
)
def sizes_have_the_binomial_law(bench):
    for n, q in (
        (0, 0.3),
        (12, 0.3),
        (40, 0.9),
        (7, 0.0),
        (7, 1.0),
        (5, 5e-324),
        (5, 1 - 2.0**-53),
        (300, 0.01),
    ):
        least, cumulative = sampling._binomial(n, q)
        p, total = Fraction(q), Fraction(0)
        for k in range(n + 1):
            total += math.comb(n, k) * p**k * (1 - p) ** (n - k)
            got = 0 if k < least else cumulative[min(k - least, len(cumulative) - 1)]
            yield float(abs(Fraction(got, 2**64) - total))


@measures(
    "mechanism.sampling.FixedSizeSampler",
    "F1",
    method="all subsets of 2 of 5, in standard errors",
    tolerance=SIGMAS,
)
def fixed_size_subsets_are_uniform(bench):
    lots = 20_000
    seen = _included(mechanism.FixedSizeSampler(5, 2), 5, lots)
    if (seen.sum(axis=1) != 2).any():
        return math.inf
    counts = np.bincount((seen @ 2.0 ** np.arange(5)).astype(int))
    p = 1 / 10
    return max(
        abs(counts[2**i + 2**j] - lots * p) / math.sqrt(lots * p * (1 - p))
        for i in range(5)
        for j in range(i)
    )


@measures(
    "mechanism.sampling.ShuffleSampler",
    "F1",
    method="all orders of 3, in standard errors",
    tolerance=SIGMAS,
)
def shuffled_epochs_are_permutations(bench):
    epochs = 12_000
    lots = [
        lot.tolist()
        for lot in mechanism.ShuffleSampler(3, 2).lots(3, 2 * epochs, Streams(5).sampling)
    ]
    orders = [tuple(two + one) for two, one in zip(lots[::2], lots[1::2])]
    counts = [orders.count(order) for order in permutations(range(3))]
    if sum(counts) != epochs:
        return math.inf
    follow = sum(a == b for a, b in zip(orders[1:], orders)) - epochs / 6
    return max(*(abs(c - epochs / 6) for c in counts), abs(follow)) / math.sqrt(epochs * 5 / 36)


def _differs(*pairs):
    return float(sum(got != expected for got, expected in pairs))


def _register_later(sampler):
    @measures(
        f"mechanism.sampling.{type(sampler).__name__}",
        "F1",
        method="those drawn from the first step on",
        tolerance=0.0,
    )
    def lots_of_a_later_epoch(bench):
        epoch = sampler.period
        whole, later = (
            sampler.lots(9, steps, Streams(3).sampling, start)
            for steps, start in ((2 * epoch, 0), (epoch, epoch))
        )
        return _differs(*zip(map(list, later), map(list, [*whole][epoch:])))


_register_later(mechanism.ShuffleSampler(9, 2))
_register_later(mechanism.BallsInBinsSampler(9, 2))


def _register_event(sampler, sampled, relation):
    @measures(
        f"mechanism.sampling.{type(sampler).__name__}",
        "S1",
        method="the event and its relation, by hand",
        tolerance=0.0,
    )
    def event_of_a_sample(bench):
        return _differs(
            (sampler.wrap(Gaussian(3.0)), sampled),
            (sampler.relation, relation),
            (sampler.charges(Gaussian(3.0), 7), (sampled, 7)),
        )


_register_event(PoissonSampler(0.02), PoissonSampled(0.02, Gaussian(3.0)), Relation.ADD_REMOVE)
_register_event(
    mechanism.FixedSizeSampler(1000, 20),
    FixedSizeSampled(1000, 20, Gaussian(3.0)),
    Relation.REPLACE_ONE,
)


@measures(
    "mechanism.sampling.ShuffleSampler",
    "S1",
    method="largest number of lots that hold one example",
    tolerance=0.0,
)
def shuffling_is_charged_as_often_as_an_example_is_seen(bench):
    sampler, event = mechanism.ShuffleSampler(10, 4), Gaussian(3.0)
    yield _differs((sampler.wrap(event), event), (sampler.relation, Relation.ZERO_OUT))
    for steps in range(10):  # whole epochs and broken ones
        drawn = sampler.lots(10, steps, Streams(6).sampling)
        seen = sum((np.bincount(lot, minlength=10) for lot in drawn), np.zeros(10, int))
        yield _differs((sampler.charges(event, steps), (event, int(seen.max()))))


@measures(
    "mechanism.sampling.BallsInBinsSampler",
    "F1",
    method="lots of epochs and pairs of examples, in standard errors",
    tolerance=SIGMAS,
)
def bins_are_uniform_and_independent(bench):
    """Each lot's place in an epoch is what its examples drew; NaN, which fails, unless every
    example is in one lot.
    """
    sampler, epochs = mechanism.BallsInBinsSampler(9, 2), 4000  # four lots
    lots = _included(sampler, 9, epochs * 4).reshape(epochs, 4, 9)
    yield 0.0 if (lots.sum(axis=1) == 1).all() else math.nan
    many = np.concatenate(
        list(mechanism.BallsInBinsSampler(8000, 1).lots(8000, 8000, Streams(3).sampling))
    )
    yield 0.0 if len(many) == 8000 and (np.sort(many) == np.arange(8000)).all() else math.nan
    z = (lots - 0.25) / math.sqrt(0.25 * 0.75)
    yield np.abs(z.sum(axis=0)).max() / math.sqrt(epochs)
    # of a pair: 12/3 with chance 1/4, else -4/3
    pairs = np.einsum("eta,etb->ab", z, z) / math.sqrt(epochs * 16 / 3)
    yield np.abs(pairs[~np.eye(9, dtype=bool)]).max()
    yield np.abs(np.einsum("eta,eta->a", z[1:], z[:-1])).max() / math.sqrt(epochs * 16 / 3)


@measures(
    "mechanism.sampling.BallsInBinsSampler",
    "S1",
    method="the event, its relation and epochs begun, by hand",
    tolerance=0.0,
)
def balls_in_bins_are_charged_per_epoch(bench):
    sampler, event = mechanism.BallsInBinsSampler(60_000, 256), Gaussian(3.0)
    return _differs(
        (sampler.wrap(event), BallsInBins(234, event)),
        (sampler.relation, Relation.ADD_REMOVE),
        *(
            (sampler.charges(event, steps), (BallsInBins(234, event), epochs))
            for steps, epochs in ((0, 0), (1, 1), (234, 1), (235, 2), (468, 2))
        ),
    )


SCHEDULES = (
    (
        mechanism.LinearDecay(0.1, 0.052, 10),
        {0: 0.1, 1: 0.0952, 5: 0.076, 9: 0.0568, 10: 0.052, 11: 0.052, 10**9: 0.052},
    ),
    (mechanism.LinearDecay(2.0, 3.0, 0), {0: 3.0}),
    (mechanism.Stages(6.0, 3.0, 4, 10), {0: 6, 9: 6, 10: 5, 20: 4, 30: 3, 39: 3, 40: 3, 10_000: 3}),
)

for _schedule, _values in SCHEDULES:
    measures(
        f"mechanism.schedule.{type(_schedule).__name__}",
        "F1",
        method="by hand",
        tolerance=EXACT,
        name="values",
    )(
        lambda bench, schedule=_schedule, values=_values: worst(
            [*map(schedule, values)], [*values.values()]
        )
    )


@measures("mechanism.plan.Plan", "S1", method="charges one step at a time", tolerance=0.0)
def charges_equal_a_loop_over_steps(bench):
    """Each step's own event, for a constant plan and one whose noise falls; merged, none lost, in
    order.
    """
    for sigma in (2.0, mechanism.LinearDecay(3.0, 1.0, 4)):
        plan = Plan(PoissonSampler(0.1), Sanitizer(flat_group(KEYS, 1.0, sigma)), 9, 50)
        expected = [
            PoissonSampled(
                0.1, Gaussian((sigma(step) if callable(sigma) else sigma) / plan.products.factor)
            )
            for step in range(9)
        ]
        for start, stop in ((0, 9), (2, 7), (5, 5)):
            got = [event for event, times in plan.charges(start, stop) for _ in range(times)]
            yield _differs((got, expected[start:stop]))
        got = [event for event, times in plan.ledger().items() for _ in range(times)]
        yield _differs((got, expected), (plan.relation, Relation.ADD_REMOVE))


class _NotQuiteGaussian(Sanitizer):
    def variation(self):
        return TotalVariation(2.0**-64, 30)


@measures(
    "mechanism.plan.Plan", "S1", method="distances added up step by step, unsampled", tolerance=0.0
)
def every_step_is_charged_its_distance(bench):
    """Beside the sampled event; with shuffled lots for all steps of each epoch begun."""
    groups = flat_group(KEYS, 1.0, 2.0)
    shuffled = mechanism.ShuffleSampler
    for sampler, lots in ((PoissonSampler(0.1), 9), (shuffled(10, 4), 9), (shuffled(10, 5), 10)):
        plans = [
            Plan(sampler, kind(groups), 9, sampler.lot_sizes(10)[1])
            for kind in (Sanitizer, _NotQuiteGaussian)
        ]
        (((event, times),), ((both, again),)) = (plan.charges(0, 9) for plan in plans)
        yield _differs(
            (again, times),
            (both.events[0], event),
            (both.events[1].tau, 2.0**-64),
            (both.events[1].count * again, 30 * lots),
            (len(both.events), 2),
        )
