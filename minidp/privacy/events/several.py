"""Several events: in sequence, the same one repeated, and a search that keeps the best run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from ...util.validate import MOST_128_BITS, count, in_range
from .base import Event, check_event, check_releases, number


@dataclass(frozen=True)
class Composed(Event):
    """All of the events, over the same data set; later ones may depend on earlier outputs."""

    events: Sequence[Event]

    def __post_init__(self):
        object.__setattr__(self, "events", tuple(self.events))
        for event in self.events:
            check_event("Composed", event)

    @property
    def parts(self):
        return self.events

    def primitives(self, relation, count=1):
        for event in self.events:
            yield from event.primitives(relation, count)


@dataclass(frozen=True)
class Repeated(Event):
    """`event`, count times in sequence."""

    event: Event
    count: int = field(metadata=number(partial(count, 0, MOST_128_BITS), int))

    def primitives(self, relation, count=1):
        check_releases(self.event, count * self.count)
        yield from self.event.primitives(relation, count * self.count)


@dataclass(frozen=True)
class RandomlyStopped(Event):
    """A whole hyper-parameter search: the best of K independent runs of `event`, each with settings
    drawn at random.

    K has the truncated negative binomial distribution with shape eta > -1 and parameter gamma in
    (0, 1] (eta = 1 geometric, eta = 0 logarithmic; gamma = 1 means one run), and must be drawn
    before, and kept independent of, everything else. `event` is what one run releases.
    """

    event: Event
    eta: float = field(
        metadata=number(partial(in_range, -1, math.inf, open_low=True, open_high=True))
    )
    gamma: float = field(metadata=number(partial(in_range, 0, 1, open_low=True)))

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

    def primitives(self, relation, count=1):
        # one run, whatever it finds, is the run
        return (self.event if self.gamma == 1 else super()).primitives(relation, count)
