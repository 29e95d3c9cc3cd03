"""A run that was interrupted or killed goes on, and loses no charge; what does not belong to it is
refused.
"""

import json
import os
import signal
from itertools import cycle

import numpy as np
import pytest

import minidp
from minidp.errors import (
    CheckpointError,
    DataError,
    ParameterError,
)
from minidp.mechanism.samplers import SAMPLERS, make_sampler
from minidp.privacy import Ledger
from minidp.run import Run
from minidp.run.checkpoint import load_arrays, refuse_differences, save_arrays
from minidp.run.row_bits import of_both
from minidp.run.verify import verify
from minidp.train import OPTIMIZERS, Averaged, Trainer
from tests.support.running import (
    LOT,
    SIZE,
    STEPS,
    Crash,
    crash_after,
    interrupt,
    make_arrays,
    make_run,
    train,
    weights,
)


@pytest.mark.parametrize("charges", [1, 2])
@pytest.mark.parametrize("optimizer, sampler", [*zip(OPTIMIZERS, cycle(SAMPLERS))])
def test_a_seeded_run_that_was_interrupted_or_killed_ends_bit_for_bit_the_same(
    tmp_path, charges, optimizer, sampler
):
    def trained(name, stop=None):
        rule = Averaged(OPTIMIZERS[optimizer](0.05), 0.9)
        lots = make_sampler(sampler, SIZE, LOT)
        return train(tmp_path / name, 5, stop=stop, optimizer=rule, sampler=lots)

    whole = trained("whole")
    assert trained("run", interrupt) is None
    with pytest.raises(Crash):
        trained("run", crash_after(charges))
    result = trained("run")
    assert (result["steps"], result["steps_charged"], result["setup_charged"]) == (STEPS, STEPS, 1)
    assert result["epsilon"] == whole["epsilon"]
    for name, array in weights(tmp_path / "whole").items():
        np.testing.assert_array_equal(array, weights(tmp_path / "run")[name])
    arrays, header = load_arrays(tmp_path / "run" / "checkpoint.npz")
    assert not verify(tmp_path / "run").failed
    assert set(header) == {"format", "kind", "config", "extra", "history", "ledger", "progress"}
    assert {name.split("/")[0] for name in arrays} == {"network", "optimizer", "release"}


def test_without_a_seed_an_interrupt_loses_nothing(tmp_path):
    assert train(tmp_path / "run", stop=interrupt) is None
    waiting = make_run(tmp_path / "run")
    assert waiting.summary().startswith("interrupted; run the same lines again")
    waiting.folder.close()
    result = train(tmp_path / "run")
    assert (result["steps"], result["steps_charged"], result["earlier_lots_charged"]) == (
        STEPS,
        STEPS,
        0,
    )


def test_without_a_seed_what_a_crash_took_stays_charged_and_the_run_gets_fewer_lots(tmp_path):
    with pytest.raises(Crash):
        # the setup, five lots, and five that are lost
        train(tmp_path / "run", stop=crash_after(3), steps=20)
    result = train(tmp_path / "run", steps=20)
    assert (result["steps"], result["steps_charged"], result["earlier_lots_charged"]) == (15, 20, 0)
    assert "5 charged lots are not in the model" in (tmp_path / "run" / "privacy.md").read_text()
    assert not verify(tmp_path / "run").failed


def test_charges_of_attempts_without_a_checkpoint_are_told_apart(tmp_path):
    with pytest.raises(Crash):
        train(tmp_path / "run", stop=crash_after(2))
    (tmp_path / "run" / "checkpoint.npz").unlink()
    result = train(tmp_path / "run")
    assert (result["setup_charged"], result["steps_charged"], result["earlier_lots_charged"]) == (
        2,
        10,
        5,
    )
    statement = (tmp_path / "run" / "privacy.md").read_text()
    assert (
        "charged 2 times" in statement
        and "5 more lots are charged, of earlier attempts" in statement
    )
    assert not verify(tmp_path / "run").failed


def test_of_another_configuration_what_was_asked_is_named_first(tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(200, 3))
    asked = {"epsilon": 1.0, "steps": 40, "lot_size": 30, "seed": 1, "folder": tmp_path / "run"}

    def fit(**changed):
        return minidp.fit(x, x[:, 0] > 0, quiet=True, **{**asked, **changed})

    def interrupted(self, *lot, step=Trainer.step):
        step(self, *lot)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Trainer, "step", interrupted)
        fit()
    changes = {
        "settings.expected_lot_size was 30 and is 20": {"lot_size": 20},
        "settings.planned_steps was 40 and is 41": {"steps": 41},
        "settings.target_epsilon was 1.0 and is 2.0": {"epsilon": 2.0},
    }
    for words, changed in changes.items():
        with pytest.raises(CheckpointError) as refused:
            fit(**changed)
        assert words in str(refused.value) and "clip_groups" not in str(refused.value)
    assert fit().epsilon.upper <= 1.0


def test_a_picture_that_fails_stops_nothing(tmp_path, monkeypatch, capsys):
    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("minidp.run.curves.save_course", full)
    model = minidp.fit(np.eye(60, 3), np.arange(60) % 2, epsilon=1.0, folder=tmp_path / "run")
    assert "curves.png is empty" in capsys.readouterr().err and model.epsilon.upper <= 1
    assert not verify(tmp_path / "run").failed


def test_a_full_disk_names_the_file_and_what_stays_charged(tmp_path, monkeypatch):
    def full(path, model):
        raise OSError(28, "No space left on device", str(path))

    given = {"epsilon": 1.0, "folder": tmp_path / "run", "quiet": True, "seed": 1}
    with monkeypatch.context() as patched:
        patched.setattr("minidp.run.run.write_model", full)
        with pytest.raises(OSError, match=r"stays charged.*model.npz") as caught:
            minidp.fit(np.eye(60, 3), np.arange(60) % 2, **given)
    assert caught.value.errno == 28 and Ledger.load(tmp_path / "run" / "ledger.json").items()
    assert minidp.fit(np.eye(60, 3), np.arange(60) % 2, **given).epsilon.upper <= 1.0


def test_another_configuration_is_refused(tmp_path):
    given = {"seed": 1, "flags": {"rate": 1}, "inputs": {"file": "a"}}
    train(tmp_path / "run", stop=interrupt, **given)
    for change, message in (
        ({"clip_norm": 2.0}, "clip_norm was 1.0 and is 2.0"),
        ({"flags": {"rate": 2}}, "rate was 1 and is 2"),
        ({"inputs": {"file": "b"}}, "file was 'a' and is 'b'"),
    ):
        with pytest.raises(CheckpointError, match=message):
            make_run(tmp_path / "run", **{**given, **change}).open()


@pytest.mark.parametrize("stop", [interrupt, None], ids=["interrupted", "finished"])
def test_other_arrays_are_refused_and_their_plain_hash_is_nowhere(stop, tmp_path):
    train(tmp_path / "run", stop=stop)
    x, *others = make_arrays()
    x[0] = 0
    with pytest.raises(DataError, match="began with other examples"):
        train(tmp_path / "run", arrays=(x, *others))
    key = tmp_path / "run" / "folder.key"
    assert os.stat(key).st_mode & 0o777 == 0o600
    key.unlink()
    with pytest.raises(CheckpointError, match="folder.key is missing"):
        train(tmp_path / "run")


def no_such_locks(*given):
    raise OSError


@pytest.mark.parametrize("lock", ["folder", "file"])
def test_a_second_process_is_refused(tmp_path, monkeypatch, lock):
    if lock == "file":
        monkeypatch.setattr("fcntl.flock", no_such_locks)
    first = make_run(tmp_path / "run")
    assert not (tmp_path / "run").exists()
    first.open()
    with pytest.raises(ParameterError, match="another process is running in this folder"):
        make_run(tmp_path / "run").open()
    assert (tmp_path / "run" / "run.lock").exists() == (lock == "file")
    first.folder.close()
    assert not (tmp_path / "run" / "run.lock").exists()
    make_run(tmp_path / "run").open()


def test_where_the_lock_is_deleted_the_ledger_is_never_below_what_was_released(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("fcntl.flock", no_such_locks)
    released = []

    def second_takes_over(run):
        released.append(run.ledger.count_of("step"))
        if len(released) == 3:
            (tmp_path / "run" / "run.lock").unlink()
            train(tmp_path / "run", steps=50)

    with pytest.raises(CheckpointError, match="not what this process wrote last"):
        train(tmp_path / "run", steps=50, stop=second_takes_over)
    ledger = Ledger.load(tmp_path / "run" / "ledger.json")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    # blocks of five, the last of them not run twice
    assert ledger.count_of("step") >= result["steps"] + max(released) - 5
    assert not verify(tmp_path / "run").failed


def lose_charges(run):
    (run / "ledger.json").unlink()
    (run / "checkpoint.npz").unlink()


def checkpoint(change):
    """Damage that writes the checkpoint again after change(arrays, header)."""

    def spoil(run):
        arrays, header = load_arrays(run / "checkpoint.npz")
        change(arrays, header)
        save_arrays(run / "checkpoint.npz", arrays, header)

    return spoil


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lose_charges, "ledger.json is missing, and config.json says that charges were made"),
        (lambda run: Ledger().save(run / "ledger.json"), "shows less than checkpoint.npz had"),
        (lambda run: (run / "config.json").unlink(), "cannot be told which run"),
        (checkpoint(lambda arrays, _: arrays.pop("release/mean")), "release/mean is missing"),
        (checkpoint(lambda arrays, _: arrays.pop("network/dense1.W")), "dense1.W is missing"),
        (checkpoint(lambda arrays, _: arrays.update(odd=np.ones(2))), "odd is not expected"),
        (
            checkpoint(lambda arrays, _: arrays.update({"network/dense2.b": np.ones(1)})),
            r"expected network/dense2.b of shape \(3,\), got \(1,\)",
        ),
        (
            checkpoint(lambda arrays, _: arrays.update({"network/dense2.b": np.ones(3)})),
            "expected network/dense2.b of dtype float32, got float64",
        ),
        (checkpoint(lambda _, header: header.update(ledger={"format": 1})), "damaged"),
        (checkpoint(lambda _, header: header.update(progress=[5, 3])), "charged=3 to be an int"),
        (checkpoint(lambda _, header: header.update(kind="model")), "a checkpoint, got a model"),
    ],
)
def test_lost_and_damaged_files_are_refused(tmp_path, spoil, message):
    train(tmp_path / "run", stop=interrupt)
    spoil(tmp_path / "run")
    with pytest.raises((CheckpointError, DataError), match=message):
        train(tmp_path / "run")


def test_a_release_that_is_left_out_of_a_resumed_run_is_refused(tmp_path):
    train(tmp_path / "run", stop=interrupt)
    with pytest.raises(CheckpointError, match="make the same calls of release_first again"):
        make_run(tmp_path / "run").train(*make_arrays())


@pytest.mark.parametrize("seed", [None, 5])
def test_a_finished_run_without_its_checkpoint_charges_nothing_more(seed, tmp_path):
    train(tmp_path, seed)
    charged = (tmp_path / "ledger.json").read_bytes()
    (tmp_path / "checkpoint.npz").unlink()
    with pytest.raises(CheckpointError, match="missing, and the run is finished"):
        train(tmp_path, seed)
    assert (tmp_path / "ledger.json").read_bytes() == charged


def test_a_setting_that_is_gone_counts_only_if_it_had_another_value():
    refuse_differences("run", {"sampler": "poisson", "steps": 3}, {"steps": 3})
    with pytest.raises(CheckpointError, match="sampler was 'balls-in-bins' and is None"):
        refuse_differences("run", {"sampler": "balls-in-bins", "steps": 3}, {"steps": 3})
    before, now = (
        {"settings": {"learning_rate": rate, "target_epsilon": epsilon}}
        for rate, epsilon in ((0.05, 1), (0.1, 2))
    )
    with pytest.raises(CheckpointError, match=r": settings.target_epsilon was 1 and is 2; choose"):
        refuse_differences("run", before, now)


def test_a_budget_is_of_one_run_and_says_what_it_spent(tmp_path):
    run = make_run(tmp_path / "one", 3)
    budget, parts = run.privacy.budget, (run.training, run.privacy, run.about)
    other = Run(tmp_path / "two", *parts)
    run.open()  # which charges nothing
    with pytest.raises(ParameterError, match="give each run a Filter of its own"):
        other.train(*make_arrays())
    result = run.train(*make_arrays())
    assert budget.ledger.sha256() == Ledger.load(tmp_path / "one" / "ledger.json").sha256()
    spent = budget.accountant.epsilon(budget.ledger, budget.delta).upper
    assert spent == result["epsilon"][budget.accountant.name]["upper"] > 0
    with pytest.raises(ParameterError, match="each run, also a resumed one, has its own"):
        Run(tmp_path / "three", *parts)


def test_a_run_resumed_elsewhere_is_covered_only_if_both_machines_agree():
    now = {"dtype": "float64", "rows": 96, "kernels": "Zen", "differ": []}
    single = {"dtype": "float32"}
    assert of_both(now, now) == now and of_both(None, single) == single
    for before, more in (({**now, "kernels": "Haswell"}, []), ({**now, "differ": ["a"]}, ["a"])):
        assert of_both(before, now)["differ"] == [*more, "steps before the run was resumed"]
    assert of_both(None, now)["differ"]
