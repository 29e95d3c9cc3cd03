"""verify: edits of a run's files whose seal was made to fit are noticed, and what differs is named.

An edit of the result, the statement, the ledger and the model together, by somebody who knows the
program, is not.
"""

import json
import re
from hashlib import sha256

import pytest

from minidp.errors import DataError
from minidp.mechanism import Stages
from minidp.privacy import Ledger
from minidp.run import RunFolder, load_arrays
from minidp.run.checkpoint import save_arrays
from tests.support.running import train
from tests.support.sealed import edit, failed, noticed, places, put, tell


def another(value):
    """Another value of the same type, or of one that it might be."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value}x"


# What nothing else says: notes and versions are text, the rest is of the one process.
UNSEEN = r"command|ranks|seconds_\w+|versions (?!minidp|begun_by)\w+|epsilon \w+ note"
UNSEEN += r"|test (constant_loss|majority_accuracy)"  # of public rows, which are in no file


@pytest.mark.usefixtures("answered_once")
@pytest.mark.parametrize("name", ["result.json", "config.json", "ledger.json"])
def test_every_edit_of_a_value_is_noticed_even_when_it_is_sealed_again(run, name):
    before = (run / name).read_text()
    for way, value in places(json.loads(before)):
        if value and isinstance(value, (dict, list)):
            continue
        data, place = json.loads(before), " ".join(map(str, way))
        put(data, place, another(value))
        (run / name).write_text(json.dumps(data, indent=2) + "\n")
        RunFolder(run).seal(private=True)
        assert noticed(run) is not bool(re.fullmatch(UNSEEN, place)), place


@pytest.mark.parametrize(
    "name, place, value, named",
    [
        ("result", "settings sampler", "ShuffleSampler", "the plan zero_out"),
        ("result", "steps", 10**38, "0 lots ran, 10 charged"),
        ("result", "settings setup", [], "charged, and not in the plan: Gaussian"),
        ("result", "settings setup 0 event noise_multiplier", 9.0, "not charged: 1 x Gaussian"),
        ("result", "epsilon renyi upper", 0.5, "epsilon.renyi.upper is 0.5 (computed again: "),
        ("result", "meaning", None, "meaning is None"),
        ("result", "settings target_epsilon", 0.1, "above the target 0.1"),
        ("result", "stopped", "budget", "stopped is 'budget' (ledger.json: 'finished')"),
        ("result", "dataset", "mnist", "dataset is 'mnist' (model.npz: 'arrays')"),
        ("result", "device", "gpu", "device is 'gpu' (config.json: 'cpu')"),
        ("result", "test_accuracy", 0.99, "test_accuracy is 0.99 (metrics.csv: "),
        ("result", "reproducible", True, "reproducible is True (computed again: False)"),
        ("result", "not_private", [], "train_r2 is not named as not private"),
        ("result", "loss_not_private", 1.5, "loss_not_private is not named as not private"),
        ("result", "not_for_release", [], "not_for_release is [] (computed again: ['result.json'"),
        ("config", "charged", False, "says that nothing was charged"),
    ],
)
def test_an_edit_is_noticed_even_when_it_is_sealed_again(run, name, place, value, named):
    edit(run, f"{name}.json", {place: value})
    assert named in failed(run)


SHAPES = {"dense1.W": [4, 5], "dense1.b": [5], "dense2.W": [5, 3], "dense2.b": [3]}


@pytest.mark.parametrize(
    "inside, place, value, named",
    [
        ("config ", "shapes dense1.W 0", 6, "shapes.dense1.W[0] is 6 (model.npz: 4)"),
        ("", "unit", "person", "unit is 'person' (computed again: 'row')"),
        ("", "settings clip_groups 0 parameters 0", "dense1.V", "model.npz has no such parameter"),
        (
            "",
            "settings clip_groups 0 parameters",
            ["dense1.W"],
            "of other parameters than the clip",
        ),
    ],
)
def test_what_another_file_implies_is_noticed_where_config_and_result_were_edited_alike(
    tmp_path, inside, place, value, named
):
    run = tmp_path / "run"
    train(run, flags={"shapes": SHAPES})
    assert not failed(run)
    edit(run, "config.json", {place: value})
    tell(run, {f"{inside}{place}": value})
    assert named in failed(run)


@pytest.mark.parametrize(
    "change, named",
    [
        (lambda e, n, p: (e, n - 1 if p == "step" else n, p), "10 lots ran, 9 charged"),
        (lambda e, n, p: (e, n, "step"), "other releases before the first step"),
        (lambda e, n, p: (e, n, "free" if p == "setup" else p), "charges for another purpose"),
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


def test_a_result_and_a_statement_that_are_edited_together_are_noticed(run):
    tell(run, {"disclosed": []})
    assert re.search(r"statement_sha256 is '\w+' \(model.npz: '\w+'\)", failed(run))


@pytest.mark.parametrize("name", ["result.json", "config.json", "ledger.json"])
def test_a_field_that_stands_twice_is_refused(run, name):
    text = (run / name).read_text()
    (run / name).write_text(text.replace("{", '{"delta": 1e-9, "delta": 1e-5,', 1))
    RunFolder(run).seal(private=True)
    with pytest.raises(DataError, match="stands twice"):
        failed(run)


def test_figures_of_a_statement_are_compared(run):
    before = (run / "privacy.md").read_text()
    statement = re.sub(r"\| [0-9.]+ \| bound \|", "| 0.1000 | bound |", before)
    assert statement != before
    (run / "privacy.md").write_text(statement)
    edit(run, "result.json", {"statement_sha256": sha256(statement.encode()).hexdigest()})
    assert "privacy.md is not what result.json gives" in failed(run)


def test_the_model_of_another_run_is_noticed(run):
    arrays, header = load_arrays(run / "model.npz")
    save_arrays(run / "model.npz", arrays, {**header, "ledger_sha256": "0" * 64})
    RunFolder(run).seal(private=True)
    assert re.search(r"agree\? ledger_sha256 is \S+ \(model.npz: \S+\)$", failed(run))


def test_epsilon_of_several_examples_is_computed_again(tmp_path):
    run = tmp_path / "run"
    train(run, flags={"group_size": 3}, group_size=3)
    assert not failed(run)
    tell(run, {"group size": 2})
    assert "group.size is 2 (computed again: 3)" in failed(run)


def test_noise_that_follows_a_schedule_is_rebuilt_from_it(tmp_path):
    run = tmp_path / "run"
    train(run, sigma=Stages(6.0, 3.0, 2, 3))
    assert not failed(run)
    told = "Stages(first=6.0, last=3.0, stages=2, length=3): follows the step"
    assert told in (run / "privacy.md").read_text()
    edit(run, "result.json", {"settings clip_groups 0 noise_multiplier length": 4})
    assert "not charged" in failed(run)


@pytest.mark.parametrize(
    "change, named",
    [
        ({"row_bits": {"dtype": "float32", "rows": 48, "kernels": "x", "differ": []}}, "float64"),
        ({"settings planned_steps": 4}, "lots ran, and 4 were planned"),
        ({"shared_ledger": 0.1}, "below the run's own"),
        ({"shared_ledger": 0.0}, "below the run's own"),
    ],
)
def test_what_a_statement_may_not_say_is_named(run, change, named):
    tell(run, change)
    assert named in failed(run)
