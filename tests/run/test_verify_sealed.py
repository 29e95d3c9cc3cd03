"""verify: edits of a run's files whose seal was made to fit are noticed, and what differs is named.

An edit of the result, the statement, the ledger and the model together, by somebody who knows the
program, is not.
"""

import json
import re
from hashlib import sha256

import numpy as np
import pytest

import minidp
from minidp.errors import DataError
from minidp.mechanism import Stages
from minidp.privacy import Gaussian, Ledger, PoissonSampled
from minidp.run import RunFolder, load_arrays
from minidp.run.checkpoint import save_arrays
from tests.support.running import FLAGS, train
from tests.support.sealed import GONE, edit, failed, put, tell


def places(value, at=""):
    """The place of every value in JSON data, and the value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inner:
        if isinstance(each, (dict, list)) and each:
            yield from places(each, f"{at}{key} ")
        else:
            yield f"{at}{key}", each


def another(value):
    """Another value of the same type, or of one that it might be."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value}x"


# What nothing else says: notes and versions are text, the rest is of the one process.
UNSEEN = r"command|ranks|seconds_\w+|versions (?!minidp)\w+|epsilon \w+ note"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["result.json", "config.json", "ledger.json"])
def test_every_edit_of_a_value_is_noticed_even_when_it_is_sealed_again(run, name):
    before = (run / name).read_text()
    for place, value in places(json.loads(before)):
        data = json.loads(before)
        put(data, place, another(value))
        (run / name).write_text(json.dumps(data, indent=2) + "\n")
        RunFolder(run).seal(private=True)
        try:
            noticed = bool(failed(run))
        except DataError:
            noticed = True
        assert noticed is not bool(re.fullmatch(UNSEEN, place)), place


GROUP = "settings clip_groups 0"


@pytest.mark.parametrize(
    "place, value, named",
    [
        ("sampler", "ShuffleSampler", "sampler is 'ShuffleSampler'"),
        ("settings sampler", "ShuffleSampler", "the plan zero_out"),
        ("steps", 15, "15 lots ran, 10 charged"),
        ("steps", 10**38, "0 lots ran, 10 charged"),
        (f"{GROUP} noise_std_on_sum", 8.0, "clip_groups[0].noise_std_on_sum is 8.0"),
        (f"{GROUP} grid", 2.0**-30, "clip_groups[0].grid is 9.31"),
        (
            "settings sampling_probability",
            0.01,
            "settings.sampling_probability is 0.01 (computed again: 0.2)",
        ),
        ("settings mean_noise_multiplier", 9.0, "settings.mean_noise_multiplier is 9.0"),
        ("settings setup 0 noise_multiplier", 9.0, "setup[0].noise_multiplier is 9"),
        ("settings expected_lot_size", 6, "lot_size is 6 (asked for: 12)"),
        ("settings setup", [], "charged, and not in the plan: Gaussian"),
        ("settings setup 0 event noise_multiplier", 9.0, "not charged: 1 x Gaussian"),
        ("epsilon moments upper", 0.5, "epsilon.moments.upper is 0.5"),
        ("epsilon loss_distribution lower", 0.0, "epsilon.loss_distribution.lower is 0.0"),
        ("epsilon renyi", GONE, "epsilon.renyi is None"),
        ("delta", 1e-3, "delta is 0.001 (computed again: 1e-05)"),
        ("config dataset", "mnist", "dataset is 'arrays' (asked for: 'mnist')"),
        ("config dataset", None, "dataset is 'arrays' (asked for: None)"),
        ("config sampler", "shuffle", "sampler is 'poisson' (asked for: 'shuffle')"),
        ("config noise_multiplier", 3.0, "noise_multiplier is 4.0 (asked for: 3.0)"),
        ("config clip_norm", 3.0, "clip_norm is 3.0 (config.json: 1.0)"),
        ("settings average", 0.0, "settings.average is 0.0 (config.json: 0.9)"),
        ("dataset", "mnist", "dataset is 'mnist' (model.npz: 'arrays')"),
        ("steps_charged", 9, "steps_charged is 9 (computed again: 10)"),
        ("setup_charged", 2, "setup_charged is 2"),
        ("test_accuracy", 0.99, "test_accuracy is 0.99 (metrics.csv: "),
        ("train_accuracy", None, "train_accuracy is None (metrics.csv: "),
        ("test_r2", 0.99, "test_r2 is 0.99 (metrics.csv: None)"),
        ("epsilon_without_amplification upper", 0.5, "epsilon_without_amplification.upper is"),
        ("meaning true_positive_rates 0.1", 0.11, "meaning.true_positive_rates.0.1 is 0.11"),
        ("meaning mu", 0.1, "meaning.mu is 0.1"),
        ("meaning", None, "meaning is None"),
        ("reproducible", True, "reproducible is True (as it has a seed: False)"),
        ("target_epsilon", 0.1, "target_epsilon is 0.1"),
        ("settings target_epsilon", 0.1, "above the target 0.1"),
        ("stopped", "budget", "stopped is 'budget' and should be finished"),
        ("notice", "MNIST", "privacy.md is not what result.json gives"),
        ("device", "gpu", "device is 'gpu' (config.json: 'cpu')"),
        ("dataset_sha256", "ab", "dataset_sha256 is 'ab' (config.json: None)"),
        ("generator", "rand", "generator is 'rand' (config.json: 'chacha20')"),
        ("not_private", [], "train_r2 is not named as not private"),
        ("loss_not_private", 1.5, "loss_not_private is not named as not private"),
        ("not_for_release", [], "not_for_release is [] (not_private: ['result.json'"),
        ("experiment", "another", "experiment is 'another' (model.npz: 'run')"),
        ("group", {"size": 10, "epsilon": 0.01}, "group.epsilon is 0.01"),
        ("arithmetic", "exact", "not charged: 10 x Composed"),
    ],
)
def test_a_result_that_says_something_else_is_noticed_even_when_it_is_sealed_again(
    run, place, value, named
):
    edit(run, "result.json", {place: value})
    assert named in failed(run)


@pytest.mark.parametrize(
    "place, value, named",
    [
        ("sampler", "shuffle", "sampler is 'poisson' (config.json: 'shuffle')"),
        ("noise_multiplier", 3.0, "noise_multiplier is 4.0 (config.json: 3.0)"),
        ("charged", False, "says that nothing was charged"),
        ("settings optimizer", "Adam", "settings.optimizer is 'SGD' (config.json: 'Adam')"),
        ("target_epsilon", 0.1, "above the target 0.1"),
        ("delta", 1e-3, "delta is 1e-05 (config.json: 0.001)"),
        ("seed", 3, "seed is None (config.json: 3)"),
    ],
)
def test_a_configuration_that_says_something_else_is_noticed_even_when_it_is_sealed_again(
    run, place, value, named
):
    edit(run, "config.json", {place: value})
    assert named in failed(run)


@pytest.mark.parametrize(
    "change, named",
    [
        (lambda e, n, p: (e, n - 1 if p == "step" else n, p), "10 lots ran, 9 charged"),
        (lambda e, n, p: (e, n, "step"), "other releases before the first step"),
        (lambda e, n, p: (e, n, "free" if p == "setup" else p), "charges for another purpose"),
        (
            lambda e, n, p: (
                PoissonSampled(e.sampling_probability, Gaussian(40.0)) if p == "step" else e,
                n,
                p,
            ),
            "charged, and not in the plan: PoissonSampled",
        ),
    ],
)
def test_a_ledger_that_is_edited_together_with_its_hashes_is_noticed(run, change, named):
    before = Ledger.load(run / "ledger.json")
    after = Ledger(before.relation, (change(*entry) for entry in before.entries()))
    after.save(run / "ledger.json")
    tell(run, {"ledger_sha256": after.sha256()})
    assert named in failed(run) and "(model.npz: " in failed(run)


@pytest.mark.parametrize(
    "column, value, named",
    [
        ("epsilon", "0.01", "metrics.csv: epsilon 0.01 at step 5, cost"),
        ("epsilon", "90", "metrics.csv: epsilon 1.6"),
        ("epoch", "0.5", "metrics.csv: step 5 is not epoch 0.5"),
    ],
)
def test_metrics_that_say_something_else_are_noticed(run, column, value, named):
    head, *rows = (run / "metrics.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    cells[0][head.split(",").index(column)] = value
    (run / "metrics.csv").write_text("\n".join([head, *map(",".join, cells)]) + "\n")
    RunFolder(run).seal(private=True)
    assert named in failed(run)


@pytest.mark.parametrize(
    "change",
    [
        {"disclosed": []},
        {"public": []},
        {"rows_checked": False},
        {"weighted": True},
        {"notice": "all is well"},
        {"not_private": [], "not_for_release": ["folder.key"]},
    ],
)
def test_a_result_and_a_statement_that_are_edited_together_are_noticed(run, change):
    tell(run, change)
    assert re.search(r"statement_sha256 is '\w+' \(model.npz: '\w+'\)", failed(run))


def test_figures_of_a_statement_are_compared_whichever_version_wrote_it(run):
    edit(run, "result.json", {"versions numpy": "9.9"})
    assert not failed(run)
    before = (run / "privacy.md").read_text()
    statement = re.sub(r"\| [0-9.]+ \| bound \|", "| 0.1000 | bound |", before)
    assert statement.count("0.1000") > 3
    (run / "privacy.md").write_text(statement)
    edit(run, "result.json", {"statement_sha256": sha256(statement.encode()).hexdigest()})
    assert "privacy.md is not what result.json gives" in failed(run)


@pytest.mark.parametrize(
    "place, value",
    [
        ("ledger_sha256", "0" * 64),
        ("about statement_sha256", "0" * 64),
        ("about steps", 99),
    ],
)
def test_the_model_of_another_run_is_noticed(run, place, value):
    arrays, header = load_arrays(run / "model.npz")
    put(header, place, value)
    save_arrays(run / "model.npz", arrays, header)
    RunFolder(run).seal(private=True)
    assert re.search(rf"agree\? {place.split()[-1]} is \S+ \(model.npz: \S+\)$", failed(run))


def test_the_facts_of_a_fit_are_those_that_it_began_with(tmp_path):
    run, x = tmp_path / "run", np.random.default_rng(0).standard_normal((200, 3))
    minidp.fit(x, x[:, 0] > 0, epsilon=1, folder=run, quiet=True)
    assert not failed(run)
    for flag, value, name in (
        ("weighted", True, "weighted"),
        ("check", False, "rows_checked"),
        ("public", "validation", "best_of_measured"),
    ):
        before = (run / "config.json").read_text()
        edit(run, "config.json", {flag: value})
        assert f"{name} is {not value} (config.json: {bool(value)})" in failed(run)
        (run / "config.json").write_text(before)


@pytest.mark.parametrize(
    "place, value, named",
    [
        ("group", None, "group is None"),
        ("group size", 2, "group.size is 2 (computed again: 3)"),
        ("group epsilon", 5.0, "group.epsilon is 5.0"),
    ],
)
def test_epsilon_of_several_examples_is_computed_again(place, value, named, tmp_path):
    run = tmp_path / "run"
    train(run, flags={**FLAGS, "group_size": 3}, group_size=3)
    assert not failed(run)
    tell(run, {place: value})
    assert named in failed(run)


def test_noise_that_follows_a_schedule_is_rebuilt_from_it(tmp_path):
    run = tmp_path / "run"
    train(run, sigma=Stages(6.0, 3.0, 2, 3), flags={**FLAGS, "noise_multiplier": 6.0})
    assert not failed(run)
    told = "Stages(first=6.0, last=3.0, stages=2, length=3): follows the step"
    assert told in (run / "privacy.md").read_text()
    edit(run, "result.json", {f"{GROUP} noise_multiplier length": 4})
    assert "not charged" in failed(run)


def test_a_bound_that_another_accountant_gave_is_compared_too(tmp_path):
    run = tmp_path / "run"
    result = train(run, sigma=0.01)
    assert result["epsilon"]["loss_distribution"]["fallback"] == "renyi" and not failed(run)
    edit(run, "result.json", {"epsilon loss_distribution fallback": GONE})
    assert "epsilon.loss_distribution.fallback is None" in failed(run)
