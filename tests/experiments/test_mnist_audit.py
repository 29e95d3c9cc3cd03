"""The one-run audit of the main job, on the drawn digits."""
import json

import mnist_audit
import numpy as np

from minidp.data import Dataset
from minidp.__main__ import main as minidp

FLAGS = ["--smoke", "--dataset", "strokes", "--quiet", "--device", "cpu", "--hidden", "30", "--pca-dim", "8"]


def dataset(size=60):
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (size, 2, 2)).astype(np.uint8)
    return Dataset("none", images, rng.integers(0, 10, size), images[:3], np.arange(3), 10, size)


def test_canaries_are_wrong_labels_and_excluded_ones_are_gone(rng):
    before = dataset()
    after, images, labels, included = mnist_audit.with_canaries(before, 20, rng)
    assert len(images) == len(labels) == len(included) == 20
    assert after.nominal_size == 60 and len(after.x_train) == 60 - (~included).sum()
    pairs = {(image.tobytes(), int(label)) for image, label in zip(after.x_train, after.y_train)}
    for image, label, inside in zip(images, labels, included):
        assert ((image.tobytes(), int(label)) in pairs) == inside
        assert before.y_train[[np.array_equal(x, image) for x in before.x_train].index(True)] != label
    untouched = {(image.tobytes(), int(label)) for image, label in zip(before.x_train, before.y_train)} & pairs
    assert len(untouched) == 40


def test_a_private_run_reports_a_bound_below_its_epsilon(tmp_path, capsys):
    figures = tmp_path / "figures.json"
    assert mnist_audit.main(["--audit-canaries", "100", "--out", str(tmp_path / "run"), "--json", str(figures), *FLAGS]) == 0
    found = json.loads(figures.read_text())
    assert found["epsilon_lower"] <= found["certified"] and 0 < found["included"] < found["canaries"] == 100
    assert "ok   one run, 100 canaries" in capsys.readouterr().out
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert "100 canaries planted" in result["notice"] and result["dataset_sha256"] is None
    # fewer examples in memory than the public number: nothing in the run's files may tell
    assert minidp(["verify", str(tmp_path / "run")]) == 0


def test_training_without_privacy_gives_its_canaries_away(tmp_path):
    figures = tmp_path / "figures.json"
    assert mnist_audit.main(["--audit-canaries", "200", "--out", str(tmp_path / "run"), "--json", str(figures), *FLAGS,
                             "--hidden", "300", "--baseline", "--projection", "none", "--epochs", "150",
                             "--learning-rate", "0.5", "--final-learning-rate", "0.5"]) == 0
    found = json.loads(figures.read_text())
    assert found["certified"] == "inf" and found["epsilon_lower"] > 0.5 and found["area"] > 0.8
