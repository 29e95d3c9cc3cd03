"""Basic and advanced composition, and the comparisons that guarantee nothing."""
import math

import numpy as np
import pytest

from minidp.privacy import (AdvancedAccountant, BasicAccountant, Composed, Gaussian, JointGaussian, Laplace, PerTensorAccountant2016,
                            LossDistributionAccountant, PaperStrongComposition, PoissonSampled, Repeated)
from minidp.privacy.composition import amplified, exact_gaussian_epsilon, per_tensor
from tests.support.accountants import gaussian_delta, ledger_of

STEP = PoissonSampled(0.01, Gaussian(4.0))


@pytest.mark.parametrize("steps, epsilon", [(10000, 17.16), (40000, 52.21)])
def test_golden_strong_composition(steps, epsilon):
    # even split of delta; computed once from Balle, Wang 2018 and Kairouz, Oh, Viswanath 2015
    assert AdvancedAccountant().epsilon(ledger_of((STEP, steps)), 1e-5).upper == pytest.approx(epsilon, abs=5e-3)


@pytest.mark.parametrize("steps, last_term, epsilon", [(10000, "exact", 9.35), (10000, "square", 9.34)])
def test_figure_2_comparison(steps, last_term, epsilon):
    accountant = PaperStrongComposition()
    ledger = ledger_of((STEP, steps))
    assert accountant.kind == "comparison"
    if last_term == "exact":
        assert accountant.epsilon(ledger, 1e-5).upper == pytest.approx(epsilon, abs=5e-3)
    else:
        # with T e^2 in place of T e (exp(e) - 1) it is what the paper prints
        single = 0.01 * math.sqrt(2 * math.log(1.25 / (0.5e-5 / steps / 0.01))) / 4.0
        assert math.sqrt(2 * steps * math.log(2e5)) * single + steps * single ** 2 == pytest.approx(epsilon, abs=5e-3)


def test_amplified_pairs_by_hand():
    epsilon = exact_gaussian_epsilon(4.0, 1e-6)
    assert gaussian_delta(epsilon, 0.25) == pytest.approx(1e-6, rel=1e-6)
    assert amplified(epsilon, 0.01) == pytest.approx(math.log(1 + 0.01 * (math.exp(epsilon) - 1)))
    assert amplified(1000.0, 0.5) == pytest.approx(1000 + math.log(0.5))
    assert amplified(1000.0, 1.0) == 1000.0
    curve = AdvancedAccountant().cost_curve(STEP, (((STEP, 1e-8),), 0.5))
    pair = amplified(exact_gaussian_epsilon(4.0, 1e-6), 0.01)
    assert np.allclose(curve, [pair, pair ** 2, pair * math.expm1(pair), 1e-8], rtol=1e-12)


def test_basic_adds():
    accountant = BasicAccountant()
    assert accountant.epsilon(ledger_of((Laplace(4.0), 3), (Laplace(2.0), 1)), 1e-5).upper == pytest.approx(1.25)
    bound = accountant.epsilon(ledger_of((Gaussian(2.0), 2), (Gaussian(5.0), 1)), 1e-5)
    expected = 2 * exact_gaussian_epsilon(2.0, 0.25e-5) + exact_gaussian_epsilon(5.0, 0.5e-5)
    assert bound.upper == pytest.approx(expected)


@pytest.mark.parametrize("accountant", [BasicAccountant(), AdvancedAccountant()])
@pytest.mark.parametrize("event, steps", [(STEP, 1), (STEP, 3000), (PoissonSampled(0.3, Gaussian(1.0)), 20),
                                          (Gaussian(3.0), 1), (PoissonSampled(1e-4, Gaussian(0.6)), 1000)])
def test_bounds_hold_against_the_certified_interval(accountant, event, steps):
    ledger = ledger_of((event, steps))
    assert accountant.epsilon(ledger, 1e-5).upper >= LossDistributionAccountant().epsilon(ledger, 1e-5).lower


def test_2016_charges_each_tensor_apart():
    joint = PoissonSampled(0.01, JointGaussian((4.0, 3.0)))
    apart = [PoissonSampled(0.01, Gaussian(4.0)), PoissonSampled(0.01, Gaussian(3.0))]
    assert per_tensor(joint) == apart
    assert per_tensor(Composed((joint, Gaussian(7.0)))) == [*apart, Gaussian(7.0)]
    assert per_tensor(Repeated(joint, 5)) == [Repeated(event, 5) for event in apart]
    # field.md 5.7, row (1, 4): 3.565 charged, 6.281 true
    ledger = ledger_of((Gaussian(4.0), 1), (PoissonSampled(0.01, JointGaussian((1.0, 1.0))), 1000))
    assert PerTensorAccountant2016().epsilon(ledger, 1e-5).upper == pytest.approx(3.565, abs=5e-4)
    assert PerTensorAccountant2016().kind == "comparison"
