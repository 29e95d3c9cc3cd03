"""The base of all accountants: walks the event tree, composes in one line, and refuses what it
cannot bound.
"""

import math
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ..errors import NumericalBoundError, ParameterError, UnsupportedEventError
from ..util.validate import non_negative_finite, one_of, open_probability, shown
from .bound import Bound, Exposed, Within
from .events import (
    ApproximateDP,
    BallsInBins,
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    JointGaussian,
    Laplace,
    NeighbouringRelation,
    NonPrivate,
    PoissonSampled,
    PureDP,
    RandomlyStopped,
    Repeated,
    TotalVariation,
    combined_noise_multiplier,
    pure_epsilon,
    share_of,
)
from .ledger import Ledger

LEAST_NOISE = 1e-160  # below it epsilon leaves the range of float64
MOST_RELEASES = 10**300  # so that counts stay within float64
COVERED = 1e-6  # of delta: rarer releases are paid by it, and nothing else is asked about them
BESIDE = (TotalVariation, ApproximateDP)  # what costs delta alone: accountants never see it
Parts = Collection[tuple[Event, int]]  # (primitive, count) pairs


def total_variation(ledger: Ledger) -> float:
    """T, the sum of tau * count over the ledger's TotalVariation events, rounded up; 0 where there
    are none.
    """
    return variation_of(
        part for event, n in ledger.items() for part in primitives(event, ledger.relation, n)
    )


def variation_of(parts: Iterable[tuple[Event, int]]) -> float:
    """`total_variation` of (primitive, count) pairs."""
    exact = sum(
        Fraction(event.tau) * event.count * n
        for event, n in parts
        if isinstance(event, TotalVariation)
    )
    return math.nextafter(float(exact), math.inf) if exact else 0.0


def _exposure(parts):
    """The probability 1 - prod (1 - share)^count, rounded up, that the example is in any of the
    lots.
    """
    if any(share_of(event) == 1 for event, _ in parts):
        return 1.0
    exposed = -math.expm1(math.fsum(n * math.log1p(-share_of(event)) for event, n in parts))
    return min(1.0, math.nextafter(exposed * (1 + 1e-14), math.inf)) if parts else 0.0


def _pure_epsilon(parts):
    """The sum of the pure epsilons, rounded up; infinite where a release has none."""
    pure = [(pure_epsilon(event), n) for event, n in parts]
    return (
        math.inf
        if any(e is None for e, _ in pure)
        else math.fsum(e * n for e, n in pure) * (1 + 1e-14)
    )


def primitives(
    event: Event, relation: NeighbouringRelation, count: int = 1
) -> Iterator[tuple[Event, int]]:
    """The (event, count) pairs that an event tree comes down to, each sampled at most once.

    Gaussians over the same examples become one Gaussian: their adaptive composition is dominated by
    the Gaussian of multiplier (sum s^-2)^(-1/2) (Dong, Roth, Su 2022, Corollary 2), and sampling
    preserves domination (Zhu, Dong, Wang 2022, Theorem 11). Noise of 0 (or below LEAST_NOISE)
    becomes NonPrivate, infinite noise nothing. What gives itself away with probability d and is
    e-DP otherwise dominates (e, d)-DP (Kairouz, Oh, Viswanath 2015, Theorem 2): PureDP(e) and
    ApproximateDP(0, d), which is also what a sample without noise is, d its share.

    Raises UnsupportedEventError for sampling that does not belong to the relation, or a sampled
    composition of anything but Gaussians.
    """
    _check_count(event, count)
    if isinstance(event, (Gaussian, Laplace)):
        if event.noise_multiplier < LEAST_NOISE:
            yield NonPrivate(), count
        elif event.noise_multiplier < math.inf:
            yield event, count
    elif isinstance(event, ApproximateDP):
        yield from (
            (part, count)
            for part in (PureDP(event.epsilon), ApproximateDP(0.0, event.delta))
            if part not in (PureDP(0.0), ApproximateDP(0.0, 0.0))
        )
    elif isinstance(event, JointGaussian):
        yield from primitives(Gaussian(event.effective_noise_multiplier), relation, count)
    elif isinstance(event, Composed):
        for inner in event.events:
            yield from primitives(inner, relation, count)
    elif isinstance(event, Repeated):
        yield from primitives(event.event, relation, count * event.count)
    elif isinstance(event, RandomlyStopped) and event.gamma == 1:
        yield from primitives(event.event, relation, count)  # one run, whatever it finds
    elif isinstance(event, BallsInBins):
        if relation is NeighbouringRelation.REPLACE_ONE:
            raise _unsupported(
                event, relation, "balls in bins are bounded under ADD_REMOVE and ZERO_OUT"
            )
        for inner in _one_lot(event.event, relation):
            alone = event.bins == 1 or isinstance(inner, NonPrivate)
            yield inner if alone else replace(event, event=inner), count
    elif isinstance(event, (PoissonSampled, FixedSizeSampled)):
        # a zeroed example adds exactly zero to a sum, so ZERO_OUT meets the same pair as ADD_REMOVE
        poisson = isinstance(event, PoissonSampled)
        if poisson is (relation is NeighbouringRelation.REPLACE_ONE):
            why = "fixed-size sampling is bounded under REPLACE_ONE"
            if poisson:
                why = "Poisson sampling is bounded under ADD_REMOVE and ZERO_OUT"
            raise _unsupported(event, relation, why)
        if isinstance(event, PoissonSampled):
            drawn, of = event.sampling_probability, 1
        else:
            drawn, of = event.lot_size, event.dataset_size
        for inner in _one_lot(event.event, relation):
            if drawn == of:
                yield inner, count
            elif drawn > 0 and isinstance(inner, NonPrivate):
                yield ApproximateDP(0.0, drawn / of), count
            elif drawn > 0:
                yield replace(event, event=inner), count
    else:
        yield event, count  # a leaf: each accountant covers it or refuses it


def _one_lot(event, relation):
    """What is released from one lot, as at most one primitive."""
    parts = list(primitives(event, relation))
    if any(not isinstance(inner, (Gaussian, Laplace, NonPrivate)) for inner, _ in parts):
        raise _unsupported(
            event, relation, "only Gaussian and Laplace noise can be inside a sampled lot"
        )
    parts = [(inner, n) for inner, n in parts if n > 0]
    if sum(n for _, n in parts) <= 1:
        return [inner for inner, _ in parts]
    if any(isinstance(inner, NonPrivate) for inner, _ in parts):
        return [NonPrivate()]
    if all(isinstance(inner, Gaussian) for inner, _ in parts):
        return [
            Gaussian(combined_noise_multiplier([(inner.noise_multiplier, n) for inner, n in parts]))
        ]
    raise _unsupported(event, relation, "only Gaussians compose within one sampled lot")


def _check_count(event, count):
    if count > MOST_RELEASES:
        raise NumericalBoundError(
            f"expected at most 1e300 releases of {event!r:.80}, got {shown(count)}"
        )


def _unsupported(event, relation, why):
    return UnsupportedEventError(f"cannot bound {event!r} under {relation.name}: {why}")


class Accountant:
    """Base of the accountants: stateless over a ledger, so that one run is read by all of them.

    A subclass gives `name`, `kind`, `covers`, `cost_curve`, `to_epsilon` and `to_delta`. `kind` is
    "bound" when upper is proved, "approximation" when it is only a limit or estimate, "comparison"
    when it guarantees nothing. An event without a theorem raises UnsupportedEventError, and a loss
    of precision NumericalBoundError. TotalVariation and the delta of ApproximateDP are taken out of
    the ledger before a subclass sees it (`Within`, `Exposed`).

    Bound
        Of every accountant whose kind is "bound":
        [C1]  epsilon <= the sum of pure epsilons, where each release has one, and delta is 0 from
              there on
        [C2]  delta <= D = 1 - prod (1 - q_i)^n_i, q_i the share sampled; epsilon is 0 where delta
              >= D
        [C3]  releases of which D is below 1e-6 delta are left out, and D is taken from delta as in
              `Exposed`

    Source
        [C1]  Dwork, Roth 2014, Theorem 3.14
        [C2]  own derivation: with probability 1 - D the example is in no lot, and then nothing
              depends on it
        [C3]  own derivation: `Exposed`, each of these releases taken as if it gave itself away
    """

    name = ""
    kind = "bound"

    def __init__(self, relation: NeighbouringRelation = NeighbouringRelation.ADD_REMOVE):
        one_of(tuple(NeighbouringRelation), relation=relation)
        self.relation = relation
        self._costs: dict[Any, Any] = {}

    def covers(self, primitive: Event) -> bool:
        """Whether there is a theorem for this primitive; by default any noise, but Gaussian only in
        lots of fixed size or bins.
        """
        if isinstance(primitive, (FixedSizeSampled, BallsInBins)):
            return isinstance(primitive.event, Gaussian)
        if isinstance(primitive, PoissonSampled):
            primitive = primitive.event
        return isinstance(primitive, (Gaussian, Laplace, PureDP))

    def choose_grid(
        self, parts: Parts, *, epsilon: float | None = None, delta: float | None = None
    ) -> Hashable:
        """The grid (orders, losses, ...; hashable) for these (primitive, count) pairs and this
        target.
        """
        return None

    def cost_curve(self, event: Event, grid: Any) -> Any:
        """What one primitive event costs on the grid: an array, or any value in which + composes
        and * repeats.
        """
        raise NotImplementedError

    def to_epsilon(self, total: Any, grid: Any, delta: float) -> Bound:
        """Bound on epsilon at `delta`, from the composed curve."""
        raise NotImplementedError

    def to_delta(self, total: Any, grid: Any, epsilon: float) -> Bound:
        """Bound on delta at `epsilon`, from the composed curve."""
        raise NotImplementedError

    def supports(self, event: Event) -> bool:
        """Whether this accountant can bound the event under its relation."""
        try:
            self._checked(
                [
                    part
                    for part in primitives(event, self.relation)
                    if not isinstance(part[0], BESIDE)
                ]
            )
        except (UnsupportedEventError, NumericalBoundError):
            return False
        return True

    def epsilon(self, ledger: Ledger, delta: float) -> Bound:
        """Bound on the epsilon for which the ledger is (epsilon, delta)-DP; delta in (0, 1)."""
        open_probability(delta=delta)

        def read(parts, delta):
            rare, rest = [], []
            for part in (
                sorted(parts, key=lambda part: _exposure([part])) if self.kind == "bound" else ()
            ):
                left_out = not rest and _exposure([*rare, part]) <= COVERED * delta
                (rare if left_out else rest).append(part)
            if rare:
                return Exposed(lambda delta: read(rest, delta), _exposure(rare)).epsilon(
                    delta
                )  # [C3]
            return self._capped(
                parts,
                delta,
                self.epsilon_of,
                _pure_epsilon(parts),
                0.0 if _exposure(parts) <= delta else math.inf,
            )

        return self._answer(ledger, Bound(math.inf, math.inf, math.inf), read, "epsilon", delta)

    def delta(self, ledger: Ledger, epsilon: float) -> Bound:
        """Bound on the delta for which the ledger is (epsilon, delta)-DP; epsilon at least 0,
        finite.
        """
        non_negative_finite(epsilon=epsilon)

        def read(parts, epsilon):
            return self._capped(
                parts,
                epsilon,
                self.delta_of,
                _exposure(parts),
                0.0 if _pure_epsilon(parts) <= epsilon else math.inf,
            )

        return self._answer(ledger, Bound(0.0, 1.0, 1.0), read, "delta", epsilon)

    def _answer(self, ledger, lost, read, what, target):
        merged = self._merged(ledger).items()
        variation, exposure = (
            variation_of(merged),
            _exposure([part for part in merged if isinstance(part[0], ApproximateDP)]),
        )
        parts = self._checked([part for part in merged if not isinstance(part[0], BESIDE)])
        if any(isinstance(event, NonPrivate) for event, _ in parts):
            return lost

        def bounds(target):
            return read(parts, target) if parts else Bound(0.0, 0.0, 0.0)

        for wrapper, lost_delta in ((Exposed, exposure), (Within, variation)):
            if lost_delta:
                bounds = getattr(wrapper(bounds, lost_delta), what)
        return bounds(target)

    def _capped(self, parts, target, read, *caps):
        """read(parts, target), the upper end of which no bound has above any of the caps."""
        cap = min(caps) if self.kind == "bound" else math.inf  # [C1] [C2]
        bound = read(parts, target) if cap > 0 else Bound(0.0, 0.0, 0.0)
        return (
            bound
            if bound.upper <= cap
            else Bound(bound.lower and min(bound.lower, cap), min(bound.estimate, cap), cap)
        )

    def epsilon_of(self, parts: Parts, delta: float) -> Bound:
        """`epsilon` over (primitive, count) pairs, none of them NonPrivate."""
        grid = self.choose_grid(parts, delta=delta)
        return self.to_epsilon(self._compose(parts, grid), grid, delta)

    def delta_of(self, parts: Parts, epsilon: float) -> Bound:
        """`delta` over (primitive, count) pairs, none of them NonPrivate."""
        grid = self.choose_grid(parts, epsilon=epsilon)
        return self.to_delta(self._compose(parts, grid), grid, epsilon)

    def _compose(self, parts, grid):
        with np.errstate(over="ignore"):  # infinity is an answer
            return reduce(add, (self._cached_cost(event, grid) * count for event, count in parts))

    def _cached_cost(self, event, grid):
        key = (event, grid)
        if key not in self._costs:
            if len(self._costs) > 256:
                self._costs.clear()
            self._costs[key] = self.cost_curve(event, grid)
        return self._costs[key]

    def _charges(self, ledger):
        """The (event, count) pairs that this accountant reads from a ledger."""
        return ledger.items()

    def _merged(self, ledger):
        """{primitive: count}."""
        if not isinstance(ledger, Ledger):
            raise ParameterError(
                f"{self.name}: expected a Ledger, got {ledger!r:.200}; record events with "
                f"ledger = Ledger(); ledger.append(event, count)"
            )
        if ledger.relation is not self.relation:
            raise ParameterError(
                f"expected a ledger under {self.relation.name}, got one under "
                f"{ledger.relation.name}; construct the accountant with that relation"
            )
        merged = {}
        for event, count in self._charges(ledger):
            for primitive, n in primitives(event, self.relation, count):
                merged[primitive] = merged.get(primitive, 0) + n
                _check_count(primitive, merged[primitive])
        return merged

    def _checked(self, parts):
        """The (primitive, count) pairs that cost something, in order; UnsupportedEventError unless
        this accountant covers all.
        """
        for event, _ in parts:
            if not isinstance(event, NonPrivate) and not self.covers(event):
                raise UnsupportedEventError(
                    f"{self.name}: no theorem for {event!r} under {self.relation.name}; "
                    f"ask another accountant"
                )
        # sorted, so that the order of the events cannot change even the rounding; large counts are
        # rounded up
        return sorted(
            (
                (event, n if n <= 2**53 else math.nextafter(float(n), math.inf))
                for event, n in parts
                if n > 0
            ),
            key=repr,
        )
