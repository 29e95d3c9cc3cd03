"""A dense layer on scattering of colour images, run as a user runs it."""

from common import job

import cifar_best
import numpy as np

from datasets.dataset import Dataset
from features import colours
from minidp.backend import Backend


def test_colours_are_told_apart_privately(made, monkeypatch, rng):
    y = np.arange(400) % 10
    x = (
        rng.integers(0, 100, (400, 32, 32, 3)) + 15 * y[:, None, None, None] * (np.arange(3) == 1)
    ).astype("uint8")
    dataset = Dataset("cifar10", x, y, x[:100], y[:100], classes=10, nominal_size=400)
    monkeypatch.setattr(job.cifar, "load_cifar10", lambda *args, **flags: dataset)
    run = made("cifar_best.py --smoke --quiet --target-epsilon 50")
    assert (
        run.result["tuning"]["looked_at_training_data"] is False
        and run.result["test_accuracy"] > 0.2
    )
    assert (
        "chosen on public images of other classes" in run.statement
        and "mean of the features, clipped to norm 54" in run.statement
    )


def test_an_image_and_its_mirror_image_have_the_same_features(rng):
    x = rng.integers(0, 256, (2, 32, 32, 3)).astype("uint8")
    form, pair = cifar_best.FORM, (x, x[:, :, -np.arange(32)])
    one, other = (next(colours.features(each, Backend.numpy(), form)) for each in pair)
    np.testing.assert_allclose(one, other, atol=0.01)
    assert one.shape == (2, cifar_best.PROBLEM.width) and np.abs(one[0] - one[1]).max() > 1
