"""Lower bounds on epsilon by attack, to put beside the upper bounds of the accountants.

An attack is run in two worlds, with an example and without it, and its scores are counted above a
threshold. What a ledger claims bounds both counts (`Claim`); data that would be too rare under a
claim refute it, and the lower bound on epsilon is that of the weakest claim they refute. Every
bound holds but for the stated error; how far below the truth it is says as much about the attack as
about the mechanism.
"""

import math
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from minidp.errors import ParameterError
from minidp.privacy import Gaussian, Ledger, LossDistributionAccountant, PoissonSampled

LINES = 40  # of a claim's curve
# the noise multipliers that claims are tried at: powers of STEP
STEP, EXPONENTS = 1.002, range(-1000, 3000)
SHARES = (1, 2, 4, 8, 16)  # one run: all canaries are guessed, half of them, ...


def ledger_of(noise_multiplier, sampling_probability, steps):
    """The ledger of a run."""
    return Ledger(
        entries=[(PoissonSampled(sampling_probability, Gaussian(noise_multiplier)), steps)]
    )


class Claim:
    """The most that any attack reaches if a ledger is right, by lines of its trade-off curve.

    The true positive rate is at most e^epsilon times the false one plus delta(epsilon), and so for
    the opposite guess (Wasserman, Zhou 2010). Certified upper ends of delta, and lines left out,
    only allow more: what refutes these lines refutes the ledger.
    """

    def __init__(self, ledger):
        accountant = LossDistributionAccountant(ledger.relation, quick=True)
        epsilons = np.linspace(0, min(accountant.epsilon(ledger, 1e-7).upper, 40.0), LINES)
        self._slopes = np.exp(epsilons)
        self._deltas = np.array(
            [accountant.delta(ledger, float(epsilon)).upper for epsilon in epsilons]
        )

    def most(self, fprs):
        """The largest true positive rates at false positive rates, (n,) each."""
        fprs = np.asarray(fprs)[:, None]
        opposite = 1 - (1 - fprs - self._deltas) / self._slopes
        return np.minimum(1.0, np.minimum(self._slopes * fprs + self._deltas, opposite).min(axis=1))

    def least(self, tpr):
        """The smallest false positive rate at a true positive rate."""
        opposite = 1 - self._deltas - self._slopes * (1 - tpr)
        return float(max(0.0, np.max((tpr - self._deltas) / self._slopes), np.max(opposite)))


@lru_cache(None)
def _claim(sampling_probability, steps, exponent):
    return Claim(ledger_of(STEP**exponent, sampling_probability, steps))


def epsilon_refuted(refuted, sampling_probability, steps, delta, single=False):
    """The epsilon, at its certified lower end, of the run with the most leak of which
    `refuted(claim)` is still true.

    Claims are searched by their noise: the more, the stronger the claim. 0 if none is refuted.
    single: the claims are about one release that the example is in or not, of which so many are
    sampled and composed.
    """
    of = (1.0, 1) if single else (sampling_probability, steps)
    at = bisect_left(EXPONENTS, True, key=lambda exponent: refuted(_claim(*of, exponent)))
    if at == len(EXPONENTS):
        return 0.0
    return composed_epsilon(STEP ** -EXPONENTS[at], sampling_probability, steps, delta)


def composed_epsilon(mu, sampling_probability, steps, delta):
    """The epsilon that `steps` sampled releases of a Gaussian of `mu` have at least: the certified
    lower end.
    """
    ledger = ledger_of(1 / mu, sampling_probability, steps)
    return LossDistributionAccountant().epsilon(ledger, delta).lower or 0.0


class Counts(NamedTuple):
    """Scores above a threshold, of independent trials with the example (hits) and without it
    (alarms).
    """

    hits: int
    inside: int
    alarms: int
    outside: int

    def refute(self, claim, error):
        """Whether counts like these are rarer than `error` if the claim is right, whatever the
        false positive rate is.

        At every rate two exact binomial p-values, of so few alarms and, at the claim's largest true
        positive rate, of so many hits, are independent: p (1 - ln p) of their product is one
        (Fisher 1925). The largest over all rates counts; in a cell of rates the first is largest at
        its lower end, the second at its upper. Narrower than two intervals of Clopper and Pearson
        at half of the error each, and as exact.
        """
        shape = self.alarms + 1, max(self.outside - self.alarms, 0.5)
        rates = np.concatenate(
            [[0.0], stats.beta.ppf(special.ndtr(np.linspace(-8, 8, 400)), *shape), [1.0]]
        )
        few = stats.binom.cdf(self.alarms, self.outside, rates[:-1])
        many = stats.binom.sf(self.hits - 1, self.inside, claim.most(rates[1:]))
        p = float(np.max(few * many))
        return p == 0 or p * (1 - math.log(p)) <= error


def counted(inside, outside, threshold):
    """Counts of scores above a threshold, which must not have been chosen by looking at them."""
    return Counts(
        int(np.sum(inside > threshold)), len(inside), int(np.sum(outside > threshold)), len(outside)
    )


def threshold_of(inside, outside):
    """The threshold that tells these scores apart best; count other trials' scores with it."""

    def apart(threshold):
        hits, n, alarms, m = counted(inside, outside, threshold)
        rates = np.array([(hits + 1) / (n + 2), 1 - (alarms + 1) / (m + 2)])
        quantiles = special.ndtri(rates)
        errors = np.sqrt(rates * (1 - rates) / [n, m]) / stats.norm.pdf(quantiles)
        # less five standard errors: chance favours what few scores decide
        return np.sum(quantiles - 5 * errors)

    shares = np.linspace(0.02, 0.98, 49)
    return float(max(np.quantile(np.concatenate([inside, outside]), shares), key=apart))


def trials_needed(tpr, fpr, flagged, missed=1e-6):
    """The power calculation: trials in each world after which an attack of these rates is flagged,
    but for `missed`.

    flagged: the decision, which more hits and fewer alarms do not turn around, so that the
    quantiles of both binomial counts decide, each at half of that chance. Raises ParameterError
    where 100 million trials are not enough.
    """
    trials = 4
    while trials <= 10**8:
        hits = stats.binom.ppf(missed / 2, trials, tpr)
        alarms = stats.binom.isf(missed / 2, trials, fpr)
        if flagged(Counts(int(hits), trials, int(alarms), trials)):
            return trials
        trials = math.ceil(1.05 * trials)
    raise ParameterError(
        f"true positive rate {tpr:.3g} at {fpr:.3g}: the attack is not flagged in 100 million "
        "trials"
    )


def guesses(scores, included):
    """{guesses: right ones} of one run in which a fair coin included each canary, for each of
    SHARES.

    Half are "in", on the largest scores, half "out", on the smallest.
    """
    order, included = np.argsort(scores), np.asarray(included, dtype=bool)
    tried = sorted({max(1, len(order) // share // 2) for share in SHARES})
    return {
        2 * half: int(np.sum(included[order[-half:]]) + np.sum(~included[order[:half]]))
        for half in tried
    }


def one_run_refutes(claim, right, canaries, error=0.05):
    """Whether the `guesses` of one run would be rarer than `error` if the claim is right, whatever
    its curve.

    p_i is the chance of i right guesses. A coin turned over makes one of i right guesses wrong: the
    sum over i > j of i p_i / m (`hit`), as a true positive rate, is within the claim at the sum
    over i >= j of (r - i) p_i / m (`miss`) as the false one. From a tail of `error` at v they grow
    as little as that allows, and may not exceed r / m together. Mahloujifar, Melis, Chaudhuri 2024
    (arXiv:2410.22235), Algorithm 3.
    """
    for r, v in right.items():
        hit, miss = (error / len(right) * part / canaries for part in (v, r - v))
        for i in range(v - 1, -1, -1):
            grown = claim.least(min(hit, 1.0))
            if grown <= miss:
                break
            hit, miss = hit + i / (r - i) * (grown - miss), grown
        if hit + miss > r / canaries:
            return True
    return False
