"""The moments and Renyi accountants and their conversions: golden values, the 2016 README, exact
moments.
"""

import math

import numpy as np
import pytest

from minidp.privacy import (
    Gaussian,
    MomentsAccountant,
    PoissonSampled,
)
from minidp.privacy.conversion import (
    sharper_delta,
    sharper_epsilon,
    tail_bound_delta,
    tail_bound_epsilon,
)
from minidp.privacy.moments import PAPER_ORDERS, log_moment_curve
from tests.support.accountants import ledger_of

STEP = PoissonSampled(0.01, Gaussian(4.0))


@pytest.mark.parametrize(
    "epsilon, delta, digits",
    [(0.125, 0.72709, 5e-6), (8, 3.3927e-107, 1.5e-111)],
)
def test_ledger_of_the_2016_readme(epsilon, delta, digits):
    # the README of the paper's own code after 10 lots: PCA once, then two tensors a lot, each
    # charged as if it had a lot of its own (printed there to four or five digits)
    ledger = ledger_of((Gaussian(7.0), 1), (STEP, 20))
    assert MomentsAccountant(orders=PAPER_ORDERS).delta(ledger, epsilon).upper == pytest.approx(
        delta, abs=digits
    )


@pytest.mark.parametrize("moments", [[math.inf, math.inf], [math.nan, math.inf]])
def test_no_finite_moment_gives_no_guarantee(moments):
    orders = np.array([1.0, 2.0])
    for epsilon, delta in (
        (tail_bound_epsilon, tail_bound_delta),
        (sharper_epsilon, sharper_delta),
    ):
        assert epsilon(moments, orders, 1e-5) == math.inf
        assert delta(moments, orders, 5.0) == 1.0


def test_delta_is_never_rounded_to_zero():
    for delta in (tail_bound_delta, sharper_delta):
        assert 0 < delta([1.0], np.array([1000.0]), 100.0) < 1e-300


@pytest.mark.parametrize("q, sigma", [(0.01, 4.0), (0.2, 1.0), (0.999, 2.5)])
def test_moments_of_whole_order_are_the_binomial_sum(q, sigma):
    """E2 = sum_k C(n, k) (1 - q)^(n - k) q^k exp((k^2 - k) / (2 sigma^2)), n = lambda + 1: from
    multiplying out [M1], whose integrand is a sum of Gaussian densities.
    """
    lambdas = np.array([1.0, 2.0, 7.0, 32.0])
    found = log_moment_curve(PoissonSampled(q, Gaussian(sigma)), lambdas)
    for order, alpha in zip(lambdas, found):
        n = int(order) + 1
        terms = [
            math.log(math.comb(n, k))
            + (n - k) * math.log1p(-q)
            + k * math.log(q)
            + (k * k - k) / (2 * sigma**2)
            for k in range(n + 1)
        ]
        exact = max(terms) + math.log(math.fsum(math.exp(term - max(terms)) for term in terms))
        assert exact * (1 - 1e-12) <= alpha <= exact * (1 + 1e-6)
