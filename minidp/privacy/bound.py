"""Intervals around the truth, and what they become for a mechanism that is not quite the one
described.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from .event_json import number_to_json


@dataclass(frozen=True)
class Bound:
    """A number known to lie in [lower, upper], lower None if unknown; `estimate` is the best guess,
    float() gives upper.

    >>> float(Bound(0.9466, 0.9469, 0.9474))
    0.9474
    """

    lower: float | None
    estimate: float
    upper: float
    # the accountant of `upper`, where not the one asked
    fallback: str = field(default="", compare=False, repr=False)

    def __post_init__(self):  # NumPy's numbers become Python's, whose repr one can read
        for name in ("lower", "estimate", "upper"):
            value = getattr(self, name)
            object.__setattr__(self, name, value if value is None else float(value))

    def __float__(self):
        return float(self.upper)

    def to_json(self) -> dict[str, float | str | None]:
        """A dictionary in which infinity is "inf" and an unknown bound None; `fallback` only where
        there is one.
        """
        return {
            name: number_to_json(value)
            for name, value in vars(self).items()
            if name != "fallback" or value
        }


class Exposed:
    r"""Bounds for a mechanism M' that gives everything away with probability D, and otherwise is M,
    which read(target) bounds.

    Bound
        [C1]  delta' = D + (1 - D) delta(epsilon); lower ends are those of M

    Source
        [C1]  own derivation: D + (1 - D) delta is the hockey-stick divergence of the mixture, whose
              parts are told apart
    """

    def __init__(self, read: Callable[[float], Bound], exposure: float):
        self.read, self.exposure = read, exposure

    def delta(self, epsilon: float) -> Bound:
        """Bound on delta at `epsilon`."""
        known = self.read(epsilon)

        def mixed(end):
            return min(1.0, (self.exposure + (1 - self.exposure) * end) * (1 + 4e-16))  # [C1]

        return Bound(known.lower, mixed(known.estimate), mixed(known.upper), known.fallback)

    def epsilon(self, delta: float) -> Bound:
        """Bound on epsilon at `delta`; infinite where D alone is as large, though never known to
        be.
        """
        if delta <= self.exposure:
            return Bound(self.read(delta).lower, math.inf, math.inf)
        known = self.read((delta - self.exposure) / (1 - self.exposure) * (1 - 4e-16))  # [C1]
        return Bound(
            known.lower and self.read(delta).lower, known.estimate, known.upper, known.fallback
        )


class Within:
    r"""Bounds for a mechanism M' within total variation distance T of M, which read(target) bounds.

    Bound
        [C1]  delta' = delta(epsilon) + (1 + e^epsilon) T
        [C2]  epsilon' = E wherever epsilon(delta - (1 + e^E) T) <= E; infinite where no such E is
              found
        [C3]  lower ends: delta(epsilon) - (1 + e^epsilon) T, and epsilon(delta + (1 + e^epsilon')
              T)

    Source
        own derivation (coupling), for neighbours D, N, any set S of outputs, and p, p' the laws of
        M, M':
        [C1]  p'_D(S) <= p_D(S) + T <= e^eps p_N(S) + delta + T <= e^eps (p'_N(S) + T) + delta + T
        [C2]  [C1] at epsilon = E, since delta falls as epsilon grows
        [C3]  [C1] with M and M' exchanged, for M is as near to M'
    """

    def __init__(self, read: Callable[[float], Bound], variation: float):
        self.read, self.variation = read, variation

    def added(self, epsilon: float) -> float:
        """(1 + e^epsilon) T, rounded up; 1, which is all of delta, where e^epsilon overflows."""
        if epsilon > 700:
            return 1.0
        added = (1 + math.exp(epsilon)) * self.variation  # [C1]
        return math.nextafter(added * (1 + 1e-15), math.inf)

    def delta(self, epsilon: float) -> Bound:
        """Bound on delta at `epsilon`."""
        known, added = self.read(epsilon), self.added(epsilon)
        lower = known.lower and max(0.0, math.nextafter(known.lower - added, -math.inf))  # [C3]

        def more(end):
            return min(1.0, math.nextafter(end + added, math.inf))  # [C1]

        return Bound(lower, more(known.estimate), more(known.upper), known.fallback)

    def epsilon(self, delta: float) -> Bound:
        """Bound on epsilon at `delta`. A share `lost` is kept back until an epsilon is found that
        it pays for.
        """
        least, found = self.added(0.0), None
        lost = max(least, min(8 * least, 1e-3 * delta))
        for _ in range(40):
            left = math.nextafter(delta - lost, 0.0)  # [C2]
            if left <= 0:
                break
            known = self.read(left)
            needed = self.added(known.upper)
            paid = needed <= lost
            if paid and (found is None or known.upper < found.upper):
                found = known
            if paid and lost - needed <= 1e-4 * delta:
                break
            lost = needed if paid else 1.1 * needed
        if found is None:
            return Bound(0.0, math.inf, math.inf)
        if not found.lower:
            return found
        more = math.nextafter(delta + self.added(found.upper), math.inf)  # [C3]
        lower = self.read(more).lower if more < 1 else 0.0
        return Bound(
            lower and min(lower, found.estimate), found.estimate, found.upper, found.fallback
        )
