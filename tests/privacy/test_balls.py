"""Balls in bins: the certified interval against quadrature and the figures of another program."""

import math
import signal

import numpy as np
import pytest

from minidp.errors import UnsupportedEventError
from minidp.privacy import (
    ApproximateDP,
    BallsInBins,
    Gaussian,
    JointGaussian,
    Laplace,
    LossDistributionAccountant,
    PoissonSampled,
)
from minidp.privacy.gaussian import gaussian_epsilon
from minidp.privacy.group_privacy import group_epsilon
from minidp.privacy.pld import balls
from tests.support.accountants import ADD_REMOVE, REPLACE_ONE, ledger_of, spent

ACCOUNTANT = LossDistributionAccountant()


def binned(bins, sigma, epochs=1, *beside, delta=1e-5):
    return spent(ACCOUNTANT, (BallsInBins(bins, Gaussian(sigma)), epochs), *beside, delta=delta)


@pytest.mark.parametrize(
    "bins, epochs, sigma, epsilon",
    [
        (234, 15, 1.3, 0.8411),
        (234, 45, 0.7, 5.4428),
        (15, 20, 1.9, 2.6864),
        (1000, 10, 1.0, 0.4645),
    ],
)
def test_the_figures_of_another_program(bins, epochs, sigma, epsilon):
    bound = binned(bins, sigma, epochs)
    assert bound.lower <= epsilon <= bound.upper <= 1.0025 * bound.lower
    assert bound.estimate == pytest.approx(epsilon, rel=3e-4)


@pytest.mark.parametrize(
    "bins, epochs, sigma",
    [
        (10, 1, 0.7),
        (10_000, 1000, 1.0),
        (3, 2, 0.5),
    ],
)
def test_narrow_monotone_and_below_the_unsampled_gaussian(bins, epochs, sigma):
    bound = binned(bins, sigma, epochs)
    assert bound.lower <= bound.upper <= max(1.005 * bound.lower, bound.lower + 3e-5)
    assert bound.upper <= gaussian_epsilon(math.sqrt(epochs) / sigma, 1e-5) * (1 + 1e-9)
    for more in (
        (max(2, bins // 2), sigma, epochs),
        (bins, 0.8 * sigma, epochs),
        (bins, sigma, 2 * epochs),
    ):
        assert binned(*more).upper >= bound.upper


@pytest.mark.parametrize("sigma, bins", [(0.05, 10), (1e6, 10), (1.0, 10**9)])
def test_out_of_range_is_bounded_by_the_unsampled_gaussian(sigma, bins):
    bound = binned(bins, sigma, 5)
    assert bound.lower is None or bound.lower <= bound.upper
    assert bound.upper == spent(ACCOUNTANT, (Gaussian(sigma), 5)).upper


# truths: importance sampling of the other lots, the largest lot by quadrature
@pytest.mark.parametrize(
    "bins, sigma, epsilon, truth", [(234, 1.3, 8.0, 2.819e-67), (1000, 0.35, 6.0, 4.517e-4)]
)
def test_one_epoch_at_a_small_delta_is_narrow(bins, sigma, epsilon, truth):
    bound = ACCOUNTANT.delta(ledger_of((BallsInBins(bins, Gaussian(sigma)), 1)), epsilon)
    assert bound.lower <= truth <= bound.upper <= 1.03 * bound.lower


def test_an_interrupt_during_a_sum_is_a_keyboard_interrupt():
    atoms = np.linspace(0.5, 1.5, balls.MOST_POINTS)
    masses, grid = np.full(len(atoms), 1 / len(atoms)), np.linspace(0.9, 3.1, 10)
    # compiled or loaded
    balls.sum_shares(atoms[:2], masses[:2], atoms[:2], masses[:2], grid, False, np.zeros((2, 9)))
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-3)
        with pytest.raises(KeyboardInterrupt):
            balls.sum_shares(atoms, masses, atoms, masses, grid, False, np.zeros((2, 9)))
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("step", [1e-300, 1e-6])
def test_a_grid_of_too_many_points_is_widened_and_covers_the_same(step):
    points, widened = balls.grid_of(4, 100, 1e-100, 1e100, step, 1e-3, 2000)
    assert widened and 1000 < len(points) <= 2000
    assert points[0] <= 1e-100 and points[-1] >= 1e100 and np.all(np.diff(points) > 0)


def test_cells_of_hardly_any_mass_are_left_out_below():
    values, masses, lost, error, _ = balls._law(10**6, 6.4, False, (2.0**-18, 0.011), 1e-307)
    assert np.all(np.diff(values) > 0)
    assert values @ masses == pytest.approx(1, abs=lost + error)


def test_the_smallest_delta_has_an_interval():
    bound = binned(10**6, 6.4, 2, delta=1e-300)
    assert 0.006 < bound.lower <= bound.upper <= 0.0083
    beside = binned(10**6, 6.4, 2, (ApproximateDP(1.0, 1e-3), 1), delta=1e-300)
    assert 0.006 < beside.lower < beside.upper == math.inf


def test_mixed_ledgers():
    both = (
        (BallsInBins(20, JointGaussian((2.0, 3.0))), 4),
        (PoissonSampled(0.05, Gaussian(1.5)), 40),
        (Gaussian(5.0), 2),
    )
    bound = spent(ACCOUNTANT, *both)
    assert bound.lower < bound.upper < 1.005 * bound.lower
    parts = [spent(ACCOUNTANT, part, delta=1e-5 / 3).upper for part in both]
    assert max(parts) < bound.upper < sum(parts)


def test_groups_are_bounded_by_unsampled_noise():
    bound = group_epsilon(ACCOUNTANT, ledger_of((BallsInBins(20, Gaussian(8.0)), 4)), 1e-5, 3)
    assert binned(20, 8.0, 4).upper < bound.upper
    assert bound.upper <= gaussian_epsilon(2 * 3 / 8.0, 1e-5) * (1 + 1e-6)


def test_one_bin_is_no_sampling_and_other_noise_or_relations_are_refused():
    assert binned(1, 2.0, 3) == spent(ACCOUNTANT, (Gaussian(2.0), 3))
    assert binned(4, 0.0).upper == math.inf
    for noise, relation in ((Laplace(3.0), ADD_REMOVE), (Gaussian(3.0), REPLACE_ONE)):
        with pytest.raises(UnsupportedEventError):
            spent(LossDistributionAccountant(relation), (BallsInBins(4, noise), 1))
