"""Basic and advanced composition, and the comparisons that guarantee nothing."""
import math

import pytest

from minidp.privacy import (AdvancedAccountant, BasicAccountant, Composed, Gaussian, JointGaussian,
                            PerTensorAccountant2016, LossDistributionAccountant, PoissonSampled, Repeated)
from minidp.privacy.composition import amplified, per_tensor
from tests.support.accountants import ledger_of

STEP = PoissonSampled(0.01, Gaussian(4.0))


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


def test_amplification_does_not_overflow():
    assert amplified(1000.0, 0.5) == pytest.approx(1000 + math.log(0.5)) and amplified(1000.0, 1.0) == 1000.0
