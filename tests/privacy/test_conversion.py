"""The conversions from log moments to (epsilon, delta)."""
import math

import numpy as np
import pytest

from minidp.privacy.conversion import sharper_delta, sharper_epsilon, tail_bound_delta, tail_bound_epsilon
from tests.support.accountants import gaussian_delta

ORDERS = np.arange(1.0, 200.0)


def gaussian(mu):
    return 0.5 * mu * mu * ORDERS * (ORDERS + 1)


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_sharper_conversion_never_above_tail_bound(mu, delta):
    sharper = sharper_epsilon(gaussian(mu), ORDERS, delta)
    assert sharper <= tail_bound_epsilon(gaussian(mu), ORDERS, delta)
    # and both above the truth, which is known in closed form for the Gaussian
    assert gaussian_delta(sharper, mu) <= delta


@pytest.mark.parametrize("moments", [[math.inf, math.inf], [math.nan, math.inf]])
def test_no_finite_moment_gives_no_guarantee(moments):
    orders = np.array([1.0, 2.0])
    for epsilon, delta in ((tail_bound_epsilon, tail_bound_delta), (sharper_epsilon, sharper_delta)):
        assert epsilon(moments, orders, 1e-5) == math.inf
        assert delta(moments, orders, 5.0) == 1.0
        assert delta(moments, orders, math.inf) == 1.0


def test_a_broken_order_is_left_out():
    orders = np.array([1.0, 2.0])
    assert tail_bound_epsilon([math.nan, 1.5], orders, 0.01) == pytest.approx((1.5 + math.log(100)) / 2)


def test_delta_is_never_rounded_to_zero():
    assert 0 < tail_bound_delta([1.0], np.array([1000.0]), 100.0) < 1e-300
    assert 0 < sharper_delta([1.0], np.array([1000.0]), 100.0) < 1e-300
