"""A dense layer on scattering features, run as a user runs it."""

from common.linear import settings, settle

import pytest
from mnist_best import RULE, Config

from minidp.mechanism.rounding import products
from minidp.privacy import Gaussian, Ledger, LossDistributionAccountant, PoissonSampled

SMOKE = "mnist_best.py --smoke --quiet --dataset strokes"


def test_smoke_releases_the_mean_and_trains_privately(made):
    run = made(SMOKE)
    result = run.result
    (group,) = result["settings"]["clip_groups"]
    sigma, sigma_mean = group["noise_multiplier"], result["settings"]["mean_noise_multiplier"]
    mean, lot = (
        Gaussian(sigma_mean),
        PoissonSampled(1 / 6, Gaussian(sigma / products(100, "auto").factor)),
    )
    assert run.ledger.items() == [(mean, 1), (lot, 12)]
    assert "mean of the features, clipped to norm 54" in run.statement
    assert "chosen on synthetic digits" in run.statement
    assert "known from the literature" in run.statement
    assert result["tuning"]["looked_at_training_data"] is True  # these are synthetic
    whole = Ledger(entries=[(mean,), (lot, RULE["steps"])])
    assert 0.998 * 2.93 < LossDistributionAccountant().epsilon(whole, 1e-5).upper <= 2.93


def test_settings_follow_epsilon_delta_and_size_unless_they_are_given():
    one, two = settings(1.0, 1e-5, 60_000, RULE), settings(1.0, 1e-5, 30_000, RULE)
    assert one["lot_size"] == pytest.approx(2 * two["lot_size"], abs=2)
    assert one["learning_rate"] == pytest.approx(2 * two["learning_rate"])
    more, less = settings(8.0, 1e-5, 60_000, RULE), settings(1.0, 1e-7, 60_000, RULE)
    assert more["lot_size"] > one["lot_size"] > less["lot_size"]
    given = settle(Config(target_epsilon=1.0, lot_size=7, average=0.0), 60_000)
    assert (given.lot_size, given.average, given.clip_norm) == (7, 0.0, one["clip_norm"])
    for flags in ({"lot_size": 7}, {"average": 0.5}, {"baseline": True}):
        assert not Config(**flags).as_chosen
    assert Config(target_epsilon=1.0, delta=1e-6, smoke=True, epochs=2).as_chosen
    assert Config(baseline=True).sigma == settle(Config(baseline=True), 600).mean_sigma == 0


def test_without_noise_it_learns(made):
    run = made(f"{SMOKE} --noise-multiplier 0 --mean-noise-multiplier 0 --epochs 10")
    assert run.result["test_accuracy"] > 0.8 and "tuning" not in run.result
