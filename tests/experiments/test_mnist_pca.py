"""The main job, run as a user runs it."""
import csv
import json
import math
import subprocess
import sys

import pytest
from common.verdicts import EXPECTED, look_up

from minidp.mechanism.rounding import products
from minidp.privacy import Filter, Gaussian, JointGaussian, Ledger, MomentsAccountant, PoissonSampled
from minidp.run.verify import verify
from tests.support.scripts import command, environment

SMOKE = ("mnist_pca.py", "--smoke", "--quiet", "--dataset", "strokes")


def result_of(tmp_path, out="out"):
    return json.loads((tmp_path / out / "result.json").read_text())


def test_smoke_writes_everything_it_names(run_script, tmp_path):
    done = run_script(*SMOKE, "--out", "out", check=0)
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"result.json", "metrics.csv", "curves.png", "ledger.json", "model.npz", "privacy.md"} <= files
    result = result_of(tmp_path)
    assert result["experiment"] == "mnist_pca" and result["dataset"] == "strokes"
    assert result["dataset_sha256"] is None and result["reproducible"] is False and result["seed"] is None
    assert result["device"] in ("cpu", "gpu") and 0 <= result["test_accuracy"] <= 1
    assert result["steps"] == 20 and result["epochs"] == 2
    for entry in json.loads(EXPECTED.read_text())["mnist_pca"]:
        for path in (entry["quantity"], *entry["when"]):
            look_up(result, path)  # KeyError where a result no longer says what expected.json asks
    statement = (tmp_path / "out" / "privacy.md").read_text()
    for text in (result["notice"], "PoissonSampler", "not_private", "test set", "Arithmetic: ordinary",
                 result["ledger_sha256"], "noise std 16 on the sum, 0.266667 on the mean"):
        assert text in statement
    assert result["notice"] in done.stdout
    rows = list(csv.DictReader((tmp_path / "out" / "metrics.csv").read_text().splitlines()))
    assert [float(row["epoch"]) for row in rows] == [1, 2]
    assert float(rows[-1]["epsilon"]) == pytest.approx(result["epsilon"]["moments"]["upper"])
    assert (tmp_path / "out" / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_ledger_says_what_was_done_and_the_result_follows_from_it(run_script, tmp_path):
    run_script(*SMOKE, "--out", "out", "--noise", "small", "--no-train-metrics", check=0)
    ledger = Ledger.load(tmp_path / "out" / "ledger.json")
    charged = 2.0 / products(60, "auto").factor
    assert ledger.items() == [(Gaussian(4.0), 1), (PoissonSampled(0.1, JointGaussian((charged, charged))), 20)]
    result = result_of(tmp_path)
    assert result["epsilon"]["moments"]["upper"] == MomentsAccountant().epsilon(ledger, 1e-5).upper
    assert result["ledger_sha256"] == ledger.sha256()
    assert set(result["epsilon"]) == {"moments", "renyi", "loss_distribution", "gaussian_clt", "advanced", "basic"}
    assert result["epsilon"]["gaussian_clt"]["kind"] == "approximation"
    assert result["command"] == ("python experiments/mnist_pca.py --epochs 2 --lot-size 60 --no-train-metrics --smoke "
                                 "--noise small --dataset strokes")
    assert "out" not in result["config"] and str(tmp_path) not in json.dumps(result)
    tight = result["epsilon"]["loss_distribution"]
    assert tight["lower"] <= tight["upper"] <= result["epsilon"]["moments"]["upper"]


def test_a_target_is_reached_and_not_exceeded(run_script, tmp_path):
    run_script(*SMOKE, "--out", "out", "--target-epsilon", 3, check=0)
    result = result_of(tmp_path)
    ledger = Ledger.load(tmp_path / "out" / "ledger.json")
    assert result["epsilon"]["moments"]["upper"] <= 3 and result["stopped"] == "finished"
    with pytest.raises(Exception, match="budget"):
        Filter(MomentsAccountant(), 3, 1e-5, ledger).charge(ledger.items()[-1][0])


@pytest.mark.parametrize("flags", [("--baseline",), ("--noise-multiplier", 0), ("--pca-noise-multiplier", 0)])
def test_without_noise_epsilon_is_infinite(flags, run_script, tmp_path):
    run_script(*SMOKE, "--out", "out", *flags, check=0)
    result = result_of(tmp_path)
    assert {result["epsilon"]["moments"][key] for key in ("lower", "estimate", "upper")} == {"inf"}
    assert "infinite" in (tmp_path / "out" / "privacy.md").read_text()


@pytest.mark.parametrize("flags, sampler, relation", [
    (("--sampler", "fixed", "--gradients", "explicit"), "FixedSizeSampler", "replace_one"),
    (("--sampler", "shuffle", "--clipping", "flat", "--projection", "random"), "ShuffleSampler", "zero_out"),
    (("--sampler", "balls-in-bins", "--epochs", 2), "BallsInBinsSampler", "add_remove"),
    (("--projection", "none", "--activation", "tanh", "--optimizer", "adam", "--no-train-metrics"),
     "PoissonSampler", "add_remove"),
    (("--bands", 4), "CyclicSampler", "add_remove"),
    (("--clip-quantile", 0.5, "--optimizer", "adam-bc", "--noise-multiplier", 3), "PoissonSampler", "add_remove"),
])
def test_other_choices_run_and_are_named(flags, sampler, relation, run_script, tmp_path):
    run_script(*SMOKE, "--out", "out", *flags, check=0)
    result = result_of(tmp_path)
    assert (result["sampler"], result["relation"]) == (sampler, relation)
    assert math.isfinite(result["epsilon"]["moments"]["upper"])
    assert sampler in (tmp_path / "out" / "privacy.md").read_text()
    assert (result["train_accuracy"] is None) == ("--no-train-metrics" in flags)
    assert verify(tmp_path / "out").failed == []


def test_a_delta_that_guarantees_little_is_said(run_script, tmp_path):
    said = lambda delta, out: run_script(*SMOKE, "--delta", delta, "--epochs", 1, "--out", out, check=0).stdout
    assert "is not below 1/600" in said(0.01, "large") and "is not below" not in said(1e-5, "small")


def test_a_finished_run_is_left_alone_and_says_which_of_its_files_were_deleted(run_script, tmp_path):
    run_script(*SMOKE, "--out", "out", check=0)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert "already holds a run" in run_script(*SMOKE, "--out", "out", check=2).stderr
    assert "is finished" in run_script(*SMOKE, "--out", "out", "--resume", check=0).stdout
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for name, missing in (("model.npz", "model.npz of it is"), ("privacy.md", "model.npz, privacy.md of it are")):
        (tmp_path / "out" / name).unlink()
        said = run_script(*SMOKE, "--out", "out", "--resume", check=2).stderr
        assert said.startswith(f"error: out is finished, and {missing} missing") and said.count("\n") == 1


def test_real_mnist_learns(mnist_dir, run_script, tmp_path):
    """Five epochs at sigma 2: about 91% with seed 1; untrained is 10%."""
    run_script("mnist_pca.py", "--quiet", "--data-dir", mnist_dir, "--dataset", "mnist", "--noise", "small",
               "--epochs", 5, "--seed", 1, "--out", "out", check=0)
    result = result_of(tmp_path)
    assert result["test_accuracy"] > 0.88 and result["steps"] == 500
    assert result["dataset_sha256"] is not None and result["notice"] == ""


@pytest.mark.parametrize("script", ["mnist_pca.py", "accountant_curves.py"])
def test_a_python_without_minidp_is_one_line(script, tmp_path):
    bare = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-S", *command(script)[1:]], cwd=tmp_path, env=bare, text=True,
                          capture_output=True)
    assert done.returncode == 2 and "pip install" in done.stderr and len(done.stderr.splitlines()) == 1
