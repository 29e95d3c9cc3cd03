"""Intervals around a true value, and how they change for a mechanism that sometimes gives
everything away.
"""

from dataclasses import dataclass, field
from typing import Any

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
    # the accountant that gave `upper`, if it is another one
    fallback: str = field(default="", compare=False, repr=False)

    def __post_init__(self):  # NumPy's numbers become Python's, whose repr one can read
        for name in ("lower", "estimate", "upper"):
            value = getattr(self, name)
            object.__setattr__(self, name, value if value is None else float(value))

    def __float__(self):
        return float(self.upper)

    def as_dict(self) -> dict[str, Any]:
        """A dictionary of its numbers, None for an unknown one; with `fallback` only if there is
        one.
        """
        return {name: value for name, value in vars(self).items() if name != "fallback" or value}

    def to_json(self) -> dict[str, float | str | None]:
        """The same for JSON, in which infinity is "inf"."""
        return {name: number_to_json(value) for name, value in self.as_dict().items()}

    def at_most(self, cap: float) -> "Bound":
        """The Bound of a number that is known to be at most `cap`."""
        if self.upper <= cap:
            return self
        return Bound(self.lower and min(self.lower, cap), min(self.estimate, cap), cap)


@dataclass(frozen=True)
class Exposed:
    r"""A mechanism M' that gives everything away with probability D, and otherwise is M.

    Bound
        [C1]  delta' = D + (1 - D) delta(epsilon)    lower ends are those of M

    Source
        [C1]  own derivation: D + (1 - D) delta is the hockey-stick divergence of the mixture,
              because its two parts can be distinguished
    """

    exposure: float

    def delta(self, known: Bound) -> Bound:
        """Bound on delta' from that on M's delta at the same epsilon."""

        def mixed(end):
            return min(1.0, (self.exposure + (1 - self.exposure) * end) * (1 + 4e-16))  # [C1]

        return Bound(known.lower, mixed(known.estimate), mixed(known.upper), known.fallback)

    def left(self, delta: float) -> float:
        """The delta at which M has the epsilon of M' at `delta`; 0 if `delta` is at most D."""
        if not self.exposure:
            return delta
        if delta <= self.exposure:
            return 0.0
        return (delta - self.exposure) / (1 - self.exposure) * (1 - 4e-16)  # [C1]
