"""Basic and advanced composition, and the comparisons that guarantee nothing."""
import math

import pytest

from minidp.privacy import AdvancedAccountant, BasicAccountant, Gaussian, LossDistributionAccountant, PoissonSampled
from minidp.privacy.composition import amplified
from tests.support.accountants import ledger_of

STEP = PoissonSampled(0.01, Gaussian(4.0))


@pytest.mark.parametrize("accountant", [BasicAccountant(), AdvancedAccountant()])
@pytest.mark.parametrize("event, steps", [(STEP, 1), (STEP, 3000), (PoissonSampled(0.3, Gaussian(1.0)), 20),
                                          (Gaussian(3.0), 1), (PoissonSampled(1e-4, Gaussian(0.6)), 1000)])
def test_bounds_hold_against_the_certified_interval(accountant, event, steps):
    ledger = ledger_of((event, steps))
    assert accountant.epsilon(ledger, 1e-5).upper >= LossDistributionAccountant().epsilon(ledger, 1e-5).lower


def test_amplification_does_not_overflow():
    assert amplified(1000.0, 0.5) == pytest.approx(1000 + math.log(0.5)) and amplified(1000.0, 1.0) == 1000.0
