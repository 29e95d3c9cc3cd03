"""The moments accountant of Abadi et al. 2016, by integration."""

import math
from collections.abc import Iterable
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError, UnsupportedEventError
from ..util.validate import in_range
from .accountant import Accountant, Bound
from .conversion import tail_bound_delta, tail_bound_epsilon
from .events import (
    Event,
    FixedSizeSampled,
    Gaussian,
    NeighbouringRelation,
    PoissonSampled,
)

FAR_ORDERS = (72, *(k << bits for bits in range(4, 8) for k in range(5, 9)))  # 72 .. 1024
PAPER_ORDERS = tuple(range(1, 33))
MOST_REACH = 400  # l / sigma up to which E (dP/dQ - 1)^l is integrated


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
        [M3]  alpha = min(a (a-1) / (2 s2), ln(1 + g^2 C(a,2) min(4 (exp(1/s2) - 1), 2 exp(1/s2)) +
              sum_(j=3..a) g^j C(a,j) min(2 exp(j (j-1) / (2 s2)), 4 sqrt(B_(2 floor(j/2)) B_(2
              ceil(j/2)))))), a = lambda+1, g = lot/size, s2 = sigma^2, B_l = sum_(i=0..l)
              (-1)^i C(l,i) exp(i (i-1) / (2 s2))    for FixedSizeSampled(Gaussian) at integer
              lambda; B_l, of even l, is E_Q (dP/dQ - 1)^l of the unsampled Gaussian
        [M4]  alpha = min(lambda e, lambda e (exp(e)-1) + lambda^2 e^2 exp(2e)/2)    for an e-DP
              release
        Composition adds alpha (Theorem 2, any adaptive choice of queries with noise fixed ahead).
        Numerical error is bounded and added to alpha.

    Valid for
        q in [0, 1], sigma in [1e-3, 1e9], orders in (0, 1024].
        Measured against 50 digits over q 1e-7..0.999, sigma 0.1..100, lambda 1..256.

    Source
        [M1]  Abadi et al. 2016, Section 3.2; E1 <= E2: Mironov, Talwar, Zhang 2019
              (arXiv:1908.10530)
        [M2]  Abadi et al. 2016, Section 3.2 at q = 1; own derivation: E exp(lambda(lambda+1)/(2
              sigma^2))
        [M3]  Wang, Balle, Kasiviswanathan 2019 (arXiv:1808.00087), Theorems 9 and 27, with
              epsilon(infinity) infinite; fractional orders by convexity of alpha in lambda
        [M4]  Abadi et al. 2016, Lemma C.1; sampled pure DP: e = ln(1 + q (exp(1/b) - 1))
    """

    name = "moments"

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
        total = self.composed(parts, self.orders)
        epsilon = self.conversions[0](total, self.lambdas, delta)
        return Bound(None, epsilon, epsilon * (1 + 1e-14))

    def delta_of(self, parts, epsilon):
        total = self.composed(parts, self.orders)
        delta = self.conversions[1](total, self.lambdas, epsilon)
        return Bound(None, delta, delta)


def log_moment_curve(event: Event, orders: NDArray) -> NDArray:
    """alpha(lambda) of one primitive event at the given orders, (K,), rounded up; the card is
    MomentsAccountant's.
    """
    pure = event.pure_epsilon
    if pure is None:
        return _noise_moments(event, orders)
    with np.errstate(over="ignore", invalid="ignore"):
        lemma = orders * pure * np.expm1(pure) + 0.5 * (orders * pure * np.exp(pure)) ** 2
    return np.fmin(lemma, orders * pure) * (1 + 1e-14)  # [M4]


@singledispatch
def _noise_moments(event, orders):
    """alpha(lambda) of Gaussian noise."""
    raise UnsupportedEventError(f"no log moments of {event!r} are known")


@_noise_moments.register
def _unsampled_moments(event: Gaussian, orders):
    return gaussian_log_moments(event.noise_multiplier, orders)


@_noise_moments.register
def _poisson_moments(event: PoissonSampled, orders):
    sigma = event.noise.noise_multiplier
    unsampled = gaussian_log_moments(sigma, orders)  # sampling never costs more
    # squared terms would underflow; or the cost is far above any useful epsilon
    if sigma > 1e9 or sigma < 1e-3:
        return unsampled
    # imported here, since Numba takes longer than most runs need
    from . import moment_kernels as kernels

    q = max(event.share, 1e-100)  # squares must not vanish
    value, error = kernels.log_moments(q, sigma, orders + 1.0)  # [M1]
    return np.minimum(value + error, unsampled)


def gaussian_log_moments(sigma: float, orders: NDArray) -> NDArray:
    """lambda (lambda+1) / (2 sigma^2), rounded up."""
    with np.errstate(over="ignore"):
        return 0.5 * (orders / sigma) * ((orders + 1.0) / sigma) * (1 + 1e-15)  # [M2]


@_noise_moments.register
def _fixed_size_moments(event: FixedSizeSampled, orders):
    fraction, sigma = event.share, event.noise.noise_multiplier
    low, high = np.floor(orders), np.ceil(orders)
    tails = _fixed_size_tails(sigma, int(high.max()) + 1)
    at = {
        order: _fixed_size_log_moment(fraction, tails[: int(order)]) if order else 0.0
        for order in {*low, *high}
    }
    below, above = (np.array([at[order] for order in ends]) for ends in (low, high))
    return np.minimum(below + (orders - low) * (above - below), gaussian_log_moments(sigma, orders))


def _fixed_size_tails(sigma, most):
    """ln of the factor of g^j C(a, j) in [M3], for j = 2 .. most."""
    j, m = np.arange(2, most + 1, dtype=np.float64), 1 / sigma
    tails = math.log(2) + 0.5 * j * m * (j - 1) * m
    tails[0] = min(
        math.log(4) + (math.log(math.expm1(m * m)) if m * m < 700 else m * m), math.log(2) + m * m
    )
    # beyond, both are the same but for a factor of 2
    even = np.arange(2, int(min(most + 1, MOST_REACH * sigma)) + 1, 2)
    if not len(even):
        return tails
    # the rule errs by e^-100
    x = np.arange(-math.sqrt(even[-1]) - 13, even[-1] * m + math.sqrt(even[-1]) + 13, 0.2)
    with np.errstate(divide="ignore"):
        log_excess = np.log(np.abs(np.expm1(m * x - 0.5 * m * m)))
    chi = np.array([np.logaddexp.reduce(order * log_excess - 0.5 * x * x) for order in even])
    chi += math.log(0.2 / math.sqrt(2 * math.pi))
    j = np.arange(3, min(most, int(even[-1])) + 1)
    tails[1 : len(j) + 1] = np.minimum(
        tails[1 : len(j) + 1], math.log(4) + 0.5 * (chi[j // 2 - 1] + chi[(j + 1) // 2 - 1])
    )
    return tails


def _fixed_size_log_moment(fraction, tails):
    from scipy.special import gammaln, logsumexp

    a = len(tails) + 1
    j = np.arange(2, a + 1, dtype=np.float64)
    log_binomial = gammaln(a + 1) - gammaln(j + 1) - gammaln(a - j + 1)
    value = np.logaddexp(0.0, logsumexp(log_binomial + j * math.log(fraction) + tails))  # [M3]
    return value * (1 + 1e-11) + 1e-15
