"""One row per accountant: what the shared conformance tests build it from, and which events it bounds."""
from dataclasses import dataclass

import mpmath

from minidp.privacy import (AdvancedAccountant, BasicAccountant, FixedSizeSampled, Gaussian, GaussianAccountant,
                            JointGaussian, Laplace, Ledger, LossDistributionAccountant, MomentsAccountant,
                            NeighbouringRelation, PaperStrongComposition, PerTensorAccountant2016, PoissonSampled, PureDP,
                            RandomlyStopped, RenyiAccountant)

ADD_REMOVE = NeighbouringRelation.ADD_REMOVE
REPLACE_ONE = NeighbouringRelation.REPLACE_ONE

SAMPLED = (PoissonSampled(0.01, Gaussian(4.0)), PoissonSampled(0.2, JointGaussian((2.0, 3.0))))
UNSAMPLED = (Gaussian(5.0), JointGaussian((5.0, 7.0)))
PURE = (Laplace(20.0), PureDP(0.05), PoissonSampled(0.1, Laplace(10.0)))
FIXED = (FixedSizeSampled(1000, 10, Gaussian(4.0)),)


@dataclass(frozen=True)
class Row:
    """make(relation) builds the accountant; `events` are the ones it must support under `relation`."""

    label: str
    make: object
    events: tuple
    relation: NeighbouringRelation = ADD_REMOVE


ROWS = [
    Row("moments", MomentsAccountant, SAMPLED + UNSAMPLED + PURE),
    Row("moments-closed-form", lambda r: MomentsAccountant(r, method="closed-form"), SAMPLED + UNSAMPLED + PURE),
    Row("moments-asymptotic", lambda r: MomentsAccountant(r, method="asymptotic"), SAMPLED[:1] + UNSAMPLED),
    Row("moments-replace-one", MomentsAccountant, UNSAMPLED + PURE[:1] + FIXED, REPLACE_ONE),
    Row("renyi", RenyiAccountant, SAMPLED + UNSAMPLED + PURE + (RandomlyStopped(SAMPLED[0], 1.0, 0.1),)),
    Row("renyi-replace-one", RenyiAccountant, UNSAMPLED + FIXED, REPLACE_ONE),
    Row("loss-distribution", LossDistributionAccountant, SAMPLED + UNSAMPLED + PURE),
    Row("loss-distribution-replace-one", LossDistributionAccountant, UNSAMPLED + FIXED, REPLACE_ONE),
    Row("gaussian-clt", GaussianAccountant, SAMPLED + UNSAMPLED),
    Row("gaussian-clt-replace-one", GaussianAccountant, UNSAMPLED + FIXED, REPLACE_ONE),
    Row("basic", BasicAccountant, SAMPLED + UNSAMPLED + PURE),
    Row("advanced", AdvancedAccountant, SAMPLED + UNSAMPLED + PURE),
    Row("advanced-replace-one", AdvancedAccountant, UNSAMPLED + FIXED, REPLACE_ONE),
    Row("paper-strong-composition", PaperStrongComposition, SAMPLED + UNSAMPLED + PURE),
    Row("ledger-2016", PerTensorAccountant2016, SAMPLED + UNSAMPLED + PURE),
]


def ledger_of(*entries, relation=ADD_REMOVE):
    """A ledger of (event, count) pairs."""
    return Ledger(relation, entries)


def exact_log_moment(q, sigma, n, digits=50):
    """log E_Q[(dP/dQ)^n] of the sampled Gaussian at integer n by the binomial sum, in `digits` digits."""
    with mpmath.workdps(digits):
        q, sigma = mpmath.mpf(q), mpmath.mpf(sigma)
        terms = (mpmath.binomial(n, k) * (1 - q) ** (n - k) * q ** k * mpmath.expm1(k * (k - 1) / (2 * sigma ** 2))
                 for k in range(2, n + 1))
        return mpmath.log1p(mpmath.fsum(terms))


def integrated_log_moment(q, sigma, n, digits=50):
    """The same for any real n (n < 0 gives E1) by quadrature of the definition's integrand."""
    with mpmath.workdps(digits):
        q, m, n = mpmath.mpf(q), 1 / mpmath.mpf(sigma), mpmath.mpf(n)

        def integrand(x):
            s = q * mpmath.expm1(m * x - m * m / 2)
            return mpmath.npdf(x) * ((1 + s) ** n - 1 - n * s)

        low, high = min(0, n * m) - 15, max(0, n * m) + 15
        return mpmath.log1p(mpmath.quad(integrand, [low + (high - low) * i / 24 for i in range(25)]))


def gaussian_delta(epsilon, mu):
    """delta(epsilon) of N(0, 1) against N(mu, 1), in 50 digits (Balle, Wang 2018, Theorem 8)."""
    with mpmath.workdps(50):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return float(mpmath.ncdf(-epsilon / mu + mu / 2) - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2))
