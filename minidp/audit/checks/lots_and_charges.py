"""Checks of samplers, schedules and the plan."""

import math
from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations, product

import numpy as np

from ... import mechanism
from ...mechanism import Plan, PoissonSampler, Sanitizer, flat_group, sampling
from ...privacy.events import (
    Gaussian,
    PoissonSampled,
)
from ...privacy.events import NeighbouringRelation as Relation
from ...streams import Streams
from ..equation import Case
from . import holds, in_words, measures, states

EXACT, SIGMAS = 1e-12, 6.0  # a right implementation exceeds six standard errors once in 500 million
SAMPLING = "mechanism.sampling"
KEYS = (("one", "W"), ("one", "b"), ("two", "W"))


def _patterns(bench, sampler, examples, chances):
    """How often each pair of successive epochs is drawn, in standard errors.

    chances: {the lots of an epoch: its chance}, of all epochs that there are.
    """
    epochs, length = 12_000, len(next(iter(chances)))
    drawn = sampler.lots(examples, epochs * length, Streams(3).sampling)
    lots = [tuple(lot.tolist()) for lot in drawn]
    seen = [tuple(lots[at : at + length]) for at in range(0, len(lots), length)]
    yield holds(set(seen) == set(chances))
    counts = Counter(zip(seen, seen[1:]))
    for pair in product(chances, repeat=2):
        p = chances[pair[0]] * chances[pair[1]]
        yield abs(counts[pair] - (epochs - 1) * p) / math.sqrt(epochs * p * (1 - p))


FEW = [each for size in range(5) for each in combinations(range(4), size)]
for _sampler, _examples, _chances in (
    (PoissonSampler(0.4), 4, {(lot,): 0.4 ** len(lot) * 0.6 ** (4 - len(lot)) for lot in FEW}),
    (
        mechanism.ShuffleSampler(3, 2),
        3,
        {(order[:2], order[2:]): 1 / 6 for order in permutations(range(3))},
    ),
):
    _card = f"{SAMPLING}.{type(_sampler).__name__}"
    _how = {"sampler": _sampler, "examples": _examples, "chances": _chances}
    measures(_card, "F1", "all pairs of epochs, in standard errors", SIGMAS, "law_of_lots")(
        partial(_patterns, **_how)
    )


@measures(f"{SAMPLING}.PoissonSampler", "F1", "their number, in standard errors", SIGMAS)
def inclusions_of_many_examples(bench):
    lots = PoissonSampler(0.5).lots(3000, 200, Streams(3).sampling)
    return abs(sum(map(len, lots)) - 300_000) / math.sqrt(150_000)


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


@measures(f"{SAMPLING}.ShuffleSampler", "F1", "those drawn from the first step on", 0.0)
def lots_of_a_later_epoch(bench):
    sampler, stream = mechanism.ShuffleSampler(9, 2), Streams(3).sampling
    epoch = sampler.period
    whole = [*map(list, sampler.lots(9, 2 * epoch, stream))]
    later = [*map(list, sampler.lots(9, epoch, stream, epoch))]
    return holds(later == whole[epoch:])


def _event(bench, sampler, sampled, relation, charged):
    """charged: {steps: number of events}."""
    yield holds((sampler.wrap(RELEASE), sampler.relation) == (sampled, relation))
    for steps, number in charged.items():
        yield holds(sampler.charges(RELEASE, steps) == (sampled, number))


RELEASE = Gaussian(3.0)
for _sampler, _sampled, _relation, _charged in (
    (PoissonSampler(0.02), PoissonSampled(0.02, RELEASE), Relation.ADD_REMOVE, {7: 7}),
    (mechanism.ShuffleSampler(10, 4), RELEASE, Relation.ZERO_OUT, {0: 0, 1: 1, 3: 1, 4: 2}),
):
    _card = f"{SAMPLING}.{type(_sampler).__name__}"
    in_words(_card, "F1 S1", "a law of draws; names the event")
    _given = {"sampler": _sampler, "sampled": _sampled, "relation": _relation}
    measures(_card, "S1", "event, relation and number, by hand", 0.0, "event_of_a_sample")(
        partial(_event, **_given, charged=_charged)
    )


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
            yield holds(got == expected[start:stop])
        yield holds([*plan.ledger().items()] == plan.charges(0, 9))
