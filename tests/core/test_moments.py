"""The moments and Renyi accountants, their kernels and conversions: golden values, fifty digits,
the 2016 README.
"""

import math

import mpmath
import numpy as np
import pytest

from minidp.privacy import (
    Gaussian,
    MomentsAccountant,
    PoissonSampled,
)
from minidp.privacy import (
    moment_kernels as kernels,
)
from minidp.privacy.conversion import (
    sharper_delta,
    sharper_epsilon,
    tail_bound_delta,
    tail_bound_epsilon,
)
from minidp.privacy.moments import PAPER_ORDERS
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


def test_small_excess_keeps_every_digit():
    for s, n in [(1e-9, 2.0), (-1e-6, 40.5), (0.2, 7.5), (-0.3, 3.3)]:
        value, scale = kernels.excess(s, n)
        with mpmath.workdps(50):
            s50, n50 = mpmath.mpf(s), mpmath.mpf(n)
            exact = (1 + s50) ** n50 - 1 - n50 * s50
        assert value * math.exp(scale) == pytest.approx(float(exact), rel=1e-13)
