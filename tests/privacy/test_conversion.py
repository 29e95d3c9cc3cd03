"""The conversions from log moments to (epsilon, delta)."""
import math

import numpy as np
import pytest

from minidp.errors import ParameterError
from minidp.privacy.conversion import sharper_delta, sharper_epsilon, tail_bound_delta, tail_bound_epsilon
from tests.support.accountants import gaussian_delta

ORDERS = np.arange(1.0, 200.0)


def gaussian(mu):
    return 0.5 * mu * mu * ORDERS * (ORDERS + 1)


def test_tail_bound_by_hand():
    # two orders: (0.5 + ln 100) / 1 = 5.1052 and (1.5 + ln 100) / 2 = 3.0526
    assert tail_bound_epsilon([0.5, 1.5], np.array([1.0, 2.0]), 0.01) == pytest.approx((1.5 + math.log(100)) / 2)
    # exp(0.5 - 3) = 0.0821 and exp(1.5 - 6) = 0.0111
    assert tail_bound_delta([0.5, 1.5], np.array([1.0, 2.0]), 3.0) == pytest.approx(math.exp(-4.5))


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
def test_tail_bound_both_directions_agree(mu):
    epsilon = tail_bound_epsilon(gaussian(mu), ORDERS, 1e-6)
    assert tail_bound_delta(gaussian(mu), ORDERS, epsilon) == pytest.approx(1e-6, rel=1e-9)


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
def test_sharper_conversion_both_directions_agree(mu):
    epsilon = sharper_epsilon(gaussian(mu), ORDERS, 1e-6)
    assert sharper_delta(gaussian(mu), ORDERS, epsilon) == pytest.approx(1e-6, rel=1e-9)


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


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
def test_delta_is_checked(delta):
    for convert in (tail_bound_epsilon, sharper_epsilon):
        with pytest.raises(ParameterError, match="delta="):
            convert([1.0], np.array([1.0]), delta)


def test_large_delta_needs_no_epsilon():
    # sqrt(1 - e^-0.01) = 0.0998: from there on delta alone covers the total variation distance
    orders = np.array([1.0, 2.0])
    moments = 0.01 * orders
    assert sharper_epsilon(moments, orders, 0.0999) == 0.0
    assert sharper_epsilon(moments, orders, 0.0010) > 0.0
    assert gaussian_delta(0.0, math.sqrt(0.01)) < 0.0998      # D_2 = mu^2 for the Gaussian
