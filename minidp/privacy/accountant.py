"""The base of all accountants: walks the event tree, composes in one line, and refuses what it
cannot bound.
"""

import math
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from ..errors import ParameterError, UnsupportedEventError
from ..util.validate import non_negative_finite, one_of, open_probability
from .bound import Bound, Exposed
from .events import (
    ApproximateDP,
    Event,
    Gaussian,
    NeighbouringRelation,
    NonPrivate,
    PoissonSampled,
)
from .events.base import check_releases
from .ladder import Parts, on_ladder
from .ledger import Ledger

COVERED = 1e-6  # of delta: up to this share pays for rare releases, which need no cost curve then
NOTHING = Bound(0.0, 0.0, 0.0)
MOST_COSTS = 2**11  # cost curves in the cache of one accountant


def _exposure(parts):
    """1 - prod (1 - share)^count, rounded up: the probability that the example is in any lot."""
    if any(event.share == 1 for event, _ in parts):
        return 1.0
    exposed = -math.expm1(math.fsum(n * math.log1p(-event.share) for event, n in parts))
    return min(1.0, math.nextafter(exposed * (1 + 1e-14), math.inf)) if parts else 0.0


def _pure_epsilon(parts):
    """The sum of the pure epsilons, rounded up; infinite if a release has none."""
    if any(event.pure_epsilon is None for event, _ in parts):
        return math.inf
    return math.fsum(event.pure_epsilon * n for event, n in parts) * (1 + 1e-14)


class Charged(NamedTuple):
    """A ledger in the form that accountants compute with."""

    parts: list[tuple[Event, int]]  # the primitives with a cost curve, in a fixed order
    exposure: float  # the probability that a release gives everything away

    @property
    def lost(self) -> bool:
        """True if some release has no noise at all."""
        return any(isinstance(event, NonPrivate) for event, _ in self.parts)


class Accountant:
    """Base of the accountants. They read a ledger without changing it, so that all can read the
    same run.

    A subclass gives `name`, `short`, `note`, `since`, `kind`, `covers`, `cost_curve`, `epsilon_of`
    and `delta_of`; a line of `accountant_list.pyi` makes it one of the library's. `kind` is
    "bound" if upper is proved, "approximation" if it is only a limit or an estimate, "comparison"
    if it guarantees nothing. An event without a theorem raises UnsupportedEventError, and a loss
    of precision NumericalBoundError. The delta of ApproximateDP is taken out of the ledger before
    a subclass sees it (`Exposed`).

    Bound
        Of every accountant whose kind is "bound":
        [C1]  epsilon(t) = min(epsilon'(t), sum_i n_i e_i), delta(E) = 0 where E >= sum_i n_i
              e_i    epsilon' of `epsilon_of` at delta = t, where each release i is e_i-DP, made n_i
              times
        [C2]  D = 1 - prod_i (1 - q_i)^n_i, delta(E) = min(delta'(E), D), epsilon(t) = 0 where t >=
              D    delta' of `delta_of`, q_i the share sampled
        [C3]  epsilon(t) = epsilon'((t - D) / (1 - D)) where D < 1e-6 t    epsilon' of the ledger
              without rare releases, whose D this is, as in `Exposed`

    Source
        [C1]  Dwork, Roth 2014, Theorem 3.14
        [C2]  own derivation: with probability 1 - D the example is in no lot, and then nothing
              depends on it
        [C3]  own derivation: `Exposed`, if each of these releases is assumed to give everything
              away
    """

    name = ""  # in JSON
    short = ""  # what people read and type, if it is not the name
    note = ""  # of its rows in tables
    kind = "bound"
    since = "0.1.0"  # the first version of minidp whose results have this accountant
    one_sided = True  # no lower end for sampled lots, so that lots of schedules may be rounded up

    def __init__(self, relation: NeighbouringRelation = NeighbouringRelation.ADD_REMOVE):
        one_of(tuple(NeighbouringRelation), relation=relation)
        self.relation = relation
        self._costs: dict[Any, Any] = {}

    @classmethod
    def called(cls, exact: bool = False) -> str:
        """The name that people read. An approximation is called one, unless it is `exact` because
        nothing is sampled.
        """
        return cls.short or cls.name

    def covers(self, primitive: Event) -> bool:
        """True if there is a theorem for this primitive. By default that is pure DP, and Gaussian
        noise on all rows or on Poisson lots.
        """
        if primitive.pure_epsilon is not None:
            return True
        known = isinstance(primitive, (Gaussian, PoissonSampled))
        return known and isinstance(primitive.noise, Gaussian)

    def cost_curve(self, event: Event, grid: Any) -> Any:
        """The cost of one primitive event on a hashable grid (orders, losses, ...): an array, or
        any value for which + composes and * repeats.
        """
        raise NotImplementedError

    def epsilon_of(self, parts: Parts, delta: float) -> Bound:
        """`epsilon` over (primitive, count) pairs, none of them NonPrivate."""
        raise NotImplementedError

    def delta_of(self, parts: Parts, epsilon: float) -> Bound:
        """`delta` over (primitive, count) pairs, none of them NonPrivate."""
        raise NotImplementedError

    def composed(self, parts: Parts, grid: Any) -> Any:
        """The sum of the parts' cost curves on the grid."""
        with np.errstate(over="ignore"):  # infinity is an answer
            return reduce(add, (self.cached_cost(event, grid) * count for event, count in parts))

    def epsilon(self, ledger: Ledger, delta: float) -> Bound:
        """Bound on the epsilon for which the ledger is (epsilon, delta)-DP. delta is in (0, 1), or
        0 if every event is pure.
        """
        self._check(ledger)
        if delta == 0:
            return self._pure(ledger)
        open_probability(delta=delta)
        charged = self._charged(ledger)
        if charged.lost:
            return Bound(math.inf, math.inf, math.inf)
        left = Exposed(charged.exposure).left(delta)
        rare, parts = self._rare(charged.parts, left or delta)
        left = Exposed(_exposure(rare)).left(left)  # [C3]
        if not left:  # delta pays less than D; the lower end may be finite
            return Bound(self._capped(parts, delta).lower, math.inf, math.inf)
        known = self._capped(parts, left)
        if left == delta:
            return known
        # lower end: rare releases may have cost nothing, so that the others have all of delta
        return replace(known, lower=known.lower and self._capped(parts, delta).lower)

    def _pure(self, ledger):
        """epsilon at delta 0. Raises ParameterError if an event is not pure."""
        if self.kind != "bound":
            raise UnsupportedEventError(f"{self.called()}: no bound, and so nothing at delta 0")
        pure = _pure_epsilon(list(self.merged(ledger).items()))
        if pure == math.inf:
            raise ParameterError(
                "expected delta=0 in (0, 1): only a ledger of pure events has an epsilon at 0"
            )
        return Bound(None, math.inf, math.inf).at_most(pure)  # [C1]

    def delta(self, ledger: Ledger, epsilon: float) -> Bound:
        """Bound on the delta for which the ledger is (epsilon, delta)-DP; epsilon at least 0,
        finite.
        """
        non_negative_finite(epsilon=epsilon)
        self._check(ledger)
        charged = self._charged(ledger)
        if charged.lost:
            return Bound(0.0, 1.0, 1.0)
        pure = _pure_epsilon(charged.parts)
        cap = self._cap(_exposure(charged.parts), 0.0 if pure <= epsilon else math.inf)
        known = NOTHING
        if charged.parts and cap > 0:
            known = self.delta_of(charged.parts, epsilon).at_most(cap)
        if charged.exposure:
            known = Exposed(charged.exposure).delta(known)
        return known

    def _rare(self, parts, delta):
        """(rare releases that delta pays for, other releases); only a bound has rare ones."""
        rare: list[tuple[Event, int]] = []
        if self.kind != "bound":
            return rare, parts
        by_share = sorted(parts, key=lambda part: _exposure([part]))
        for part in by_share:
            if _exposure([*rare, part]) > COVERED * delta:
                break
            rare.append(part)
        return rare, by_share[len(rare) :] if rare else parts

    def _capped(self, parts, delta):
        """Epsilon of the parts, limited by the caps that need no cost curve."""
        if not parts:
            return NOTHING
        no_part = 0.0 if _exposure(parts) <= delta else math.inf
        cap = self._cap(_pure_epsilon(parts), no_part)
        if cap <= 0:
            return NOTHING
        return self.epsilon_of(parts, delta).at_most(cap)

    def _cap(self, *caps):
        """The smallest of these caps, which hold for every bound; no cap for other kinds."""
        return min(caps) if self.kind == "bound" else math.inf  # [C1] [C2]

    def cached_cost(self, event: Event, grid: Any) -> Any:
        """`cost_curve`, computed once for each event and grid."""
        key = (event, grid)
        if key not in self._costs:
            if len(self._costs) > MOST_COSTS:
                self._costs.clear()
            self._costs[key] = self.cost_curve(event, grid)
        return self._costs[key]

    def _charges(self, ledger):
        """The (event, count) pairs that this accountant reads from a ledger."""
        return ledger.items()

    def merged(self, ledger: Ledger) -> dict[Event, int]:
        """{primitive: count} of a ledger."""
        merged: dict[Event, int] = {}
        for event, count in self._charges(ledger):
            for primitive, n in event.primitives(count):
                merged[primitive] = merged.get(primitive, 0) + n
                check_releases(primitive, merged[primitive])
        return merged

    def _check(self, ledger):
        """Raise ParameterError unless this is a ledger of the accountant's relation."""
        if not isinstance(ledger, Ledger):
            raise ParameterError(
                f"{self.called()}: expected a Ledger, got {ledger!r:.200}; record events with "
                f"ledger = Ledger(); ledger.append(event, count)"
            )
        if ledger.relation is not self.relation:
            raise ParameterError(
                f"expected a ledger under {self.relation.name}, got one under "
                f"{ledger.relation.name}; construct the accountant with that relation"
            )

    def _charged(self, ledger):
        """The Charged of a ledger; UnsupportedEventError unless this accountant covers all."""
        merged = self.merged(ledger)
        for event in merged:
            if not self._bounds(event):
                raise UnsupportedEventError(
                    f"{self.called()}: no theorem for {event.in_words} under "
                    f"{self.relation.name}; ask another accountant"
                )
        given_away = [part for part in merged.items() if isinstance(part[0], ApproximateDP)]
        # sorted, so that the order of the events does not change the rounding; large counts are
        # rounded up
        parts = sorted(
            (
                (event, n if n <= 2**53 else math.nextafter(float(n), math.inf))
                for event, n in merged.items()
                if n > 0 and event.pure_epsilon != 0 and not isinstance(event, ApproximateDP)
            ),
            key=repr,
        )
        if self.one_sided:
            parts = on_ladder(parts, dominating=True)
        return Charged(parts, _exposure(given_away))

    def _bounds(self, primitive):
        return isinstance(primitive, (ApproximateDP, NonPrivate)) or self.covers(primitive)
