"""The Renyi accountant: golden values, order ranges, and bounds it must respect."""
import math

import pytest

from minidp.errors import UnsupportedEventError
from minidp.privacy import Gaussian, MomentsAccountant, PoissonSampled, RandomlyStopped, RenyiAccountant, Unknown
from tests.support.accountants import ledger_of

STEP = PoissonSampled(0.01, Gaussian(4.0))


@pytest.mark.parametrize("steps, epsilon", [(10000, 1.0355), (20000, 1.5101), (40000, 2.2097)])
def test_golden_values(steps, epsilon):
    # dp_accounting 0.6.0 gives the same digits
    assert RenyiAccountant().epsilon(ledger_of((STEP, steps)), 1e-5).upper == pytest.approx(epsilon, abs=5e-5)


def test_random_stopping_checks_what_it_stops():
    accountant = RenyiAccountant()
    assert accountant.supports(RandomlyStopped(STEP, 1.0, 0.1))
    assert not accountant.supports(RandomlyStopped(Unknown(), 1.0, 0.1))
    with pytest.raises(UnsupportedEventError, match="RandomlyStopped"):
        MomentsAccountant().epsilon(ledger_of((RandomlyStopped(STEP, 1.0, 0.1), 1)), 1e-5)
    assert accountant.epsilon(ledger_of((RandomlyStopped(Gaussian(0.0), 1.0, 0.1), 1)), 1e-5).upper == math.inf
