"""A run that is resumed on another machine, whose last digits differ, goes on with the numbers that
it was begun with.
"""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import minidp
from minidp import nn
from minidp.errors import CheckpointError
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, plan
from minidp.privacy import Filter, Gaussian, Ledger, MomentsAccountant
from minidp.run import About, Privacy, Run, Training
from minidp.run.verify import verify
from minidp.streams import Streams
from minidp.train import SGD, Trainer
from tests.support.running import LOT, SIZE, make_arrays
from tests.support.scripts import ROOT

SCRIPT = """
import os, signal, sys
import numpy as np
import minidp
from minidp.train import Trainer

def stopped(self, *lot, step=Trainer.step):
    step(self, *lot)
    if lot[2] == 150:
        os.kill(os.getpid(), signal.SIGINT)

folder, stop = sys.argv[1:]
if stop == "stop":
    Trainer.step = stopped
x = np.random.default_rng(0).normal(size=(1205, 3))
given = dict(epsilon=0.5, delta=1e-5, steps=400, lot_size=10, seed=1, quiet=True)
minidp.fit(x, x[:, 0] > 0, folder=folder + "/run", ledger=folder + "/all.json", **given)
"""


def features():
    """The features of processors that NumPy chooses kernels by, and this one has."""
    umath = np._core._multiarray_umath
    return [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]


def run_script(folder, stop, **environment):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), stop],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.skipif(not features(), reason="NumPy has one set of kernels for this processor")
def test_a_fit_is_resumed_on_another_processor(tmp_path):
    begun = run_script(tmp_path, "stop")
    assert "KeyboardInterrupt" in begun.stderr, begun.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    resumed = run_script(tmp_path, "go on", NPY_DISABLE_CPU_FEATURES=" ".join(features()))
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads((tmp_path / "run" / "config.json").read_text()) == config
    assert Ledger.load(tmp_path / "all.json").count_of("step") == 400
    report = verify(tmp_path / "run")
    assert not report.failed and report.record.steps == 400


def other_digits(function, factor):
    return lambda *given: type(found := function(*given))(found * factor)


def fitted(folder, epsilon=0.5, **given):
    x = np.random.default_rng(0).normal(size=(300, 3))
    ledger = folder / "all.json"
    given = {"steps": 20, "lot_size": 30, "quiet": True, "delta": 1e-5, **given}
    return minidp.fit(
        x, x[:, 0] > 0, epsilon=epsilon, folder=folder / "run", ledger=ledger, **given
    )


def stopped(self, *lot, step=Trainer.step):
    step(self, *lot)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("factor", [1 - 1e-12, 1 + 1e-12])
def test_what_a_fit_derived_comes_from_its_folder(tmp_path, monkeypatch, factor, seed):
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Trainer, "step", stopped)
        fitted(tmp_path, seed=seed)
    derived = other_digits(plan.noise_multiplier_for, factor)
    monkeypatch.setattr(plan, "noise_multiplier_for", derived)
    assert fitted(tmp_path, seed=seed).epsilon.upper <= 0.5
    assert not verify(tmp_path / "run").failed
    assert Ledger.load(tmp_path / "all.json").count_of("step") == 20
    assert fitted(tmp_path, seed=seed).epsilon.upper <= 0.5  # the finished one


def test_a_configuration_that_exceeds_the_target_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Trainer, "step", stopped)
        fitted(tmp_path, seed=1)
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    config["settings"]["clip_groups"][0]["noise_multiplier"] *= 0.9
    path.write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="noise_std_on_sum was"):
        fitted(tmp_path, seed=1)


def test_a_run_that_charged_nothing_gives_no_numbers_to_another(tmp_path, monkeypatch):
    def full(*given):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError):
        patched.setattr("minidp.privacy.ledger.Ledger.save", full)
        fitted(tmp_path, 0.25)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["charged"] is False
    assert 0.45 < fitted(tmp_path, 0.5).epsilon.upper <= 0.5


def run_of(folder, event=Gaussian(5.0)):
    """A run of as many steps as the target allows after a release."""
    rng = np.random.default_rng(1)
    network = nn.Sequential([nn.Dense(4, 3, rng=rng)], (4,))
    sanitizer = Sanitizer(flat_group(network.params, 1.0, 4.0))
    steps = Plan(PoissonSampler(LOT / SIZE), sanitizer, 1, LOT)
    budget = Filter(MomentsAccountant(), 2.0, 1e-5)
    steps = steps.fitted(budget.accountant, steps.ledger(0, [event]), 2.0, 1e-5)
    training = Training(network, nn.SoftmaxCrossEntropy(), SGD(0.1), Streams(3))
    run = Run(folder, training, Privacy(steps, budget), About(quiet=True))
    run.release_first("first", event, "zeros", lambda: np.zeros(2, np.float32))
    return run


@pytest.mark.parametrize("more", [-1, 1])
def test_steps_that_fit_into_the_target_come_from_the_folder(tmp_path, monkeypatch, more):
    begun = run_of(tmp_path)
    charge, steps = begun.folder.charge, begun.plan.steps

    def charge_and_stop(ledger):
        charge(ledger)
        os.kill(os.getpid(), signal.SIGINT)

    begun.folder.charge = charge_and_stop
    assert begun.train(*make_arrays()) is None
    monkeypatch.setattr(plan, "max_steps", lambda *given: steps + more)
    event = Gaussian(5.0 * (1 - 1e-12))
    assert run_of(tmp_path, event).train(*make_arrays())["steps"] == steps
    report = verify(tmp_path)
    assert not report.failed and report.record.settings.planned_steps == steps
    with pytest.raises(CheckpointError, match=r"release first was charged as .*5.* and is .*5\.1"):
        run_of(tmp_path, Gaussian(5.1))


def test_steps_that_were_given_are_compared(tmp_path):
    begun = run_of(tmp_path)
    begun.folder.close()
    given = begun.privacy.plan.with_steps(begun.plan.steps + 1)
    assert given.derived == frozenset()
    budget = Filter(MomentsAccountant(), 2.0, 1e-5)
    with pytest.raises(CheckpointError, match="settings.planned_steps was"):
        Run(tmp_path, begun.training, Privacy(given, budget), About(quiet=True)).open()
