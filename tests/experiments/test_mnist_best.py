"""A dense layer on scattering features, run as a user runs it, and the search for its settings."""

import json

import mnist_best
import mnist_best_settings
import mnist_learned
import mnist_learned_settings
import numpy as np
import pytest
from common.linear import NORM, settings, settle
from common.verdicts import EXPECTED
from features.random_features import RandomFeatures
from features.scattering import Scattering
from mnist_best import FORM, RULE, Config

from minidp.data import load_mnist, load_strokes
from minidp.data.mnist import FILES
from minidp.errors import DataError, ParameterError
from minidp.mechanism.rounding import products
from minidp.privacy import Gaussian, Ledger, LossDistributionAccountant, PoissonSampled

SMOKE = ("mnist_best.py", "--smoke", "--quiet", "--dataset", "strokes")
NOISELESS = ("--noise-multiplier", 0, "--mean-noise-multiplier", 0)
SEARCHES = {mnist_best: mnist_best_settings, mnist_learned: mnist_learned_settings}
FOUND = {
    script: json.loads((EXPECTED.parent / "results" / f"{script.NAME}_settings.json").read_text())
    for script in SEARCHES
}


def test_smoke_releases_the_mean_and_trains_privately(made):
    run = made(*SMOKE)
    result = run.result
    (group,) = result["settings"]["clip_groups"]
    sigma, sigma_mean = group["noise_multiplier"], result["settings"]["mean_noise_multiplier"]
    mean, lot = (
        Gaussian(sigma_mean),
        PoissonSampled(1 / 6, Gaussian(sigma / products(100, "auto").factor)),
    )
    assert run.ledger.items() == [(mean, 1), (lot, 12)]
    assert "mean of the features, clipped to norm 54" in run.statement
    assert (
        "chosen on drawn digits" in run.statement and "known from the literature" in run.statement
    )
    assert (
        result["tuning"]["chosen_on"] == "strokes"
        and result["tuning"]["looked_at_training_data"] is True
    )  # these are drawn
    whole = Ledger(entries=[(mean,), (lot, RULE["steps"])])
    assert 0.998 * 2.93 < LossDistributionAccountant().epsilon(whole, 1e-5).upper <= 2.93


def test_settings_follow_epsilon_delta_and_size():
    one, two = settings(1.0, 1e-5, 60_000, RULE), settings(1.0, 1e-5, 30_000, RULE)
    assert (
        one["lot_size"] == pytest.approx(2 * two["lot_size"], abs=2)
        and one["clip_norm"] == two["clip_norm"]
    )
    assert one["learning_rate"] == pytest.approx(2 * two["learning_rate"])
    more, less = settings(8.0, 1e-5, 60_000, RULE), settings(1.0, 1e-7, 60_000, RULE)
    assert more["lot_size"] > one["lot_size"] > less["lot_size"]
    given = settle(Config(target_epsilon=1.0, lot_size=7, clip_norm=9.0), 60_000)
    assert (given.lot_size, given.clip_norm, given.mean_noise_multiplier) == (
        7,
        9.0,
        one["mean_noise_multiplier"],
    )
    assert given.average == RULE["decay"] and settle(Config(average=0.0), 60_000).average == 0
    assert Config().as_chosen and not any(
        Config(**flags).as_chosen
        for flags in (
            {"lot_size": 7},
            {"noise_multiplier": 3.0},
            {"clip_norm": 1.0},
            {"learning_rate": 1.0},
            {"average": 0.5},
            {"steps": 3},
            {"sampler": "fixed"},
            {"accountant": "moments"},
            {"baseline": True},
        )
    )
    assert Config(
        target_epsilon=1.0, delta=1e-6, seed=1, arithmetic="exact", smoke=True, epochs=2
    ).as_chosen
    assert Config(baseline=True).sigma == settle(Config(baseline=True), 600).mean_sigma == 0


def test_a_search_refuses_a_file_that_it_could_not_write(tmp_path):
    with pytest.raises(ParameterError, match="expected a file in a folder that is there"):
        mnist_best_settings.search(
            mnist_best_settings.Config(json=str(tmp_path / "none" / "found.json"))
        )


def test_the_settings_are_those_that_the_committed_search_chose():
    for script, found in FOUND.items():
        assert (
            found["choice"] == {"form": script.FORM, "rule": script.RULE}
            and found["dataset"] == "strokes"
        )
    found = FOUND[mnist_best]
    best = found["rules"][0]
    assert all(best[name] == RULE[name] for name in ("travel", "clip", "power", "decay"))
    last = [one for one in found["tried"] if one["training images"] >= 60_000]
    assert {one["epsilon"] for one in last} >= {0.5, 1, 2, 2.93, 8}
    assert all(last[-1][name] == value for name, value in (FORM | RULE).items() if name in last[-1])


@pytest.mark.parametrize("script", SEARCHES, ids=lambda script: script.NAME)
def test_choosing_opens_no_file_of_mnist(script, tmp_path, monkeypatch, opened):
    for name in FILES:
        (tmp_path / f"{name}.gz").write_bytes(b"none")
    opened.clear()
    monkeypatch.setenv("MINIDP_DATA", str(tmp_path))
    of_mnist = lambda: [path for path in opened if any(name in path for name in FILES)]
    choice = SEARCHES[script].search(
        SEARCHES[script].Config(json=str(tmp_path / "found.json"), smoke=True)
    )
    assert any("found.json" in path for path in opened) and not of_mnist()
    with pytest.raises(DataError):
        load_mnist()
    assert of_mnist()
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["choice"] == choice and set(choice) == set(FOUND[script]["choice"])
    assert all(
        0 <= value <= 1
        for one in found["tried"]
        for value in np.ravel(one.get("accuracies", one.get("accuracy")))
    )


def test_without_noise_it_learns_and_the_mean_is_that_of_the_features(made):
    run = made(*SMOKE, *NOISELESS, "--epochs", 10)
    result = run.result
    assert result["test_accuracy"] > 0.8
    assert result["settings"]["dataset_size"] == 600 and "tuning" not in result
    side, groups, number = FORM["side"], FORM["groups"], FORM["cosines"]
    cut = (28 - side) // 2
    images = load_strokes((600, 300), on_notice=lambda line: None, progress=False).x_train[
        :, cut : 28 - cut, cut : 28 - cut
    ]
    places = (side // 4) ** 2
    features = Scattering(side, pad=0)(images / np.float32(255)).reshape(
        600, places, groups, 81 // groups
    )
    features = features - features.mean(axis=(1, 3), keepdims=True)
    features /= np.sqrt((features**2).mean(axis=(1, 3), keepdims=True) + 1e-5)
    inputs = 81 * places
    cosines = NORM * RandomFeatures(inputs, number, FORM["width"] * inputs**0.5)(
        features.reshape(600, inputs)
    )
    norms = np.linalg.norm(cosines, axis=1, keepdims=True)
    np.testing.assert_allclose(norms, NORM, rtol=0.06)
    mean = np.load(run.out / "model.npz")["centre.mean"]
    np.testing.assert_allclose(
        mean, (cosines * np.minimum(1, NORM / norms)).mean(axis=0), atol=2e-3
    )
