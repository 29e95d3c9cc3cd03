"""Where a theorem of the paper does not hold as its card states it."""

from minidp.audit.in_paper import theorem_1_noise
from minidp.privacy import Gaussian, Ledger, LossDistributionAccountant, PoissonSampled


def test_the_noise_of_theorem_1_is_too_small_where_lambda_is():
    q, steps, epsilon, delta = 0.021355, 10_000, 9.119, 0.010467
    ledger = Ledger()
    ledger.append(PoissonSampled(q, Gaussian(theorem_1_noise(q, steps, epsilon, delta))), steps)
    assert LossDistributionAccountant().epsilon(ledger, delta).lower > 1.04 * epsilon
