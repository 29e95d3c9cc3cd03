"""Variants of the main job, the convolutional network, and the files of all private experiments."""

import pytest

from minidp.__main__ import main
from minidp.mechanism.rounding import products
from minidp.privacy import Gaussian, JointGaussian, PoissonSampled
from minidp.run import load_model

FACTOR = products(60, "auto").factor
DIGITS = "--smoke --quiet --dataset strokes"
SMOKE = f"mnist_variants.py {DIGITS} --no-train-metrics"


@pytest.mark.parametrize(
    "flags",
    [
        "--first-hidden 20 --hidden 30",
        "--projection none --first-hidden 6 --hidden 20",
    ],
)
def test_a_second_hidden_layer_is_clipped_and_charged_with_the_others(flags, made):
    run = made(f"{SMOKE} --epochs 1 {flags}")
    groups = [group["name"] for group in run.result["settings"]["clip_groups"]]
    assert groups == ["dense1", "dense2", "dense3"]
    assert run.ledger.items()[-1] == (PoissonSampled(0.1, JointGaussian((4.0 / FACTOR,) * 3)), 10)


def test_falling_noise_is_charged_stage_by_stage(made):
    flags = "--steps 14 --noise-multiplier 6 --final-noise-multiplier 3 --stage-lots 4"
    run = made(f"{SMOKE} {flags}")
    assert run.ledger.items() == [
        (Gaussian(7.0), 1),
        *(
            (PoissonSampled(0.1, JointGaussian((sigma / FACTOR,) * 2)), lots)
            for sigma, lots in ((6.0, 4), (5.0, 4), (4.0, 4), (3.0, 2))
        ),
    ]
    assert "Stages(first=6.0, last=3.0, stages=4, length=4): follows the step" in run.statement


@pytest.mark.parametrize("setting, sigma, clip_norm", [(1, 1.3, 1.5), (2, 1.1, 1.0), (3, 0.7, 1.5)])
def test_settings_are_those_of_the_tutorial(setting, sigma, clip_norm, made):
    run = made(f"mnist_cnn.py {DIGITS} --setting {setting} --clipping per-layer")
    event, count = run.ledger.items()[0]
    charged = sigma / products(30, "auto").factor
    assert event == PoissonSampled(0.1, JointGaussian((charged,) * 4)) and count == 10
    assert "conv1.W, conv1.b" in run.statement
    assert {group["clip_norm"] for group in run.result["settings"]["clip_groups"]} == {clip_norm}
    assert load_model(run.out / "model.npz").image_shape == (28, 28)


@pytest.mark.parametrize(
    "line",
    [
        "mnist_pca.py --clipping flat",
        "mnist_pca.py --projection random --gradients explicit",
        "mnist_variants.py --final-noise-multiplier 3 --stage-lots 2",
        "mnist_variants.py --watch-norms",
        "mnist_cnn.py",
        "mnist_best.py",
        "mnist_learned.py",
    ],
)
def test_a_run_verifies(line, made):
    run = made(f"{line} {DIGITS} --steps 5")
    assert all(setup["noise_multiplier"] > 0 for setup in run.result["settings"]["setup"])
    assert main(["verify", str(run.out)]) == 0
