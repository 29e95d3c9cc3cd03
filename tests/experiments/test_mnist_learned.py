"""Features learned from synthetic digits, and a private head on them."""

from common.linear import NORM, begin

import numpy as np
from mnist_learned import FORM

from datasets import strokes
from features import learned
from minidp import load_model, nn
from minidp.backend import Backend
from minidp.privacy import Gaussian

IMAGES, LABELS = strokes.draw(1, 0)


def test_smoke_trains_a_network_on_synthetic_digits(run_script, tmp_path):
    done = run_script("strokes_features.py --smoke --out made.npz", check=0)
    model = load_model(tmp_path / "made.npz")
    assert (
        "1,000 synthetic digits" in done.stdout
        and model.about["accuracy on synthetic digits"] > 0.3
    )
    assert model.about["command"] == "python experiments/strokes_features.py --out made.npz --smoke"
    images, labels = learned.draw(1, 4)
    found = model.network.predict(learned.to_float(images)).argmax(axis=1)
    assert np.mean(found == labels) == model.about["accuracy on synthetic digits"]


def test_the_layer_begins_as_the_networks_end():
    networks, backend = learned.load(FORM["networks"]), Backend.numpy()
    (rows,) = learned.features(IMAGES, backend, FORM, networks=networks)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), NORM, rtol=0.1)
    weights, biases = learned.first_weights(networks, FORM)
    x = learned.to_float(IMAGES)
    logits = np.mean(
        [load_model(file).network.predict(x) for file in learned.FILES[: FORM["networks"]]], axis=0
    )
    np.testing.assert_allclose(rows @ weights + biases, FORM["prior"] * logits, atol=1e-3)
    assert (logits.argmax(axis=1) == LABELS).mean() > 0.97
    dense, centre = nn.Dense(rows.shape[1], 10, rng=np.random.default_rng(0)), rows.mean(axis=0)
    begin(dense, (weights, biases), centre)
    np.testing.assert_allclose(dense.forward(rows - centre)[0], rows @ weights + biases, atol=1e-3)


def test_smoke_charges_the_mean_and_the_lots(made):
    run = made("mnist_learned.py --smoke --quiet --dataset strokes")
    (mean, once), (_, lots) = run.ledger.items()
    assert isinstance(mean, Gaussian) and (once, lots) == (1, 12)
    assert run.result["accuracy_before_training"] > 0.97 and run.result["test_accuracy"] > 0.9
    assert "networks trained on synthetic digits" in run.statement
    assert run.result["tuning"]["looked_at_training_data"] is True  # these are synthetic
