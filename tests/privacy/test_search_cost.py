"""The cost of a hyper-parameter search."""

import pytest

from minidp.errors import ParameterError
from minidp.privacy import (Gaussian, MomentsAccountant, PoissonSampled, RandomlyStopped, RenyiAccountant, Repeated,
                            poisson_stopped_epsilon, theorem_d1)
from tests.support.accountants import ledger_of

STEP = PoissonSampled(0.01, Gaussian(4.0))


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
