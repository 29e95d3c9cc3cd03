"""Checks of samplers, schedules and the plan."""

import math
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations

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
from ..equation import Case
from . import holds, in_words, measures, states

EXACT, SIGMAS = 1e-12, 6.0  # a right implementation exceeds six standard errors once in 500 million
SAMPLING = "mechanism.sampling"
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
    f"{SAMPLING}.PoissonSampler", "F1", "inclusions, pairs, sizes, in standard errors", SIGMAS
)
def poisson_inclusions_are_independent(bench):
    for n, q, lots in ((12, 0.3, 20_000), (300, 0.5, 2000)):
        seen, variance = _included(PoissonSampler(q), n, lots), n * q * (1 - q)
        z = (seen - q) / math.sqrt(q * (1 - q))
        yield np.abs(z.sum(axis=0)).max() / math.sqrt(lots)
        # off the diagonal standard normal if inclusions are independent
        pairs = z.T @ z / math.sqrt(lots)
        yield np.abs(pairs[~np.eye(n, dtype=bool)]).max()
        spread = ((seen.sum(axis=1) - n * q) ** 2).mean() / variance
        kurtosis = 3 + (1 - 6 * q * (1 - q)) / variance
        yield abs(spread - 1) / math.sqrt((kurtosis - 1) / lots)
        yield abs((z[1:] * z[:-1]).sum() / math.sqrt(n * lots))


@measures(
    f"{SAMPLING}.PoissonSampler",
    "F2",
    "binomial probabilities in exact fractions; absolute, of 2^64",
    2.0**-62,
)
def sizes_have_the_binomial_law(bench):
    cases = (0, 0.3), (12, 0.3), (40, 0.9), (7, 0.0), (7, 1.0), (5, 5e-324), (5, 1 - 2.0**-53)
    for n, q in (*cases, (300, 0.01)):
        least, cumulative = sampling._binomial(n, q)
        p, total = Fraction(q), Fraction(0)
        for k in range(n + 1):
            total += math.comb(n, k) * p**k * (1 - p) ** (n - k)
            got = 0 if k < least else cumulative[min(k - least, len(cumulative) - 1)]
            yield float(abs(Fraction(got, 2**64) - total))


@states(f"{SAMPLING}.PoissonSampler", "F2")
def weights_of_sizes(bench):
    least, cumulative = sampling._binomial(5, 0.3)
    w = np.diff([0.0] * (least + 1) + [float(share) for share in cumulative])
    yield Case({"w": w, "N": 5, "q": 0.3}, ranges={"k": range(5)})


in_words("mechanism.plan.Plan", "S1", "a sequence of events")


@measures(f"{SAMPLING}.FixedSizeSampler", "F1", "all subsets of 2 of 5, in standard errors", SIGMAS)
def fixed_size_subsets_are_uniform(bench):
    lots, p = 20_000, 1 / 10
    seen = _included(mechanism.FixedSizeSampler(5, 2), 5, lots)
    yield holds((seen.sum(axis=1) == 2).all())
    for subset in combinations(range(5), 2):
        count = seen[:, subset].all(axis=1).sum()
        yield abs(count - lots * p) / math.sqrt(lots * p * (1 - p))


@measures(f"{SAMPLING}.ShuffleSampler", "F1", "all orders of 3, in standard errors", SIGMAS)
def shuffled_epochs_are_permutations(bench):
    epochs = 12_000
    drawn = mechanism.ShuffleSampler(3, 2).lots(3, 2 * epochs, Streams(5).sampling)
    lots = [lot.tolist() for lot in drawn]
    orders = [tuple(two + one) for two, one in zip(lots[::2], lots[1::2])]
    counts = [orders.count(order) for order in permutations(range(3))]
    yield holds(sum(counts) == epochs)
    counts.append(sum(a == b for a, b in zip(orders[1:], orders)))
    yield from (abs(c - epochs / 6) / math.sqrt(epochs * 5 / 36) for c in counts)


def _differs(*pairs):
    return float(sum(got != expected for got, expected in pairs))


def _later(bench, sampler):
    """Lots of the second epoch."""
    epoch, stream = sampler.period, Streams(3).sampling
    whole = sampler.lots(9, 2 * epoch, stream)
    later = sampler.lots(9, epoch, Streams(3).sampling, epoch)
    return _differs(*zip(map(list, later), map(list, [*whole][epoch:])))


for _periodic in (mechanism.ShuffleSampler(9, 2), mechanism.BallsInBinsSampler(9, 2)):
    _card = f"{SAMPLING}.{type(_periodic).__name__}"
    measures(_card, "F1", "those drawn from the first step on", 0.0, "lots_of_a_later_epoch")(
        partial(_later, sampler=_periodic)
    )


def _event(bench, sampler, sampled, relation, charged):
    """charged: {steps: number of events}."""
    pairs = ((sampler.charges(RELEASE, steps), (sampled, n)) for steps, n in charged.items())
    return _differs((sampler.wrap(RELEASE), sampled), (sampler.relation, relation), *pairs)


RELEASE = Gaussian(3.0)
EPOCHS = {0: 0, 1: 1, 234: 1, 235: 2, 468: 2}  # begun after so many steps
FIXED, BINS = mechanism.FixedSizeSampler(1000, 20), mechanism.BallsInBinsSampler(60_000, 256)
for _sampler, _sampled, _relation, _charged in (
    (PoissonSampler(0.02), PoissonSampled(0.02, RELEASE), Relation.ADD_REMOVE, {7: 7}),
    (FIXED, FixedSizeSampled(1000, 20, RELEASE), Relation.REPLACE_ONE, {7: 7}),
    (BINS, BallsInBins(234, RELEASE), Relation.ADD_REMOVE, EPOCHS),
    (mechanism.ShuffleSampler(10, 4), RELEASE, Relation.ZERO_OUT, {}),
):
    _card = f"{SAMPLING}.{type(_sampler).__name__}"
    in_words(_card, "F1 S1", "a law of draws; names the event")
    _given = {"sampler": _sampler, "sampled": _sampled, "relation": _relation}
    measures(_card, "S1", "event, relation and number, by hand", 0.0, "event_of_a_sample")(
        partial(_event, **_given, charged=_charged)
    )


@measures(f"{SAMPLING}.ShuffleSampler", "S1", "largest number of lots that hold one example", 0.0)
def shuffling_is_charged_as_often_as_an_example_is_seen(bench):
    sampler = mechanism.ShuffleSampler(10, 4)
    for steps in range(10):  # whole epochs and broken ones
        drawn = sampler.lots(10, steps, Streams(6).sampling)
        seen = sum((np.bincount(lot, minlength=10) for lot in drawn), np.zeros(10, int))
        yield _differs((sampler.charges(RELEASE, steps), (RELEASE, int(seen.max()))))


@measures(
    f"{SAMPLING}.BallsInBinsSampler",
    "F1",
    "lots of epochs and pairs of examples, in standard errors",
    SIGMAS,
)
def bins_are_uniform_and_independent(bench):
    """Each lot's place in an epoch is what its examples drew; NaN, which fails, unless every
    example is in one lot.
    """
    epochs = 4000  # of four lots
    lots = _included(mechanism.BallsInBinsSampler(9, 2), 9, epochs * 4).reshape(epochs, 4, 9)
    yield holds((lots.sum(axis=1) == 1).all())
    many = mechanism.BallsInBinsSampler(8000, 1).lots(8000, 8000, Streams(3).sampling)
    yield holds(sorted(np.concatenate(list(many))) == list(range(8000)))
    z = (lots - 0.25) / math.sqrt(0.25 * 0.75)
    yield np.abs(z.sum(axis=0)).max() / math.sqrt(epochs)
    # of a pair: 12/3 with chance 1/4, else -4/3
    pairs = np.einsum("eta,etb->ab", z, z) / math.sqrt(epochs * 16 / 3)
    yield np.abs(pairs[~np.eye(9, dtype=bool)]).max()
    yield np.abs(np.einsum("eta,eta->a", z[1:], z[:-1])).max() / math.sqrt(epochs * 16 / 3)


def _values(bench, schedule, steps):
    yield Case({**vars(schedule), "f": schedule}, ranges={"step": steps})


for _schedule, _steps in (
    (mechanism.LinearDecay(0.1, 0.052, 10), (0, 1, 5, 9, 10, 11, 10**9)),
    (mechanism.LinearDecay(2.0, 3.0, 0), (0,)),
    (mechanism.Stages(6.0, 3.0, 4, 10), (0, 9, 10, 20, 30, 39, 40, 10_000)),
):
    _card = f"mechanism.schedule.{type(_schedule).__name__}"
    states(_card, "F1", EXACT, "values")(partial(_values, schedule=_schedule, steps=_steps))


@measures("mechanism.plan.Plan", "S1", "charges one step at a time", 0.0)
def charges_equal_a_loop_over_steps(bench):
    """Each step's own event, for a constant plan and one whose noise falls; merged, none lost, in
    order.
    """
    falling = mechanism.LinearDecay(3.0, 1.0, 4)
    for sigma, sigmas in ((2.0, [2.0] * 9), (falling, [*map(falling, range(9))])):
        plan = Plan(PoissonSampler(0.1), Sanitizer(flat_group(KEYS, 1.0, sigma)), 9, 50)
        factor = plan.products.factor
        expected = [PoissonSampled(0.1, Gaussian(sigma / factor)) for sigma in sigmas]
        for start, stop in ((0, 9), (2, 7), (5, 5)):
            got = [event for event, times in plan.charges(start, stop) for _ in range(times)]
            yield _differs((got, expected[start:stop]))
        got = [event for event, times in plan.ledger().items() for _ in range(times)]
        yield _differs((got, expected), (plan.relation, Relation.ADD_REMOVE))


class _NotQuiteGaussian(Sanitizer):
    def variation(self):
        return TotalVariation(2.0**-64, 30)


@measures("mechanism.plan.Plan", "S1", "distances added up step by step, unsampled", 0.0)
def every_step_is_charged_its_distance(bench):
    """Beside the sampled event; with shuffled lots for all steps of each epoch begun."""
    groups, shuffled = flat_group(KEYS, 1.0, 2.0), mechanism.ShuffleSampler
    for sampler, lots in ((PoissonSampler(0.1), 9), (shuffled(10, 4), 9), (shuffled(10, 5), 10)):
        kinds, lot = (Sanitizer, _NotQuiteGaussian), sampler.lot_sizes(10)[1]
        charges = [Plan(sampler, kind(groups), 9, lot).charges(0, 9) for kind in kinds]
        ((event, times),), ((both, again),) = charges
        sampled, distance = both.events
        yield _differs((again, times), (sampled, event), (distance.tau, 2.0**-64))
        yield _differs((distance.count * again, 30 * lots))
