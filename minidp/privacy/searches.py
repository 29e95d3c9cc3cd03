"""Events of searches: one of several releases, and the best of a random number of runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

from ..util.validate import in_range, positive_finite
from .events import Composed, Event, Repeated
from .events.base import number
from .events.several import Several
from .ledger import Ledger

MOST_SIDES = 64  # of a ledger that are listed one by one


@dataclass(frozen=True)
class OneOf(Several):
    """One of the events, and which one does not depend on the data.

    Either each of them is over a part of its own of the data, and which part an example is in is
    decided for each by itself, such as by a coin; or one of them is drawn.
    """

    events: Sequence[Event]


class Stopped(Event):
    """A random number of runs of `event`."""

    event: Event

    @property
    def in_words(self) -> str:
        return f"a random number of runs of {self.event!r:.200}"


@dataclass(frozen=True)
class RandomlyStopped(Stopped):
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


@dataclass(frozen=True)
class PoissonStopped(Stopped):
    """As `RandomlyStopped`, with K from the Poisson distribution of mean `expected_runs`. Where K
    is 0 the search returns something that does not depend on the data.
    """

    event: Event
    expected_runs: float = field(metadata=number(positive_finite))


SEARCHES = {each.__name__: each for each in (OneOf, RandomlyStopped, PoissonStopped)}


def sides(ledger: Ledger) -> list[Ledger]:
    """Ledgers that have an event of each `OneOf` in its place, in all combinations; the ledger
    itself if it has none, or more than MOST_SIDES.

    A `OneOf` that is repeated, or inside a random search, stays: `RenyiAccountant` bounds it.
    """
    entries = (event if n == 1 else Repeated(event, n) for event, n in ledger.items())
    found = _sides(Composed(tuple(entries)))
    if len(found) == 1:
        return [ledger]
    return [Ledger(ledger.relation, [(side,)]) for side in found]


def _sides(event):
    if isinstance(event, OneOf):
        return [side for each in event.events for side in _sides(each)]
    if not isinstance(event, Composed):
        return [event]
    found = [_sides(each) for each in event.events]
    if math.prod(map(len, found)) > MOST_SIDES:
        return [event]
    return [Composed(events) for events in product(*found)]
