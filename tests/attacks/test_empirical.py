"""Lower bounds by attack: never above the truth but as often as their confidence allows, and not
far below it.
"""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from minidp.certified.gaussian import gaussian_epsilon
from minidp.errors import ParameterError
from minidp.run.tradeoff import gaussian_curve
from tools.attacks import empirical
from tools.attacks.empirical import Claim, Counts, ledger_of

DELTA = 1e-5


def misses_allowed(repetitions, error=0.05, false_alarm=1e-6):
    """As many misses as right bounds of this error stay within, but for the false-alarm rate."""
    return stats.binom.isf(false_alarm, repetitions, error)


def test_a_claim_allows_what_its_curve_allows_and_hardly_more():
    claim, fprs = Claim(ledger_of(1.0, 1.0, 1)), np.linspace(0.001, 0.999, 99)
    most = 1 - gaussian_curve(fprs, 1.0)
    assert (claim.most(fprs) >= most).all() and (claim.most(fprs) <= most + 0.002).all()
    for fpr, tpr in zip(fprs, claim.most(fprs)):
        assert claim.least(tpr) == pytest.approx(fpr, abs=1e-9)
    assert (
        claim.most([0.0, 1.0]).tolist() == pytest.approx([0, 1], abs=1e-6) and claim.least(0.0) == 0
    )


def test_counts_refute_a_claim_of_nothing_by_the_product_of_two_binomials():
    # claim: most(fpr) = fpr. All of 5 inside above, none of 5 outside: (f (1 - f))^5 is at most
    # 4^-5
    nothing, p = Claim(ledger_of(1e6, 1.0, 1)), 4.0**-5 * (1 + 5 * math.log(4))
    assert Counts(5, 5, 0, 5).refute(nothing, 1.2 * p) and not Counts(5, 5, 0, 5).refute(
        nothing, 0.999 * p
    )


def test_the_trials_of_the_power_calculation_are_enough_and_a_quarter_is_not(rng):
    claim = Claim(ledger_of(1.0, 1.0, 1))

    def refuted(counts):
        return counts.refute(claim, 0.01)

    def times(n):
        drawn = zip(*(rng.binomial(n, rate, 200).tolist() for rate in (0.85, 0.16)))
        return sum(refuted(Counts(hits, n, alarms, n)) for hits, alarms in drawn)

    trials = empirical.trials_needed(0.85, 0.16, refuted, missed=0.05)
    assert times(trials) >= 200 - misses_allowed(200) and times(trials // 4) < 150
    with pytest.raises(ParameterError, match="in 100 million"):
        empirical.trials_needed(0.5, 0.5, refuted)


@pytest.mark.parametrize("single, steps", [(False, 1), (True, 4)])
def test_the_bound_of_counted_scores_holds_and_is_close(single, steps, rng):
    def bound(counts):
        return empirical.epsilon_refuted(
            lambda claim: counts.refute(claim, 0.05), 1.0, steps, DELTA, single
        )

    truth, bounds = gaussian_epsilon(steps**0.5, DELTA), []
    for _ in range(60):
        (first, inside), (other, outside) = (
            np.split(rng.normal(mean, 1, 4500), [500]) for mean in (1, 0)
        )
        threshold = empirical.threshold_of(first, other)
        bounds.append(bound(empirical.counted(inside, outside, threshold)))
    assert sum(each > truth for each in bounds) <= misses_allowed(60)
    assert np.median(bounds) > 0.85 * truth
    assert bound(Counts(5, 10, 5, 10)) == 0


@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_one_run_by_f_dp_holds_and_is_not_far_below(mu, rng):
    truth, bounds = gaussian_epsilon(mu, DELTA), []
    for _ in range(40):
        included = rng.random(2000) < 0.5
        right = empirical.guesses(rng.normal(mu * included, 1), included)
        refuted = partial(empirical.one_run_refutes, right=right, canaries=2000)
        bounds.append(empirical.epsilon_refuted(refuted, 1.0, 1, DELTA))
    assert sum(bound > truth for bound in bounds) <= misses_allowed(40)
    assert np.median(bounds) > 0.3 * truth


def test_guesses_by_hand():
    scores, included = np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, True, False, False])
    # 3 in, 0 out; then 2 in and 1 out, both wrong
    assert empirical.guesses(scores, included) == {
        2: 2,
        4: 2,
    }
