"""The Renyi accountant: fractional orders and the sharper conversion."""

import math

import numpy as np

from .conversion import sharper_delta, sharper_epsilon
from .moments import FAR_ORDERS, MomentsAccountant, log_moment_curve


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
        Composition adds D_a (Mironov 2017, Proposition 1; queries adaptive, noise fixed ahead).

    Valid for
        orders in (1, 1025]; q and sigma as MomentsAccountant

    Source
        [M1]  Mironov, Talwar, Zhang 2019 (arXiv:1908.10530), Theorem 4 and Section 3.3
        [M2]  own derivation: e-DP is dominated by randomised response (Kairouz, Oh, Viswanath 2015,
              Theorem 2), whose loss is e with probability e^e/(1+e^e) and -e otherwise
    """

    name = "renyi"
    short = "rdp"
    note = "Renyi divergences, sharper conversion"

    least_order = 1
    default_orders = (
        *(1 + x / 100 for x in (1, 2, 3, 5, 7)),
        *(1 + x / 10 for x in range(1, 100)),
        *range(11, 65),
        *FAR_ORDERS,
    )
    conversions = sharper_epsilon, sharper_delta

    def cost_curve(self, event, grid):
        orders, lambdas = np.array(grid), self.lambdas
        pure = event.pure_epsilon
        if pure is None:
            return log_moment_curve(event, lambdas)  # [M1]
        top, bottom = orders * pure, -lambdas * pure
        if top[-1] > 600:
            return (np.logaddexp(top, bottom) - np.logaddexp(0.0, pure)) * (1 + 1e-13)
        # the same without cancellation, for a tiny e
        return np.log1p(-np.expm1(bottom) * np.expm1(top) / (1 + math.exp(pure))) * (
            1 + 1e-13
        )  # [M2]
