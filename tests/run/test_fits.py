"""Whether the planned steps fit the budget, what is said where they do not, and which models
labels give.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from minidp import nn
from minidp.errors import BudgetExceededError, ParameterError
from minidp.privacy import Gaussian
from minidp.run import Privacy, Run, load_model
from minidp.run.verify import verify
from tests.support.running import Crash, crash_after, make_arrays, make_run, train

TIGHT = {"epsilon": 2.2, "steps": 500}


def planned(run, plan):
    """The same run by another plan."""
    return Run(run.folder, run.training, Privacy(plan, run.privacy.budget), run.about)


def test_steps_that_do_not_fit_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(BudgetExceededError) as caught:
        make_run(tmp_path / "run", **TIGHT)
    words = str(caught.value)
    assert words.startswith("500 lots are planned, and ")
    assert 'plan.calibrated("moments", 2.2, 1e-05)' in words and "stop_early=True" in words
    assert not (tmp_path / "run").exists()
    fit = int(words.split(" of them fit")[0].split()[-1])
    run = make_run(tmp_path / "run", epsilon=2.2, steps=fit)
    assert run.train(*make_arrays())["steps"] == fit


@pytest.mark.parametrize("how", ["fitted", "calibrated"])
def test_a_plan_that_was_made_to_fit_trains_every_step(tmp_path, how):
    run = make_run(tmp_path / "run", epsilon=2.2)
    plan = getattr(run.plan, how)("moments", 2.2, 1e-5)
    result = planned(run, plan).train(*make_arrays())
    assert result["stopped"] == "finished" and result["steps"] == plan.steps


def test_a_release_before_training_counts(tmp_path):
    fit = make_run(tmp_path / "alone", epsilon=2.2).plan.fitted("moments", 2.2, 1e-5).steps
    run = make_run(tmp_path / "run", epsilon=2.2, steps=fit)
    run.release_first("mean", Gaussian(9.0), "a mean", lambda: np.zeros(4, np.float32))
    with pytest.raises(BudgetExceededError, match=r"before=events\).*release_first"):
        run.train(*make_arrays())
    assert run.ledger.items() == [(Gaussian(9.0), 1)]


def test_a_run_that_the_budget_ends_says_so_first(tmp_path):
    run = make_run(tmp_path / "run", stop_early=True, **TIGHT)
    result = run.train(*make_arrays())
    steps = result["steps"]
    why = f"stopped {500 - steps} lots early: the budget was used up ({steps} of 500 lots)"
    assert 0 < steps < 500 and run.summary().startswith(f"NOTICE: {why}; Plan.calibrated finds")
    lines = (tmp_path / "run" / "privacy.md").read_text().splitlines()
    assert lines[4].startswith(f"**Shorter: {why}")
    written = (tmp_path / "run" / "result.json").read_text()
    assert [*json.loads(written)][:2] == ["stopped", "steps"]
    assert not verify(tmp_path / "run").failed


def test_a_resumed_run_says_what_a_crash_cost(tmp_path, capsys):
    with pytest.raises(Crash):
        train(tmp_path / "run", stop=crash_after(2))
    run = make_run(tmp_path / "run")
    run.quiet = False
    mean = run.release_first("mean", Gaussian(5.0), "mean of the rows", lambda: None)
    x, y, *_ = make_arrays()
    result = run.train(x - mean, y)
    lost = 10 - result["steps"]
    assert lost > 0 and f" {lost} lots of a crash stay charged" in capsys.readouterr().err
    assert f"{lost} lots of a crash stay charged" in run.summary().splitlines()[0]
    assert f"{result['steps']} of 10" in (tmp_path / "run" / "privacy.md").read_text()


class Smoothed:
    """A loss of a user's own on logits and labels."""

    def __call__(self, z, target):
        losses, dz = nn.SoftmaxCrossEntropy()(z, target)
        return 0.9 * losses, z.dtype.type(0.9) * dz


def test_labels_give_a_model_with_classes_for_every_loss(tmp_path):
    x, y, *_ = make_arrays()
    make_run(tmp_path / "run", loss=Smoothed()).train(x, y)
    model = load_model(tmp_path / "run" / "model.npz")
    assert model.classes.tolist() == [0, 1, 2]
    assert model.predict_proba(x).shape == (len(x), 3)


def test_labels_for_one_output_are_refused_before_the_first_charge(tmp_path):
    run = make_run(tmp_path / "run", loss=lambda z, target: (z[:, 0] ** 2 / 2, z))
    network = nn.Sequential([nn.Dense(4, 1, rng=np.random.default_rng(1))], (4,))
    groups = [replace(run.plan.sanitizer.groups[0], keys=tuple(network.params))]
    plan = replace(run.plan, sanitizer=replace(run.plan.sanitizer, groups=groups))
    training = replace(run.training, network=network)
    with pytest.raises(ParameterError, match="as many outputs of the network as there are classes"):
        Run(run.folder, training, Privacy(plan, run.privacy.budget)).train(*make_arrays()[:2])
    assert not (tmp_path / "run").exists()


def test_training_rows_are_measured_only_where_asked(tmp_path):
    x, y, *_ = make_arrays()
    result = make_run(tmp_path / "run").train(x, y)
    assert result["train_accuracy"] is None and result["not_private"] == []
    asked = make_run(tmp_path / "asked", train_metrics=True).train(x, y)
    assert asked["train_accuracy"] > 0 and "train_accuracy" in asked["not_private"]


def test_a_run_that_was_killed_before_its_first_checkpoint_goes_on_with_what_is_left(tmp_path):
    first = make_run(tmp_path / "alone", epsilon=2.2).plan
    steps = first.fitted("moments", 2.2, 1e-5, [Gaussian(9.0)]).steps

    def begun():
        run = make_run(tmp_path / "run", epsilon=2.2, steps=steps)
        run.release_first("mean", Gaussian(9.0), "a mean", lambda: np.zeros(4, np.float32))
        return run

    begun().folder.close()
    result = begun().train(*make_arrays())
    assert result["setup_charged"] == 2 and 0 < result["steps"] < steps
    assert result["stopped"] == "budget"
