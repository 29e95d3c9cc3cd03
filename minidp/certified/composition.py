"""Composition of (epsilon, delta) pairs: basic and advanced as bounds, the paper's version as a
comparison.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..privacy.accountant import Accountant, Bound
from ..privacy.events import Composed, Event, Gaussian, JointGaussian, PoissonSampled, Repeated
from ..privacy.events.sampled import amplified
from ..privacy.moments import PAPER_ORDERS, MomentsAccountant
from .gaussian import gaussian_epsilon


class PairAccountant(Accountant):
    r"""Base of the accountants that give each release an (e_i, d_i) and compose these pairs.

    Bound
        [M1]  e_i = ln(1 + q_i (exp(E(d_i / q_i)) - 1)), d_i = share delta / (kinds n_i)    release
              i is (e_i, d_i)-DP, sampled with probability q_i, made n_i times; E is the exact curve
              of the Gaussian; `share` is the share of delta for releases, and `kinds` the number of
              different ones

    Valid for
        any mix of Gaussian and Laplace releases, Poisson-sampled or not; infinite where exp
        overflows

    Source
        [M1]  Balle, Wang 2018, Theorem 8; amplification: Balle, Barthe, Gaboardi 2018, Theorem 8
    """

    release_share = 1.0  # of delta that the releases get

    def total(self, sums: NDArray, kept: float) -> float:
        """epsilon from the sums of e_i, e_i^2 and e_i (exp(e_i) - 1), and from the delta for
        composition.
        """
        raise NotImplementedError

    def epsilon_of(self, parts, delta):
        """epsilon by `total`; all kinds of releases get the same share of delta."""
        releases = [(event, count) for event, count in parts if event.pure_epsilon is None]
        spent = self.release_share * delta
        shares = tuple((event, spent / len(releases) / count) for event, count in releases)
        epsilon = self.total(self.composed(parts, shares), delta * (1 - self.release_share))
        return Bound(None, epsilon, epsilon)

    def delta_of(self, parts, epsilon):
        """delta by bisection of its logarithm: the smallest one found at which epsilon suffices."""

        def suffices(log_delta):
            return self.epsilon_of(parts, math.exp(log_delta)).upper <= epsilon

        low, high = -700.0, math.log1p(-1e-12)
        if not suffices(high):
            return Bound(None, 1.0, 1.0)
        high = low if suffices(low) else high
        while high - low > 1e-9:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if suffices(middle) else (middle, high)
        return Bound(None, math.exp(high), math.exp(high))

    def pair(self, event: Event, delta: float) -> float:
        """e_i of one release that is not pure DP, at d_i."""
        q, alone = event.share, 0.0
        if delta == 0:
            alone = math.inf
        elif delta < q:
            alone = gaussian_epsilon(1 / event.noise.noise_multiplier, delta / q)
        return amplified(alone * (1 + 1e-12), q)  # [M1]

    def cost_curve(self, event, grid):
        epsilon = event.pure_epsilon
        if epsilon is None:
            epsilon = self.pair(event, dict(grid)[event])
        with np.errstate(over="ignore"):
            return np.array([epsilon, epsilon * epsilon, epsilon * float(np.expm1(epsilon))])


class BasicAccountant(PairAccountant):
    r"""Adds up epsilons and deltas; the releases get all of delta.

    Bound
        [C1]  epsilon = sum_i n_i e_i, delta = sum_i n_i d_i

    Source
        [C1]  Dwork, Roth 2014, Theorem 3.16
    """

    name = "basic"
    note = "epsilons and deltas add up"

    def total(self, sums, kept):
        return float(sums[0]) * (1 + 1e-12)  # [C1]


class AdvancedAccountant(PairAccountant):
    r"""Strong composition in which each step is proved; the releases get half of delta.

    Bound
        [C1]  epsilon = min(sum_i n_i e_i, sqrt(2 ln(1/delta') sum_i n_i e_i^2) + sum_i n_i e_i
              (exp(e_i) - 1)), delta' = delta/2

    Source
        [C1]  Dwork, Rothblum, Vadhan 2010, Theorem III.3, for unequal e_i: Kairouz, Oh,
              Viswanath 2015
    """

    name = "advanced"
    note = "strong composition of exact amplified pairs"
    release_share = 0.5

    def total(self, sums, kept):
        if not kept:  # half of the least number
            return float(sums[0]) * (1 + 1e-12)
        strong = math.sqrt(2 * -math.log(kept) * sums[1]) + sums[2]  # [C1]
        return float(min(strong, sums[0])) * (1 + 1e-12)


class PaperStrongComposition(AdvancedAccountant):
    r"""Strong composition as the paper draws it in Figure 2: a comparison, not a guarantee.

    Bound
        [M1]  e = q epsilon0, epsilon0 = sqrt(2 ln(1.25/delta0)) / sigma, delta0 = delta/(2 q T)
        [C1]  epsilon = e sqrt(2 T ln(1/delta')) + T e (exp(e) - 1), delta' = delta/2

    Valid for
        nothing: the formula for epsilon0 is proved for epsilon0 < 1, the amplification to q
        epsilon0 for epsilon0 <= 1; neither is checked, because neither holds in the paper's own
        settings

    Source
        [M1]  Abadi et al. 2016, Section 2.1 and Section 3.1
        [C1]  Abadi et al. 2016, Section 5.1, Figure 2
    """

    name = "paper_strong_composition"
    note = "the paper's Figure 2; its conditions do not hold, no guarantee"
    kind = "comparison"

    def pair(self, event, delta):
        q, sigma = event.share, event.noise.noise_multiplier
        return q * math.sqrt(2 * math.log(1.25 / min(delta / q, 1.0))) / sigma  # [M1]

    def total(self, sums, kept):
        log_kept = math.log(kept) if kept else -math.inf
        return float(math.sqrt(-2 * log_kept * sums[1]) + sums[2])  # [C1]


class PerTensorAccountant2016(MomentsAccountant):
    r"""The charges of the paper's own code, for each tensor as if it had its own lot: a comparison
    that understates epsilon.

    Bound
        [M1]  PoissonSampled(q, JointGaussian(s_1, ..)) is charged as PoissonSampled(q,
              Gaussian(s_l)) for each l

    Valid for
        nothing: all tensors of a step come from the same lot, so the true step is the sampled joint
        Gaussian

    Source
        [M1]  tensorflow/models, research/differential_privacy, 2016: the sanitizer charges once per
              tensor
    """

    name = "ledger_2016"
    note = "one charge per tensor as in the 2016 code; understates"
    kind = "comparison"
    default_orders = PAPER_ORDERS

    def _charges(self, ledger):
        return [
            (tensor, count) for event, count in ledger.items() for tensor in _per_tensor(event)
        ]  # [M1]


def _per_tensor(event):
    """The charges that the 2016 code would have made for an event."""
    if isinstance(event, Composed):
        return [tensor for inner in event.events for tensor in _per_tensor(inner)]
    if isinstance(event, Repeated):
        return [Repeated(tensor, event.count) for tensor in _per_tensor(event.event)]
    if isinstance(event, PoissonSampled) and isinstance(event.event, JointGaussian):
        return [replace(event, event=Gaussian(s)) for s in event.event.noise_multipliers]
    return [event]
