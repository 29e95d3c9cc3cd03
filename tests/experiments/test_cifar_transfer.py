"""Pre-training and private transfer, run as a user runs them, on images of noise in CIFAR's
layout.
"""

import hashlib
import json
from functools import cache

from common import job, sweep_flags, sweeps
from common.linear import NORM

import cifar_transfer
import numpy as np
import pytest
from cifar_transfer import RULE

from datasets.augment import centre_crop, standardise_images
from datasets.cifar import load_cifar10
from features import frozen, views
from minidp.errors import ParameterError
from minidp.run import load_model
from minidp.run.verify import verify

RECORD = 3072
IMAGES = 60  # of each part in a smoke run
PRETRAIN = "--epochs 1 --dropout 0.5 --smoke --quiet"


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Folders `cifar` and `public`: a few hundred random records, CIFAR-10's files filled up with
    zeros.
    """
    place, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(1)

    def records(n, label_bytes, classes):
        rows = rng.integers(0, 256, (n, label_bytes + RECORD), dtype=np.uint8)
        rows[:, :label_bytes] = 0
        rows[:, label_bytes - 1] = np.arange(n) % classes
        return rows.tobytes()

    for folder in ("cifar", "public"):
        (place / folder).mkdir()
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        with open(place / "cifar" / name, "wb") as file:
            file.write(records(600, 1, 10))
            file.truncate(10_000 * (RECORD + 1))  # sparse: label 0, black
    for name in ("train.bin", "test.bin"):
        (place / "public" / name).write_bytes(records(140, 2, 7))
    return place


@pytest.fixture(scope="session")
def pretrained(folders):
    """The folder of a tiny pre-training run of the paper's layers."""
    out = folders / "paper"
    line = f"pretrain --public-data {folders / 'public'} --out {out} {PRETRAIN}"
    assert cifar_transfer.main(line.split()) == 0
    return out


@pytest.fixture(scope="session")
def train(pretrained, folders, tmp_path_factory):
    """train(command) -> (folder, result) of a smoke run on the pre-trained file; each is made once.

    The 60,000 records are read once for all runs.
    """
    load = cache(load_cifar10)

    @cache
    def run(line):
        out = tmp_path_factory.mktemp("run") / "out"
        line += "" if line.startswith("head") or "--views" in line else " --views 2"
        flags = f"--data-dir {folders / 'cifar'} --smoke --quiet --out {out}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(job.cifar, "load_cifar10", load)
            patch.setattr(job, "SMOKE_COLOURS", IMAGES)
            words = f"{line} {flags} --pretrained {pretrained / 'pretrained.npz'}".split()
            assert cifar_transfer.main(words) == 0
        return out, json.loads((out / "result.json").read_text())

    return run


def test_pretrained_convolutions_stay_as_they_are_and_dense_layers_train(pretrained, train):
    about = json.loads((pretrained / "pretrain.json").read_text())
    digest = hashlib.sha256((pretrained / "pretrained.npz").read_bytes()).hexdigest()
    out, result = train("train --multiplicity 3")
    groups = {group["name"]: group["clip_norm"] for group in result["settings"]["clip_groups"]}
    assert groups == {"dense1": 3.0, "dense2": 3.0, "dense3": 6.0}
    assert result["pretrained"] == {key: about[key] for key in result["pretrained"]}
    assert result["pretrained"]["classes"] == 7 and result["pretrained_sha256"] == digest
    assert "140 public images of 7 classes" in result["notice"]
    assert "Taken to be public" in (out / "privacy.md").read_text()
    with np.load(pretrained / "pretrained.npz") as before, np.load(out / "model.npz") as after:
        np.testing.assert_array_equal(before["conv2.W"], after["conv2.W"])
        assert (before["dense1.W"] != after["dense1.W"]).any() and after["dense3.W"].shape == (
            384,
            10,
        )


@pytest.mark.parametrize(
    "flags, groups",
    [
        ("--train-layers softmax --views 3 --multiplicity 4", 1),
        ("--train-layers top --clipping flat --views 0", 1),
        ("--watch-norms", 3),
    ],
)
def test_other_choices_train_what_they_say(flags, groups, train):
    out, result = train(f"train {flags}")
    assert len(result["settings"]["clip_groups"]) == groups
    statement = (out / "privacy.md").read_text()
    assert ("views of it, clipped as one" in statement) == ("--multiplicity" in flags)
    assert not verify(out).failed


def test_standardised_features_leave_the_function_as_it_was(pretrained, folders):
    with (
        np.load(pretrained / "checkpoint.npz") as before,
        np.load(pretrained / "pretrained.npz") as after,
    ):
        mean, scale = after["standardise1.mean"], after["standardise1.scale"]
        W, b = before["network/dense1.W"], before["network/dense1.b"]
        x = np.random.default_rng(0).random((5, len(mean)), dtype=np.float32)
        np.testing.assert_allclose(
            (x - mean) / scale @ after["dense1.W"] + after["dense1.b"], x @ W + b, atol=1e-4
        )
        assert (mean > 0).any() and scale.std() > 0


def test_accuracy_over_views_is_that_of_the_weights_in_the_saved_model(train, folders):
    out, found = train("train --baseline --average 0.9 --epochs 3 --seed 1")
    assert found["epsilon"]["moments"]["upper"] == "inf"
    model = load_model(out / "model.npz").network
    dataset = load_cifar10(folders / "cifar", progress=False)
    logits = views.mean_over_views(lambda view: model.forward(view)[0], dataset.x_test[:IMAGES], 24)
    over_views = (logits.argmax(axis=1) == dataset.y_test[:IMAGES]).mean()
    assert found["test_views"] == 10 and 0 < over_views < 1
    # threads round sums differently
    assert found["test_accuracy_over_views"] == pytest.approx(over_views, abs=0.003)


def test_head_trains_one_layer_on_what_several_layers_give(pretrained, train, folders):
    out, result = train("head --target-epsilon 1000")
    (group,), statement = result["settings"]["clip_groups"], (out / "privacy.md").read_text()
    assert not verify(out).failed and group["clip_norm"] == pytest.approx(RULE["clip"] * NORM)
    assert "chosen on public images" in statement
    assert result["tuning"]["looked_at_training_data"] is False
    with np.load(out / "model.npz") as model:
        assert abs(model["centre.mean"]).max() > 0
    layers, _ = frozen.load_pretrained(pretrained / "pretrained.npz", np.random.default_rng(0))
    images = standardise_images(
        centre_crop(load_cifar10(folders / "cifar", progress=False).x_train[:5], 24)
    )
    rows, found, x = frozen.Taps(layers, 4, NORM)(images), [], images
    for layer in layers[:-1]:
        x, _ = layer.forward(x)
        if layer.name in ("relu1", "standardise1", "relu3", "relu4"):
            y = x.reshape(5, 4, 3, 4, 3, 64).mean(axis=(2, 4)).reshape(5, -1) if x.ndim == 4 else x
            y = y - y.mean(axis=1, keepdims=True)
            found.append(y / np.linalg.norm(y, axis=1, keepdims=True) * NORM / 2)
    np.testing.assert_allclose(rows, np.concatenate(found, axis=1), rtol=1e-3, atol=1e-3)


def test_each_convolution_of_the_deep_network_is_normalised():
    file = frozen.PRETRAINED / cifar_transfer.HeadConfig.shipped
    layers, _ = frozen.load_pretrained(file, np.random.default_rng(0))
    assert [layer.kind for layer in layers].count("groupnorm") == 3


def test_a_file_that_pretraining_did_not_write_is_refused(train):
    out, _ = train("train --multiplicity 3")
    with pytest.raises(ParameterError, match="`cifar_transfer.py pretrain` wrote"):
        frozen.load_pretrained(out / "model.npz", np.random.default_rng(0))


def test_layers_that_a_network_lacks_are_not_trained(pretrained):
    layers, _ = frozen.load_pretrained(pretrained / "pretrained.npz", np.random.default_rng(0))
    config = cifar_transfer.TrainConfig(train_layers="both")
    fewer = [layer for layer in layers if layer.name != "dense2"]
    with pytest.raises(ParameterError, match="3 dense layers, got one with 2"):
        cifar_transfer.split(config, fewer, 10, np.random.default_rng(0))


@pytest.fixture
def here(monkeypatch):
    """Runs of a sweep are made in this process, on few images of files that are read once."""

    def perform(runs, *rest):
        for run in runs:
            sweeps.train(run)
        return {run: run.result() for run in runs}

    monkeypatch.setattr(sweep_flags, "perform", perform)
    monkeypatch.setattr(job.cifar, "load_cifar10", cache(load_cifar10))
    monkeypatch.setattr(job, "SMOKE_COLOURS", IMAGES)


def test_figure_and_sentences_say_what_their_runs_say(folders, run_script, tmp_path, here):
    flags = f"--data-dir {folders / 'cifar'} --smoke --quiet --out out"
    for name in ("finetuned", "sentences"):
        run_script(f"cifar_transfer.py {name} {flags}", check=0)

    def read(name):
        return json.loads((tmp_path / "out" / f"{name}.json").read_text())

    level = read("figure_6-finetuned")["levels"]["finetuned4"]
    four = read("cifar_transfer-finetuned4-seed1")
    for key in ("test_accuracy", "steps", "test_accuracy_over_views"):
        assert level[key] == four[key]
    found = read("cifar_transfer-sentences")["quantities"]
    eight, baseline = (
        read(f"cifar_transfer-{name}-seed1")["test_accuracy"] for name in ("finetuned8", "baseline")
    )
    assert found["privacy_costs"] == pytest.approx(baseline - eight)
    assert found["softmax_norm_over_others_not_private"] > 0
