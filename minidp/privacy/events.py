"""Events: what was released, kept apart from what it costs.

An event says exactly what was done and nothing about epsilon; accountants read events. The meaning
of an event never changes once it is written down, and an accountant refuses what it does not know.

A *noise multiplier* is the noise's standard deviation (Gaussian) or scale (Laplace) divided by the
sensitivity of the released quantity under the ledger's one neighbouring relation. 0 means no noise,
so epsilon is infinite; infinity means that nothing was released.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from ..errors import ParameterError
from ..util.validate import MOST_128_BITS, in_range, non_negative, non_negative_finite, probability
from ..util.validate import count as check_count


class NeighbouringRelation(Enum):
    """When two data sets count as neighbours.

    ADD_REMOVE   one example is added or removed (the relation of Abadi et al. 2016)
    REPLACE_ONE  one example is exchanged for another; the size stays
    ZERO_OUT     one example is exchanged for one that contributes exactly zero
    """

    ADD_REMOVE = "add_remove"
    REPLACE_ONE = "replace_one"
    ZERO_OUT = "zero_out"


# check and plain type of each number in an event: equal events must have equal JSON, built from 4,
# 4.0 or NumPy's
_NUMBERS = {
    "noise_multiplier": (non_negative, float),
    "sampling_probability": (probability, float),
    "epsilon": (non_negative_finite, lambda value: value),
    "delta": (probability, float),
    "dataset_size": (partial(check_count, 1, MOST_128_BITS), int),
    "bins": (partial(check_count, 1, MOST_128_BITS), int),
    "lot_size": (partial(check_count, 0, MOST_128_BITS), int),
    "count": (partial(check_count, 0, MOST_128_BITS), int),
    "eta": (partial(in_range, -1, math.inf, open_low=True, open_high=True), float),
    "gamma": (partial(in_range, 0, 1, open_low=True), float),
    "tau": (partial(in_range, 0, 1, open_high=True), float),
}


@dataclass(frozen=True)
class Event:
    """Base of all events: frozen, hashable, and written to JSON under its class's name."""

    def __post_init__(self):
        for name, value in list(vars(self).items()):
            if name in _NUMBERS:
                check, plain = _NUMBERS[name]
                check(**{name: value})
                object.__setattr__(self, name, plain(value))
            elif name == "event":
                check_event(type(self).__name__, value)


def check_event(where: str, event: object) -> None:
    """Raise ParameterError, naming the caller, for what is no Event."""
    if not isinstance(event, Event):
        raise ParameterError(f"{where}: expected an Event, got {event!r}")


@dataclass(frozen=True)
class _Noise(Event):
    """Base of the events that add noise to a query's value."""

    noise_multiplier: float


class Gaussian(_Noise):
    """A query's value plus N(0, (noise_multiplier * L2 sensitivity)^2) on each coordinate."""


class Laplace(_Noise):
    """A query's value plus Laplace noise of scale noise_multiplier * L1 sensitivity:
    (1/multiplier)-DP.
    """


@dataclass(frozen=True)
class JointGaussian(Event):
    """Several Gaussians over the *same* examples: block l with its own sensitivity and multiplier
    s_l.

    Scaling block l by its noise shows that the whole is dominated like one Gaussian with
    `effective_noise_multiplier`. Sampling belongs around the joint event: charging each block as if
    it drew its own sample would understate epsilon.
    """

    noise_multipliers: Sequence[float]

    def __post_init__(self):
        values = tuple(self.noise_multipliers)
        if not values:
            raise ParameterError("JointGaussian: expected at least one noise multiplier, got none")
        for value in values:
            non_negative(noise_multiplier=value)
        object.__setattr__(self, "noise_multipliers", tuple(map(float, values)))

    @property
    def effective_noise_multiplier(self) -> float:
        """(sum_l s_l^-2)^(-1/2); 0 if any s_l is 0, infinity if all are."""
        return combined_noise_multiplier([(s, 1) for s in self.noise_multipliers])


@dataclass(frozen=True)
class PureDP(Event):
    """Any release that is epsilon-DP with delta 0, such as the exponential mechanism; unsampled."""

    epsilon: float


@dataclass(frozen=True)
class ApproximateDP(Event):
    """Any release that is (epsilon, delta)-DP, such as another library's; unsampled."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class TotalVariation(Event):
    """`count` released numbers, the law of each of which, given all before, is within total
    variation distance tau of the law that the events beside this one describe.

    It stands beside them, never inside a sampled lot or a search: Composed((PoissonSampled(q,
    Gaussian(s)), this)). It spends no epsilon by itself: accountants add (1 + e^epsilon) tau count
    to delta.
    """

    tau: float
    count: int


@dataclass(frozen=True)
class PoissonSampled(Event):
    """`event` over a lot that holds each example independently with probability
    sampling_probability.
    """

    sampling_probability: float
    event: Event


@dataclass(frozen=True)
class FixedSizeSampled(Event):
    """`event` over lot_size examples drawn uniformly without replacement from dataset_size."""

    dataset_size: int
    lot_size: int
    event: Event

    def __post_init__(self):
        super().__post_init__()
        in_range(0, self.dataset_size, lot_size=self.lot_size)


@dataclass(frozen=True)
class BallsInBins(Event):
    """`event` over each of `bins` lots, where every example is in exactly one of them, drawn
    uniformly and independently.

    One epoch; a new epoch draws all examples' lots again.
    """

    bins: int
    event: Event


@dataclass(frozen=True)
class Composed(Event):
    """All of the events, over the same data set; later ones may depend on earlier outputs."""

    events: Sequence[Event]

    def __post_init__(self):
        object.__setattr__(self, "events", tuple(self.events))
        for event in self.events:
            check_event("Composed", event)


@dataclass(frozen=True)
class Repeated(Event):
    """`event`, count times in sequence."""

    event: Event
    count: int


@dataclass(frozen=True)
class RandomlyStopped(Event):
    """A whole hyper-parameter search: the best of K independent runs of `event`, each with settings
    drawn at random.

    K has the truncated negative binomial distribution with shape eta > -1 and parameter gamma in
    (0, 1] (eta = 1 geometric, eta = 0 logarithmic; gamma = 1 means one run), and must be drawn
    before, and kept independent of, everything else. `event` is what one run releases.
    """

    event: Event
    eta: float
    gamma: float

    @property
    def expected_runs(self) -> float:
        """E K: eta (1-gamma) / (gamma (1 - gamma^eta)), or (1/gamma - 1) / ln(1/gamma) for eta =
        0.
        """
        if self.gamma == 1:
            return 1.0
        odds, log_gamma = 1 / self.gamma - 1, math.log(self.gamma)
        if self.eta == 0:
            return odds / -log_gamma
        return self.eta * odds / -math.expm1(self.eta * log_gamma)


@dataclass(frozen=True)
class NonPrivate(Event):
    """A release with no guarantee at all: epsilon is infinite."""


@dataclass(frozen=True)
class Unknown(Event):
    """Something happened that nobody can describe; every accountant refuses it."""


def combined_noise_multiplier(parts: Iterable[tuple[float, int]]) -> float:
    """The noise multiplier of Gaussians over the same examples: (sum n s^-2)^(-1/2) over pairs (s,
    n).
    """
    parts = [(s, n) for s, n in parts if n > 0 and s < math.inf]
    smallest = min((s for s, _ in parts), default=math.inf)
    if smallest in (0, math.inf) or len(parts) == 1 and parts[0][1] == 1:
        return float(smallest)
    return smallest / math.sqrt(math.fsum(n * (smallest / s) ** 2 for s, n in parts))


def pure_epsilon(event: Event) -> float | None:
    """The epsilon of a pure-DP primitive (PureDP; Laplace, sampled or not), None for any other."""
    if isinstance(event, PureDP):
        return event.epsilon
    if isinstance(event, Laplace):
        return 1 / event.noise_multiplier
    if isinstance(event, PoissonSampled) and isinstance(event.event, Laplace):
        unsampled = 1 / event.event.noise_multiplier
        return (
            unsampled
            if unsampled > 700
            else math.log1p(event.sampling_probability * math.expm1(unsampled))
        )
    return None


def share_of(event: Event) -> float:
    """A probability that an example has no part in the event with probability at least 1 minus this
    one.
    """
    if isinstance(event, ApproximateDP) and event.epsilon == 0:
        return event.delta
    return (
        share_and_noise(event)[0]
        if hasattr(event, "sampling_probability") or isinstance(event, FixedSizeSampled)
        else 1.0
    )


def share_and_noise(event: Event) -> tuple[float, float]:
    """(share of the examples in a lot, noise multiplier) of Gaussian or Laplace noise, sampled
    (share below 1) or not.
    """
    noise: Any = getattr(event, "event", event)
    if hasattr(event, "sampling_probability"):
        return event.sampling_probability, noise.noise_multiplier
    if isinstance(event, FixedSizeSampled):
        return event.lot_size / event.dataset_size, noise.noise_multiplier
    return 1.0, noise.noise_multiplier
