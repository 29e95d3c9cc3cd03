"""The Renyi accountant: fractional orders and the sharper conversion; covers random stopping of a
search.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .accountant import Accountant, Bound, primitives
from .conversion import sharper_delta, sharper_epsilon
from .events import (
    ApproximateDP,
    NeighbouringRelation,
    NonPrivate,
    RandomlyStopped,
    TotalVariation,
    pure_epsilon,
)
from .ledger import Ledger
from .moments import checked_orders, log_moment_curve

DEFAULT_ORDERS = (
    *(1 + x / 100 for x in (1, 2, 3, 5, 7)),
    *(1 + x / 10 for x in range(1, 100)),
    *range(11, 65),
    72,
    80,
    96,
    112,
    128,
    160,
    192,
    224,
    256,
    320,
    384,
    448,
    512,
    640,
    768,
    896,
    1024,
)


class RenyiAccountant(Accountant):
    r"""Renyi divergences D_a at chosen orders a > 1, added up, then the sharper conversion.

    >>> from minidp.privacy import Gaussian, Ledger, PoissonSampled
    >>> ledger = Ledger()
    >>> ledger.append(PoissonSampled(0.01, Gaussian(4.0)), 10_000)
    >>> round(RenyiAccountant().epsilon(ledger, 1e-5).upper, 4)
    1.0355

    Bound
        [M1]  (a-1) D_a = alpha(a-1), the log moment of MomentsAccountant at real orders, numerical
              error added
        [M2]  (a-1) D_a = ln[(e^(a e) + e^(-(a-1) e)) / (1 + e^e)] for an e-DP release
        [M3]  D'_a = D_a + (1+eta) ((1 - 1/b) D_b + ln(1/gamma)/b) + ln(E K)/(a-1), the smallest
              over orders b > 1, for the best of K runs, K truncated negative binomial (eta, gamma)
        Composition adds D_a (Mironov 2017, Proposition 1; queries adaptive, noise fixed ahead).

    Valid for
        orders in (1, 1025]; q and sigma as MomentsAccountant

    Source
        [M1]  Mironov, Talwar, Zhang 2019 (arXiv:1908.10530), Theorem 4 and Section 3.3
        [M2]  own derivation: e-DP is dominated by randomised response (Kairouz, Oh, Viswanath 2015,
              Theorem 2), whose loss is e with probability e^e/(1+e^e) and -e otherwise
        [M3]  Papernot, Steinke 2022 (arXiv:2110.03620), Theorem 2
    """

    name = "renyi"

    def __init__(
        self,
        relation: NeighbouringRelation = NeighbouringRelation.ADD_REMOVE,
        orders: Iterable[float] = DEFAULT_ORDERS,
    ):
        super().__init__(relation)
        self.orders = checked_orders(orders, 1, 1025)

    def covers(self, primitive):
        if isinstance(primitive, RandomlyStopped):
            return self.supports(primitive.event) and not any(
                isinstance(inner, TotalVariation)
                for inner, _ in primitives(primitive.event, self.relation)
            )
        return super().covers(primitive)

    def choose_grid(self, parts, *, epsilon=None, delta=None):
        return self.orders

    def cost_curve(self, event, grid):
        lambdas = np.array(grid) - 1.0
        if isinstance(event, RandomlyStopped):
            return self._stopped(event, grid, lambdas)
        pure = pure_epsilon(event)
        if pure is not None:
            top, bottom = np.array(grid) * pure, -lambdas * pure
            if top[-1] > 600:
                return (np.logaddexp(top, bottom) - np.logaddexp(0.0, pure)) * (1 + 1e-13)
            # the same without cancellation, for releases of next to nothing
            return np.log1p(-np.expm1(bottom) * np.expm1(top) / (1 + math.exp(pure))) * (
                1 + 1e-13
            )  # [M2]
        return log_moment_curve(event, lambdas)  # [M1]

    def _stopped(self, event, grid, lambdas):
        once, orders = (
            self._curve(list(primitives(event.event, self.relation)), grid),
            np.array(grid),
        )
        choice = np.min((1 - 1 / orders) * once / lambdas - math.log(event.gamma) / orders)
        stopped = (
            once / lambdas + (1 + event.eta) * choice + math.log(event.expected_runs) / lambdas
        )
        return stopped * lambdas * (1 + 1e-13)  # [M3]

    def to_epsilon(self, total, grid, delta):
        epsilon = sharper_epsilon(total, np.array(grid) - 1.0, delta)
        return Bound(None, epsilon, epsilon * (1 + 1e-14))

    def to_delta(self, total, grid, epsilon):
        delta = sharper_delta(total, np.array(grid) - 1.0, epsilon)
        return Bound(None, delta, delta)

    def total_curve(self, ledger: Ledger) -> NDArray:
        """(a-1) D_a of the whole ledger at `orders`, (K,); infinite where a release has no
        noise.
        """
        # TotalVariation has no curve
        return self._curve(self._checked(self._merged(ledger).items()), self.orders)

    def _curve(self, parts, grid):
        if any(isinstance(event, (NonPrivate, ApproximateDP)) for event, _ in parts):
            return np.full(len(grid), math.inf)
        parts = [(event, count) for event, count in parts if count > 0]
        return self._compose(parts, grid) if parts else np.zeros(len(grid))
