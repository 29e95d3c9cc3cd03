"""A dense layer on scattering features, run as a user runs it."""
import numpy as np
import pytest
from features.random_features import RandomFeatures
from features.scattering import Scattering
from mnist_best import FEATURES, KERNEL_WIDTH, NORM, SETTINGS, Config

from minidp.data import load_strokes
from minidp.mechanism.rounding import products
from minidp.privacy import Gaussian, Ledger, LossDistributionAccountant, PoissonSampled

SMOKE = ("mnist_best.py", "--smoke", "--quiet", "--dataset", "strokes")
NOISELESS = ("--noise-multiplier", 0, "--mean-noise-multiplier", 0)


def test_smoke_releases_the_mean_and_trains_privately(made):
    run = made(*SMOKE)
    result = run.result
    (group,) = result["settings"]["clip_groups"]
    sigma, sigma_mean = group["noise_multiplier"], result["settings"]["mean_noise_multiplier"]
    assert run.ledger.items() == [
        (Gaussian(sigma_mean), 1), (PoissonSampled(1 / 6, Gaussian(sigma / products(100, "auto").factor)), 12)]
    assert "mean of the features, clipped to norm 54" in run.statement
    assert "epsilon leaves this choice out" in run.statement
    tuning = result["tuning"]
    assert tuning["in_epsilon"] is False
    assert tuning["epsilon_had_the_choice_been_private"] > result["epsilon"]["renyi"]["upper"]


def test_settings_follow_the_target():
    numbers = lambda **flags: [getattr(Config(**flags), name) for name in ("lot_size", "sigma", "mean_sigma")]
    assert numbers(target_epsilon=0.3) == numbers(target_epsilon=0.5) != numbers()
    assert numbers(target_epsilon=2.95) == numbers(target_epsilon=2.93) == numbers()
    assert numbers(target_epsilon=1.0, lot_size=7, noise_multiplier=3.0, mean_noise_multiplier=9.0) == [7, 3.0, 9.0]
    assert Config().as_chosen and not any(Config(**flags).as_chosen for flags in (
        {"lot_size": 7}, {"noise_multiplier": 3.0}, {"clip_norm": 1.0}, {"learning_rate": 1.0}))
    assert Config(baseline=True).sigma == Config(baseline=True).mean_sigma == 0


@pytest.mark.parametrize("target", SETTINGS)
def test_every_setting_gives_about_300_lots(target):
    lot, sigma, mean_sigma, _, _ = SETTINGS[target]
    accountant = LossDistributionAccountant()
    least, most = (accountant.epsilon(Ledger(entries=[
        (Gaussian(mean_sigma),), (PoissonSampled(lot / 60_000, Gaussian(sigma)), steps)]), 1e-5) for steps in (295, 320))
    assert least.upper < target < most.lower


def test_without_noise_it_learns_and_the_mean_is_that_of_the_features(made):
    run = made(*SMOKE, *NOISELESS, "--epochs", 10, "--held-out", 100)
    result = run.result
    assert result["test_accuracy"] > 0.8
    assert result["settings"]["dataset_size"] == 500 and "tuning" not in result
    images = load_strokes((600, 300), on_notice=lambda line: None, progress=False).x_train[:500, 2:26, 2:26]
    features = Scattering(24, pad=0)(images / np.float32(255)).reshape(500, 36, 27, 3)
    features = features - features.mean(axis=(1, 3), keepdims=True)
    features /= np.sqrt((features**2).mean(axis=(1, 3), keepdims=True) + 1e-5)
    cosines = NORM * RandomFeatures(2916, FEATURES, KERNEL_WIDTH)(features.reshape(500, 2916))
    norms = np.linalg.norm(cosines, axis=1, keepdims=True)
    np.testing.assert_allclose(norms, NORM, rtol=0.06)
    mean = np.load(run.out / "model.npz")["centre.mean"]
    np.testing.assert_allclose(mean, (cosines * np.minimum(1, NORM / norms)).mean(axis=0), atol=2e-3)
