"""The Renyi accountant: fractional orders and the sharper conversion; covers random stopping of a
search.
"""

import math

import numpy as np

from .conversion import sharper_delta, sharper_epsilon
from .events import NonPrivate, TotalVariation
from .ledger import Ledger
from .moments import FAR_ORDERS, MomentsAccountant, log_moment_curve
from .searches import OneOf, PoissonStopped, RandomlyStopped


class RenyiAccountant(MomentsAccountant):
    r"""Renyi divergences D_a at chosen orders a > 1, added up, then the sharper conversion.

    >>> from minidp.privacy import Gaussian, Ledger, PoissonSampled
    >>> ledger = Ledger()
    >>> ledger.append(PoissonSampled(0.01, Gaussian(4.0)), 10_000)
    >>> round(RenyiAccountant().epsilon(ledger, 1e-5).upper, 4)
    1.0355

    Bound
        [M1]  (a-1) D_a = alpha(a-1)    the log moment of MomentsAccountant at real orders,
              numerical error added
        [M2]  (a-1) D_a = ln((exp(a e) + exp(-(a-1) e)) / (1 + exp(e)))    for an e-DP release
        [M3]  D'_a = D_a + (1+eta) min_b ((1 - 1/b) D_b + ln(1/gamma)/b) + ln(m)/(a-1)    over
              orders b > 1, for the best of K runs, K truncated negative binomial (eta, gamma) with
              mean m
        [M4]  D'_a = D_a + m d(ln(1 + 1/(a-1))) + max(0, ln(m)) / (a-1)    for the best of K runs, K
              Poisson with mean m; one run is (x, d(x))-DP
        [M5]  D'_a = max_i D_ia    for one of several releases i
        Composition adds D_a (Mironov 2017, Proposition 1; queries adaptive, noise fixed ahead).

    Valid for
        orders in (1, 1025]; q and sigma as MomentsAccountant

    Source
        [M1]  Mironov, Talwar, Zhang 2019 (arXiv:1908.10530), Theorem 4 and Section 3.3
        [M2]  own derivation: e-DP is dominated by randomised response (Kairouz, Oh, Viswanath 2015,
              Theorem 2), whose loss is e with probability e^e/(1+e^e) and -e otherwise
        [M3]  Papernot, Steinke 2022 (arXiv:2110.03620), Theorem 2
        [M4]  the same, Theorem 6
        [M5]  van Erven, Harremoes 2014, Theorem 13: quasi-convexity
    """

    name = "renyi"

    least_order = 1
    default_orders = (
        *(1 + x / 100 for x in (1, 2, 3, 5, 7)),
        *(1 + x / 10 for x in range(1, 100)),
        *range(11, 65),
        *FAR_ORDERS,
    )
    conversions = sharper_epsilon, sharper_delta

    def covers(self, primitive):
        if isinstance(primitive, OneOf):
            return all(map(self._covers_all, primitive.events))
        if isinstance(primitive, (RandomlyStopped, PoissonStopped)):
            return self._covers_all(primitive.event)
        return super().covers(primitive)

    def _covers_all(self, event):
        return all(
            self._bounds(each) and not isinstance(each, TotalVariation)
            for each, _ in event.primitives(self.relation)
        )

    def cost_curve(self, event, grid):
        orders, lambdas = np.array(grid), self.lambdas
        if isinstance(event, OneOf):
            return np.max([self._curve(each) for each in event.events], axis=0)  # [M5]
        if isinstance(event, PoissonStopped):
            ledger, mean = Ledger(self.relation, [(event.event,)]), event.expected_runs
            once = self._curve(event.event)
            delta = np.array([self.delta(ledger, math.log1p(1 / each)).upper for each in lambdas])
            stopped = once + lambdas * mean * delta + max(math.log(mean), 0.0)
            return stopped * (1 + 1e-13)  # [M4]
        if isinstance(event, RandomlyStopped):
            once = self._curve(event.event)
            choice = np.min((1 - 1 / orders) * once / lambdas - math.log(event.gamma) / orders)
            stopped = (
                once / lambdas + (1 + event.eta) * choice + math.log(event.expected_runs) / lambdas
            )
            return stopped * lambdas * (1 + 1e-13)  # [M3]
        pure = event.pure_epsilon
        if pure is None:
            return log_moment_curve(event, lambdas)  # [M1]
        top, bottom = orders * pure, -lambdas * pure
        if top[-1] > 600:
            return (np.logaddexp(top, bottom) - np.logaddexp(0.0, pure)) * (1 + 1e-13)
        # the same without cancellation, for releases of next to nothing
        return np.log1p(-np.expm1(bottom) * np.expm1(top) / (1 + math.exp(pure))) * (
            1 + 1e-13
        )  # [M2]

    def _curve(self, event):
        """(a-1) D_a of all that an event releases, (K,); infinite where a release has no noise, or
        delta alone is what it costs.
        """
        parts = list(event.primitives(self.relation))
        if any(isinstance(event, NonPrivate) or event.delta_alone for event, _ in parts):
            return np.full(len(self.orders), math.inf)
        parts = [(event, count) for event, count in parts if count > 0]
        return self.composed(parts, self.orders) if parts else np.zeros(len(self.orders))
