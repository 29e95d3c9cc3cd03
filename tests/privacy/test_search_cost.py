"""The cost of a hyper-parameter search."""
import math

import pytest

from minidp.errors import ParameterError, UnsupportedEventError
from minidp.privacy import (Gaussian, Laplace, MomentsAccountant, PoissonSampled, RandomlyStopped, RenyiAccountant,
                            Repeated, poisson_stopped_epsilon, theorem_d1)
from minidp.privacy.search_cost import require_pure
from tests.support.accountants import ledger_of

STEP = PoissonSampled(0.01, Gaussian(4.0))


def test_theorem_d1_needs_pure_dp():
    assert require_pure(ledger_of((Laplace(2.0), 3))) == pytest.approx(1.5)
    assert require_pure(ledger_of((Laplace(0.0), 1))) == math.inf
    with pytest.raises(UnsupportedEventError, match="pure"):
        require_pure(ledger_of((Laplace(2.0), 3), (Gaussian(100.0), 1)))


@pytest.mark.parametrize("args", [(1.0, 0.6, 0.05, 0.1), (1.0, 0.0, 0.05, 0.1), (1.0, 0.5, 0.0, 0.1),
                                  (1.0, 0.5, 0.05, 0.0), (-1.0, 0.5, 0.05, 0.1)])
def test_theorem_d1_checks_its_conditions(args):
    with pytest.raises(ParameterError):
        theorem_d1(*args)


def test_one_run_for_certain_still_costs_at_least_that_run():
    accountant, run = RenyiAccountant(), Repeated(STEP, 1000)
    single = accountant.epsilon(ledger_of((run, 1)), 1e-5).upper
    searched = accountant.epsilon(ledger_of((RandomlyStopped(run, 1.0, 0.02), 1)), 1e-5).upper
    assert single < searched < 4 * single


def test_poisson_stopping_needs_renyi_divergences():
    with pytest.raises(ParameterError, match="RenyiAccountant"):
        poisson_stopped_epsilon(MomentsAccountant(), ledger_of((STEP, 1000)), 1e-5, 5.0)
