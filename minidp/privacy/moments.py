"""The moments accountant of Abadi et al. 2016, by integration."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..util.validate import in_range
from .accountant import Accountant, Bound
from .conversion import tail_bound_delta, tail_bound_epsilon
from .events import Event, Gaussian, NeighbouringRelation

FAR_ORDERS = (72, *(k << bits for bits in range(4, 8) for k in range(5, 9)))  # 72 .. 1024
PAPER_ORDERS = tuple(range(1, 33))


class MomentsAccountant(Accountant):
    r"""Log moments alpha(lambda) = lambda D_(lambda+1), added up, then the paper's tail bound.

    orders  at least one number, order = `least_order` + lambda, lambda in (0, 1024]; by default
            `default_orders`

    >>> from minidp.privacy import Gaussian, Ledger, PoissonSampled
    >>> ledger = Ledger()
    >>> ledger.append(PoissonSampled(0.01, Gaussian(4.0)), 10_000)
    >>> round(MomentsAccountant().epsilon(ledger, 1e-5).upper, 4)       # the paper says 1.26
    1.2586

    Bound
        [M1]  alpha = ln E2, E1 <= E2, E2 = int_x nu_x (mu_x/nu_x)^(lambda+1), E1 = int_x nu_x
              (nu_x/mu_x)^lambda, mu_x = (1-q) nu_x + q exp(-(x-1)^2/(2 sigma^2)) / (sigma sqrt(2
              pi)), nu_x = exp(-x^2/(2 sigma^2)) / (sigma sqrt(2 pi))    for PoissonSampled(q,
              Gaussian(sigma)); nu is the density without the example, mu with it
        [M2]  alpha = lambda (lambda+1) / (2 sigma^2)    for Gaussian(sigma)
        [M3]  alpha = min(lambda e, lambda e (exp(e)-1) + lambda^2 e^2 exp(2e)/2)    for an e-DP
              release
        [M4]  alpha_k = sum_i n_i a_ik    at order k, over releases i that are made n_i times each;
              any adaptive choice of queries, with noise fixed ahead
        Numerical error is bounded and added to alpha.

    Valid for
        q in [0, 1], sigma in [1e-3, 1e9], orders in (0, 1024].
        Measured against 50 digits over q 1e-7..0.999, sigma 0.1..100, lambda 1..256.

    Source
        [M1]  Abadi et al. 2016, Eq. (2), Eq. (3) and Eq. (4), where nu is mu_0, and the second
              form of E2 with lambda + 1; E1 <= E2: Mironov, Talwar, Zhang 2019 (arXiv:1908.10530)
        [M2]  Abadi et al. 2016, Section 3.2 at q = 1; own derivation: E2 = exp(lambda(lambda+1)/(2
              sigma^2))
        [M3]  Abadi et al. 2016, Lemma C.1; sampled pure DP: e = ln(1 + q (exp(1/b) - 1))
        [M4]  Abadi et al. 2016, Theorem 2.1 (composability)
    """

    name = "moments"
    note = "log moments, tail bound (Abadi et al. 2016)"

    least_order = 0
    default_orders: tuple[float, ...] = (*range(1, 65), *FAR_ORDERS, 145)
    conversions = tail_bound_epsilon, tail_bound_delta  # from alpha, lambda and delta, or epsilon

    def __init__(
        self,
        relation: NeighbouringRelation = NeighbouringRelation.ADD_REMOVE,
        orders: Iterable[float] | None = None,
    ):
        super().__init__(relation)
        chosen = self.default_orders if orders is None else orders
        self.orders = tuple(sorted({float(order) for order in chosen}))
        if not self.orders:
            raise ParameterError("expected orders to hold at least one order, got none")
        for order in self.orders:
            in_range(self.least_order, self.least_order + 1024, open_low=True, order=order)

        self.lambdas: NDArray = np.array(self.orders) - self.least_order  # (K,)

    def cost_curve(self, event, grid):
        """alpha(lambda) of one primitive event, (K,), rounded up; the grid is the orders."""
        return log_moment_curve(event, self.lambdas)

    def epsilon_of(self, parts, delta):
        total = self.composed(parts, self.orders)  # [M4]
        epsilon = self.conversions[0](total, self.lambdas, delta)
        return Bound(None, epsilon, epsilon * (1 + 1e-14))

    def delta_of(self, parts, epsilon):
        total = self.composed(parts, self.orders)  # [M4]
        delta = self.conversions[1](total, self.lambdas, epsilon)
        return Bound(None, delta, delta)


def log_moment_curve(event: Event, orders: NDArray) -> NDArray:
    """alpha(lambda) of one primitive event at the given orders, (K,), rounded up; the card is
    MomentsAccountant's.
    """
    pure = event.pure_epsilon
    if pure is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            lemma = orders * pure * np.expm1(pure) + 0.5 * (orders * pure * np.exp(pure)) ** 2
        return np.fmin(lemma, orders * pure) * (1 + 1e-14)  # [M3]
    sigma = event.noise.noise_multiplier
    unsampled = gaussian_log_moments(sigma, orders)  # sampling never costs more
    # out of this range squared terms would underflow, or the cost is far above any useful epsilon
    if isinstance(event, Gaussian) or not 1e-3 <= sigma <= 1e9:
        return unsampled
    # imported here because Numba takes longer to load than most runs take
    from . import moment_kernels as kernels

    q = max(event.share, 1e-100)  # squares must not vanish
    value, error = kernels.log_moments(q, sigma, orders + 1.0)  # [M1]
    return np.minimum(value + error, unsampled)


def gaussian_log_moments(sigma: float, orders: NDArray) -> NDArray:
    """lambda (lambda+1) / (2 sigma^2), rounded up."""
    with np.errstate(over="ignore"):
        return 0.5 * (orders / sigma) * ((orders + 1.0) / sigma) * (1 + 1e-15)  # [M2]
