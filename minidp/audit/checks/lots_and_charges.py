"""Checks of samplers, schedules and the plan."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np

from ...mechanism import (
    LinearDecay,
    Plan,
    PoissonSampler,
    Sanitizer,
    ShuffleSampler,
    Stages,
    flat_group,
    samplers,
)
from ...privacy.events import (
    Gaussian,
    PoissonSampled,
)
from ...privacy.events import NeighbouringRelation as Relation
from ...streams import Streams
from ..equation import Case
from . import holds, in_words, measures, states

SIGMAS = 6.0  # a right implementation exceeds six standard errors once in 500 million
POISSON, SHUFFLED = "mechanism.samplers.PoissonSampler", "mechanism.samplers.ShuffleSampler"
RELEASE = Gaussian(3.0)
KEYS = (("one", "W"), ("one", "b"), ("two", "W"))


def _law_of_lots(sampler, examples, chances):
    """Deviation of the counts of each pair of successive epochs, in standard errors.

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


@measures(POISSON, "F1", "all pairs of epochs, in standard errors", SIGMAS)
def law_of_poisson_lots(bench):
    lots = [each for size in range(5) for each in combinations(range(4), size)]
    chances = {(lot,): 0.4 ** len(lot) * 0.6 ** (4 - len(lot)) for lot in lots}
    return _law_of_lots(PoissonSampler(0.4), 4, chances)


@measures(SHUFFLED, "F1", "all pairs of epochs, in standard errors", SIGMAS)
def law_of_shuffled_lots(bench):
    chances = {(order[:2], order[2:]): 1 / 6 for order in permutations(range(3))}
    return _law_of_lots(ShuffleSampler(3, 2), 3, chances)


@measures(POISSON, "F1", "their number, in standard errors", SIGMAS)
def inclusions_of_many_examples(bench):
    lots = PoissonSampler(0.5).lots(3000, 200, Streams(3).sampling)
    return abs(sum(map(len, lots)) - 300_000) / math.sqrt(150_000)


@measures(
    POISSON,
    "F2",
    "binomial probabilities in exact fractions; absolute, of 2^64",
    2.0**-62,
)
def sizes_have_the_binomial_law(bench):
    cases = (0, 0.3), (12, 0.3), (40, 0.9), (7, 0.0), (7, 1.0), (5, 5e-324), (5, 1 - 2.0**-53)
    for n, q in (*cases, (300, 0.01)):
        least, cumulative = samplers._binomial(n, q)
        p, total = Fraction(q), Fraction(0)
        for k in range(n + 1):
            total += math.comb(n, k) * p**k * (1 - p) ** (n - k)
            got = 0 if k < least else cumulative[min(k - least, len(cumulative) - 1)]
            yield float(abs(Fraction(got, 2**64) - total))


@states(POISSON, "F2")
def weights_of_sizes(bench):
    least, cumulative = samplers._binomial(5, 0.3)
    w = np.diff([0.0] * (least + 1) + [float(share) for share in cumulative])
    yield Case({"w": w, "N": 5, "q": 0.3}, ranges={"k": range(5)})


in_words("mechanism.plan.Plan", "S1", "a sequence of events")


@measures(SHUFFLED, "F1", "those drawn from the first step on", 0.0)
def lots_of_a_later_epoch(bench):
    sampler, stream = ShuffleSampler(9, 2), Streams(3).sampling
    epoch = sampler.period
    whole = [*map(list, sampler.lots(9, 2 * epoch, stream))]
    later = [*map(list, sampler.lots(9, epoch, stream, epoch))]
    return holds(later == whole[epoch:])


@measures(POISSON, "S1", "event, relation and number, by hand", 0.0)
def charges_of_poisson_lots(bench):
    sampler, sampled = PoissonSampler(0.02), PoissonSampled(0.02, RELEASE)
    yield holds((sampler.wrap(RELEASE), sampler.relation) == (sampled, Relation.ADD_REMOVE))
    yield holds(sampler.charges(RELEASE, 7) == (sampled, 7))


@measures(SHUFFLED, "S1", "event, relation and number, by hand", 0.0)
def charges_of_shuffled_lots(bench):
    """One charge for each epoch begun."""
    sampler = ShuffleSampler(10, 4)
    yield holds((sampler.wrap(RELEASE), sampler.relation) == (RELEASE, Relation.ZERO_OUT))
    for steps, number in {0: 0, 1: 1, 3: 1, 4: 2}.items():
        yield holds(sampler.charges(RELEASE, steps) == (RELEASE, number))


in_words(POISSON, "F1 S1", "a law of draws; names the event")
in_words(SHUFFLED, "F1 S1", "a law of draws; names the event")


def _values(schedule, *steps):
    return Case({**vars(schedule), "f": schedule}, ranges={"step": steps})


@states("mechanism.schedule.LinearDecay", "F1")
def linear_decay(bench):
    yield _values(LinearDecay(0.1, 0.052, 10), 0, 1, 5, 9, 10, 11, 10**9)
    yield _values(LinearDecay(2.0, 3.0, 0), 0)


@states("mechanism.schedule.Stages", "F1")
def stages(bench):
    yield _values(Stages(6.0, 3.0, 4, 10), 0, 9, 10, 20, 30, 39, 40, 10_000)


@measures("mechanism.plan.Plan", "S1", "charges one step at a time", 0.0)
def charges_equal_a_loop_over_steps(bench):
    """Each step's own event, for a constant plan and one whose noise falls; merged, none lost, in
    order.
    """
    falling = LinearDecay(3.0, 1.0, 4)
    for sigma, sigmas in ((2.0, [2.0] * 9), (falling, [*map(falling, range(9))])):
        plan = Plan(PoissonSampler(0.1), Sanitizer(flat_group(KEYS, 1.0, sigma)), 9, 50)
        factor = plan.products.factor
        expected = [PoissonSampled(0.1, Gaussian(sigma / factor)) for sigma in sigmas]
        for start, stop in ((0, 9), (2, 7), (5, 5)):
            got = [event for event, times in plan.charges(start, stop) for _ in range(times)]
            yield holds(got == expected[start:stop])
        yield holds([*plan.ledger().items()] == plan.charges(0, 9))
