"""Lower bounds by attack: never above the truth but as often as their confidence allows, and not far below it."""
import math

import numpy as np
import pytest
from scipy import stats

from minidp.audit import empirical
from minidp.errors import ParameterError
from minidp.privacy import LossDistributionAccountant, noise_multiplier_for
from minidp.privacy.gaussian import gaussian_epsilon
from minidp.streams import Streams
from tools.audit_empirical import ledger_of, observe


def misses_allowed(repetitions, error=0.05, false_alarm=1e-6):
    """As many misses as right bounds of this error stay within, but for the false-alarm rate."""
    return stats.binom.isf(false_alarm, repetitions, error)


def test_mu_lower_holds_as_often_as_it_says_and_is_close(rng):
    bounds = [empirical.mu_lower(rng.normal(0.5, 1, 300), rng.normal(0, 1, 300)) for _ in range(400)]
    assert sum(bound > 0.5 for bound in bounds) <= misses_allowed(400)
    assert empirical.mu_lower(rng.normal(0.5, 1, 10**5), rng.normal(0, 1, 10**5)) > 0.47
    assert empirical.mu_lower(rng.normal(0, 1, 100), rng.normal(9, 1, 100)) == 0.0


def test_composition_of_a_known_mu():
    # ten releases of mu each are one of sqrt(10) mu without sampling; the certified lower end is just below it
    exact = gaussian_epsilon(math.sqrt(10) * 0.3, 1e-5)
    assert exact * 0.995 < empirical.composed_epsilon(0.3, 1.0, 10, 1e-5) <= exact
    assert empirical.composed_epsilon(0.0, 0.5, 10, 1e-5) == 0.0
    assert empirical.composed_epsilon(math.inf, 0.5, 10, 1e-5) == math.inf


def test_clopper_pearson_on_randomised_response(rng):
    """The answer is true with probability e/(1+e): epsilon 1 exactly, so that a bound above it is a miss."""
    def answers(truth):
        return np.where(rng.random(2000) < math.e / (1 + math.e), truth, 1 - truth) + 1e-9 * rng.random(2000)

    bounds = [empirical.clopper_pearson_epsilon(answers(1), answers(0), 0.0) for _ in range(200)]
    assert sum(bound > 1 for bound in bounds) <= misses_allowed(200)
    assert np.median(bounds) > 0.6
    assert empirical.clopper_pearson_epsilon(rng.random(2000), rng.random(2000), 0.0) < 0.3


def test_clopper_pearson_by_hand():
    # 1000 scores tested of each kind, all of the members above the threshold and none of the others
    inside, outside = np.full(2000, 5.0), np.zeros(2000)
    tpr = 0.025 ** (1 / 1000)
    assert empirical.clopper_pearson_epsilon(inside, outside, 1e-5) == pytest.approx(
        math.log((tpr - 1e-5) / (1 - 0.025 ** (1 / 1000))))


def test_one_run_p_value_without_delta_is_binomial():
    for epsilon in (0.0, 1.0):
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        expected = sum(math.comb(20, k) * p**k * (1 - p) ** (20 - k) for k in range(15, 21))
        assert empirical.one_run_p_value(100, 20, 15, epsilon, 0.0) == pytest.approx(expected)
    with_delta = empirical.one_run_p_value(100, 20, 15, 0.0, 1e-5)
    # the largest of the means of pmf(14), pmf(14)+pmf(13), ... over their numbers
    pmf = [math.comb(20, k) / 2**20 for k in range(14, -1, -1)]
    share = max(sum(pmf[:i]) / i for i in range(1, 16))
    assert with_delta == pytest.approx(empirical.one_run_p_value(100, 20, 15, 0.0, 0.0) + 200e-5 * share)


def test_one_run_on_randomised_response(rng):
    """Each canary's score tells its inclusion with probability e^2/(1+e^2): epsilon 2 exactly."""
    def run():
        included = rng.random(2000) < 0.5
        right = rng.random(2000) < math.exp(2) / (1 + math.exp(2))
        return empirical.one_run_epsilon(np.where(right, included, ~included) + 0.1 * rng.random(2000), included, 0.0)

    bounds = [run() for _ in range(60)]
    assert sum(bound > 2 for bound in bounds) <= misses_allowed(60)
    assert np.median(bounds) > 1.6
    included = rng.random(2000) < 0.5
    assert empirical.one_run_epsilon(rng.random(2000), included, 1e-5) < 0.2


def test_roc_by_hand():
    fpr, tpr, area = empirical.roc(np.array([3.0, 2.0, 1.0]), np.array([2.0, 0.0]))
    np.testing.assert_allclose(fpr, [0, 0, 0.5, 0.5, 1])
    np.testing.assert_allclose(tpr, [0, 1 / 3, 2 / 3, 1, 1])
    assert area == pytest.approx(4.5 / 6)  # of 6 pairs members win 4, and draw one
    assert empirical.tpr_at(fpr, tpr, 0.1) == pytest.approx(1 / 3)


def setting(seed, q=0.5, sigma=2.0, canaries=200, steps=30, **how):
    """Observed scores of a network of 2800 parameters, trained with the library's own classes."""
    return observe(sigma, q, steps, Streams(seed), canaries, **how)


def test_without_noise_a_canary_in_the_lot_scores_exactly_its_clipped_norm():
    """With C = 1 and gradients of size 10 each canary moves its own coordinate by 1, and no other's."""
    seen = setting(1, sigma=0.0, batch_size=64)
    assert seen.scores.shape == seen.present.shape == (30, 200)
    rises = [seen.scores[seen.present[:, c], c].mean() - seen.scores[~seen.present[:, c], c].mean() for c in range(200)]
    assert np.mean(rises) == pytest.approx(1.0, abs=0.02)


def test_batches_do_not_change_which_canaries_a_step_saw():
    np.testing.assert_array_equal(setting(2).present, setting(2, batch_size=17).present)


def test_more_canaries_than_parameters_and_too_few_scores_are_refused():
    with pytest.raises(ParameterError, match="canaries=2801"):
        setting(1, canaries=2801)
    with pytest.raises(ParameterError, match="two or more"):
        empirical.mu_lower(np.ones(1), np.ones(5))


def test_right_training_is_never_above_its_certified_epsilon_beyond_the_confidence():
    """20 repetitions; each bound holds with 95%. The attack still reaches 60% of the certified epsilon on average."""
    q, steps, delta = 0.5, 10, 1e-5
    accountant, ledger = LossDistributionAccountant(), lambda sigma: ledger_of(sigma, q, steps)
    sigma = noise_multiplier_for(accountant, ledger, 2.0, delta)
    certified, reached = accountant.epsilon(ledger(sigma), delta).upper, []
    for seed in range(20):
        seen = setting(seed, sigma=sigma)
        mu = empirical.mu_lower(seen.scores[seen.present], seen.scores[~seen.present])
        reached.append(empirical.composed_epsilon(mu, q, steps, delta))
        assert empirical.repetition_p_value(seen) > 1e-6 and empirical.sampler_p_value(seen, q) > 1e-6
    assert sum(epsilon > certified for epsilon in reached) <= misses_allowed(20)
    assert np.mean(reached) > 0.6 * certified


def test_the_noise_check_notices_noise_that_is_reused(rng):
    present = rng.random((40, 200)) < 0.5
    noise = rng.standard_normal(200)
    assert empirical.repetition_p_value(empirical.Observed(np.tile(noise, (40, 1)) + present, present)) < 1e-6
    assert empirical.repetition_p_value(empirical.Observed(rng.standard_normal((40, 200)) + present, present)) > 1e-6


def test_the_sampler_check_notices_what_is_no_poisson_sample(rng):
    shuffled = np.concatenate([[lot, ~lot] for lot in (rng.permutation(200) < 100 for _ in range(20))])
    fixed = np.array([rng.permutation(200) < 100 for _ in range(40)])
    clumped = np.tile(rng.random((40, 1)) < 0.5, (1, 200))
    for wrong in (shuffled, fixed, clumped):
        assert empirical.sampler_p_value(empirical.Observed(None, wrong), 0.5) < 1e-6
    assert empirical.sampler_p_value(empirical.Observed(None, rng.random((40, 200)) < 0.5), 0.5) > 1e-6
    assert empirical.sampler_p_value(empirical.Observed(None, np.ones((3, 5), bool)), 1.0) == 1.0
