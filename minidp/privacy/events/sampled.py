"""Events over random lots.

Only Gaussian and Laplace noise can be inside a lot, and only Gaussians compose within one. A lot
without noise gives everything away with the probability that the example is in it, so it is
ApproximateDP(0, share).
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import UnsupportedEventError
from ...util.validate import probability
from .base import Event, NonPrivate, number
from .noise import Gaussian, Laplace, combined_noise_multiplier
from .pure import ApproximateDP


def amplified(epsilon: float, q: float) -> float:
    """ln(1 + q (exp(epsilon) - 1)), without overflow; epsilon may be negative."""
    if epsilon > 500:
        without = math.log1p(-q) if q < 1 else -math.inf
        return min(epsilon, float(np.logaddexp(without, math.log(q) + epsilon)))
    return math.log1p(q * math.expm1(epsilon))


@dataclass(frozen=True)
class PoissonSampled(Event):
    """`event` over a lot that holds each example independently with probability
    sampling_probability.

    A zeroed example adds exactly zero to a sum, so ZERO_OUT has the same pair of distributions as
    ADD_REMOVE.
    """

    sampling_probability: float = field(metadata=number(probability))
    event: Event

    @property
    def noise(self):
        return self.event

    @property
    def share(self):
        return self.sampling_probability

    @property
    def pure_epsilon(self):
        unsampled = self.event.pure_epsilon
        if unsampled is None or unsampled > 700:
            return unsampled
        return math.log1p(self.share * math.expm1(unsampled))

    def primitives(self, count=1):
        for inner in self.one_lot():
            if self.share == 1:
                yield inner, count
            elif self.share > 0 and isinstance(inner, NonPrivate):
                yield ApproximateDP(0.0, self.share), count
            elif self.share > 0:
                yield replace(self, event=inner), count

    def one_lot(self) -> list[Event]:
        """The release from one lot, as a list of at most one primitive."""
        parts: list[tuple[Any, int]] = list(self.event.primitives())
        if any(not isinstance(inner, (Gaussian, Laplace, NonPrivate)) for inner, _ in parts):
            raise UnsupportedEventError(
                f"cannot bound {self.event!r}: only Gaussian and Laplace noise can be inside a "
                "sampled lot"
            )
        parts = [(inner, n) for inner, n in parts if n > 0]
        if sum(n for _, n in parts) <= 1:
            return [inner for inner, _ in parts]
        if any(isinstance(inner, NonPrivate) for inner, _ in parts):
            return [NonPrivate()]
        if all(isinstance(inner, Gaussian) for inner, _ in parts):
            noise = combined_noise_multiplier((inner.noise_multiplier, n) for inner, n in parts)
            return [Gaussian(noise)]
        raise UnsupportedEventError(
            f"cannot bound {self.event!r}: only Gaussians compose within one sampled lot"
        )

    def for_group(self, k):
        r"""A lot that holds any of the k examples with probability 1 - (1-q)^k, with the noise for
        k of them.

        Bound
            [C1]  s' = s/k, b' = b/k, q' = 1 - (1-q)^k    Gaussian(s) becomes Gaussian(s'),
                  Laplace(b) becomes Laplace(b'), and the sampling probability q becomes q'

        Source
            [C1]  own derivation: sensitivity grows k-fold. With probability (1-q)^k no member is in
                  the lot; otherwise at most k are, a shift of at most k, and sampling preserves
                  domination (Zhu, Dong, Wang 2022, Theorem 11)
        """
        any_member = -math.expm1(k * math.log1p(-self.share))  # [C1]
        return PoissonSampled(any_member, self.event.for_group(k))  # [C1]
