"""The privacy cost of a hyper-parameter search: Appendix D of the paper, and later theorems."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..util.validate import in_range, non_negative_finite, one_of, open_probability
from .accountant import total_variation
from .events import (
    Composed,
    Event,
    NeighbouringRelation,
    Repeated,
    TotalVariation,
)
from .ledger import Ledger
from .searches import OneOf, PoissonStopped, RandomlyStopped

LAWS = ("geometric", "poisson")
MOST_RUNS = 1e6  # on average
# a Poisson number is a sum of numbers of this mean, each as close to its law: rounding moves the
# arrival times below 32, rarely more than a hundred, by less than 2^-41
POISSON_PART, POISSON_TAU = 32.0, 2.0**-40


@dataclass(frozen=True)
class SelectionCost:
    """All quantities of Theorem D.1 for one search."""

    calls: float  # runs of M, at most
    accuracy_loss: float  # correct validation examples lost, at most, with probability 1 - delta
    epsilon: float  # eps + 8 eps', for M run on the data that select it
    epsilon_validation: float  # max(eps, 8 eps'), where training and validation data are disjoint


def theorem_d1(
    epsilon: float, epsilon_prime: float, delta: float, good_share: float
) -> SelectionCost:
    r"""The cost of choosing among runs of a pure epsilon-DP mechanism by noisy accuracy.

    Bound
        With p = good_share, the share of settings that are good enough:
        [C1]  calls = (1/(epsilon' delta p))^2 ln(1/(epsilon' delta p))
        [C2]  loss = (4/epsilon') ln(1/(epsilon' delta p))    of accuracy
        [C3]  epsilon_shared = epsilon + 8 epsilon', epsilon_apart = max(epsilon, 8
              epsilon')    apart where training and validation data are disjoint

    Valid for
        pure epsilon-DP only, epsilon' in (0, 1/2], delta in (0, 1), p in (0, 1]

    Source
        [C1] [C2]  Abadi et al. 2016, Theorem D.1 (after Gupta, Ligett, McSherry, Roth, Talwar 2010)
        [C3]  the same, and the remark after it
    """
    non_negative_finite(epsilon=epsilon)
    in_range(0, 0.5, open_low=True, epsilon_prime=epsilon_prime)
    open_probability(delta=delta)
    in_range(0, 1, open_low=True, good_share=good_share)
    inverse = 1 / (epsilon_prime * delta * good_share)
    calls = inverse**2 * math.log(inverse)  # [C1]
    loss = 4 / epsilon_prime * math.log(inverse)  # [C2]
    return SelectionCost(
        calls, loss, epsilon + 8 * epsilon_prime, max(epsilon, 8 * epsilon_prime)
    )  # [C3]


def run_event(ledger: Ledger) -> Event:
    """What a whole run releases that a ledger describes, as one event."""
    return Composed(tuple(Repeated(event, count) for event, count in ledger.items()))


def without_variation(event: Event) -> Event:
    """The event without what describes the law of its noise in exact arithmetic."""
    if isinstance(event, Repeated):
        return Repeated(without_variation(event.event), event.count)
    if not isinstance(event, Composed):
        return event
    left = (each for each in event.events if not isinstance(each, TotalVariation))
    return Composed(tuple(map(without_variation, left)))


def tuning_event(
    relation: NeighbouringRelation,
    candidates: Sequence[Event],
    score: Event | None = None,
    mean: float | None = None,
    law: str = "geometric",
) -> Event:
    r"""The event of a search that releases the best of its runs, and nothing else.

    candidates  the event of one run of each public setting
    score       the event of a noisy score of one run, on examples that are held out by a coin for
                each and not trained on; None for scores on public data
    mean        None: every candidate runs once. A number: K runs, K drawn first from the `law` of
                that mean, "geometric" or "poisson", and each run draws its candidate
    Exact arithmetic's total variation leaves the search; it is that of `mean` runs on average.

    The draw of a Poisson K is charged, as POISSON_TAU for each part.

    Bound
        [C1]  T' = ceil(m) (max_c T_c + S)    T_c of a run of candidate c, S of a score, m runs

    Source
        [C1]  own derivation: a coupling; with probability 1 - T' at least no run's noise differs

    >>> from minidp.privacy import Gaussian, Ledger, NeighbouringRelation, RenyiAccountant
    >>> runs = [Gaussian(20.0), Gaussian(25.0)]
    >>> ledger = Ledger()
    >>> ledger.append(tuning_event(NeighbouringRelation.ADD_REMOVE, runs, mean=10))
    >>> round(RenyiAccountant().epsilon(ledger, 1e-5).upper, 3)
    0.419
    """
    one_of(LAWS, law=law)
    scores = [] if score is None else [score]
    exact = [total_variation(Ledger(relation, [(event,)])) for event in (*candidates, *scores)]
    runs = [without_variation(event) for event in candidates]
    scores = [without_variation(event) for event in scores]
    beside = []
    if mean is None:
        event: Event = Composed(tuple(runs))
        if scores:
            event = OneOf((event, Repeated(scores[0], len(runs))))
    elif law == "poisson":
        event = PoissonStopped(OneOf((*runs, *scores)), mean)
        beside.append(TotalVariation(POISSON_TAU, math.ceil(mean / POISSON_PART)))
    else:
        event = RandomlyStopped(OneOf((*runs, *scores)), 1.0, geometric_gamma(mean))
    if variation := max(exact[: len(runs)]) + sum(exact[len(runs) :]):
        many = len(runs) if mean is None else math.ceil(mean)
        beside.append(TotalVariation(math.nextafter(variation, 1.0), many))  # [C1]
    return Composed((event, *beside)) if beside else event


def geometric_gamma(mean: float) -> float:
    """The parameter 1 / mean of a geometric law, rounded up to a multiple of 2^-53, so that uniform
    numbers that are multiples of it are below it with exactly that probability.
    """
    in_range(1, MOST_RUNS, runs=mean)
    return math.ceil(2**53 / mean) / 2**53
