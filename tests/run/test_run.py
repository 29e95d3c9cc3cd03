"""A private run of a user of the library: the same folder, statement and verification as an
experiment's.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from minidp.__main__ import main
from minidp.errors import (
    BudgetExceededError,
    CheckpointError,
    DataError,
    ParameterError,
    ShapeError,
)
from minidp.mechanism import PoissonSampler
from minidp.privacy import Gaussian, Ledger, MomentsAccountant, RenyiAccountant
from minidp.run import Privacy, Run, RunFolder
from tests.support.guarded import allow_sync, guarded_backend
from tests.support.running import (
    LOT,
    SIZE,
    STEPS,
    interrupt,
    make_arrays,
    make_run,
    train,
)


class OwnAccountant(MomentsAccountant):
    name = "own"


def test_arrays_of_ones_own_are_trained_on_told_of_and_verified(tmp_path, capsys):
    result = train(tmp_path / "run")
    ledger = Ledger.load(tmp_path / "run" / "ledger.json")
    assert result["steps"] == result["steps_charged"] == ledger.count_of("step") == STEPS
    assert (
        result["settings"]["dataset_size"] == SIZE
        and result["settings"]["mean_noise_multiplier"] == 5.0
    )
    assert (
        main(["verify", str(tmp_path / "run")]) == 0 and "0 mismatches" in capsys.readouterr().out
    )
    said = make_run(tmp_path / "run").summary().splitlines()
    assert [line.split(":")[0] for line in said[-3:]] == ["quote", "read", "next"]
    assert "tightest certified bound" in said[-3] and str(tmp_path / "run") in said[-1]


def test_a_result_names_the_gradients_that_ran_and_on_a_device_what_explicit_ones_take(
    tmp_path, monkeypatch
):
    backend, names = guarded_backend(), ["dense1.W", "dense1.b", "dense2.W", "dense2.b"]
    here = make_run(tmp_path / "here").train(*make_arrays())
    monkeypatch.setattr("minidp.backend._budget", lambda xp, on_host: on_host if xp is np else 2000)
    with allow_sync():  # evaluation
        there = make_run(tmp_path / "there", backend=backend).train(
            *map(backend.asarray, make_arrays())
        )
    assert (
        here["gradients_ran"] == {"explicit": names[1::2], "factored": names[::2]}
        and "gradients_bytes" not in here
    )
    assert there["gradients_ran"] == here["gradients_ran"]
    assert there["gradients_bytes"] == {"lot": 4 * LOT * (4 * 5 + 5 + 5 * 3 + 3), "budget": 2000}


def test_private_records_are_named_by_a_keyed_hash_only(tmp_path):
    class Data:
        name, nominal_size, published, notice, sha256 = "own", SIZE, False, "", "ab" * 32

    train(tmp_path / "run", data=Data, stop=interrupt)
    assert not any(
        ("ab" * 32).encode() in path.read_bytes() for path in (tmp_path / "run").iterdir()
    )
    Data.sha256 = "cd" * 32
    with pytest.raises(CheckpointError, match="dataset_hmac_sha256 was"):
        make_run(tmp_path / "run", data=Data).open()
    Data.published = True
    assert train(tmp_path / "open", data=Data)["dataset_sha256"] == "cd" * 32


def test_figures_that_are_not_private_are_all_named_and_their_files_sealed_with_the_key(tmp_path):
    about = {"median_norms_not_private": [1.0], "colour": "red"}
    shown = train(tmp_path / "shown", about=about, train_metrics=True)
    kept = train(tmp_path / "kept")
    assert (
        shown["not_private"][-1] == "median_norms_not_private"
        and "train_accuracy" in shown["not_private"]
    )
    assert "median_norms_not_private" in (tmp_path / "shown" / "privacy.md").read_text()
    assert (
        kept["not_private"] == []
        and kept["not_for_release"] == ["folder.key"]
        and kept["train_accuracy"] is None
    )
    sealed = {
        name: json.loads((tmp_path / name / "manifest.json").read_text())["files"]
        for name in ("shown", "kept")
    }
    keyed = {name for name, digests in sealed["shown"].items() if "hmac_sha256" in digests}
    assert (
        keyed
        == {"result.json", "metrics.csv", "curves.png", "checkpoint.npz"}
        == set(shown["not_for_release"][:-1])
    )
    assert all("sha256" in digests for digests in sealed["kept"].values())


def test_a_target_is_kept_and_one_that_nothing_fits_into_leaves_nothing(tmp_path):
    result = train(
        tmp_path / "run", epsilon=2.2, steps=500, accountant=RenyiAccountant, stop_early=True
    )
    assert (
        result["stopped"] == "budget"
        and 0 < result["steps"] < 500
        and result["epsilon"]["renyi"]["upper"] <= 2.2
    )
    with pytest.raises(BudgetExceededError, match="not one lot fits"):
        make_run(tmp_path / "none", epsilon=0.1)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda path: make_run(path, steps=0), "steps=0 to be an integer of at least 1"),
        (
            lambda path: make_run(path, dataset_size=600),
            "expected_lot_size=12, but lots drawn from 600 examples have 120 on average",
        ),
        (lambda path: make_run(path, accountant=OwnAccountant), "accountant='own' to be one of"),
        (
            lambda path: make_run(path).release_first("the mean", Gaussian(1.0), "", None),
            "name='the mean'",
        ),
        (lambda path: make_run(RunFolder(path, resume=True)), "holds no run to resume"),
    ],
)
def test_wrong_calls_are_refused(tmp_path, make, message):
    with pytest.raises(ParameterError, match=message):
        make(tmp_path / "run")


@pytest.mark.parametrize(
    "weight", [np.ones((SIZE, 1)), [1.0] * SIZE, "x", np.array(["1"] * SIZE), np.ones(SIZE - 1)]
)
def test_weights_that_do_not_fit_are_refused_before_any_charge(tmp_path, weight):
    run = make_run(tmp_path)
    with pytest.raises(ShapeError, match="example_weight"):
        run.train(*make_arrays(), example_weight=weight)
    assert not (tmp_path / "ledger.json").exists()


def test_a_sampler_that_verify_does_not_know_is_refused_before_anything_is_charged(tmp_path):
    class Mine(PoissonSampler):
        pass

    run = make_run(tmp_path / "known")
    plan = replace(run.plan, sampler=Mine(run.plan.sampler.sampling_probability))
    with pytest.raises(DataError, match="got 'Mine': what its lots cost is not known"):
        Run(tmp_path / "run", run.training, Privacy(plan, run.privacy.budget), run.about)
    assert not (tmp_path / "run").exists()
