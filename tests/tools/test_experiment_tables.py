"""The tables of experiments/README.md: verdicts follow from expected.json and the results, and from nothing else."""
import json

import pytest

from tools import experiment_tables

ENTRY = {"quantity": "test_accuracy", "value": 0.95, "tolerance": 0.005, "unit": "%", "source": "Section 5.2",
         "sentence": "95% at epsilon 2", "because": "of the seeds", "when": {"dataset": "mnist"}}


def rows(tmp_path, accuracies, entry=ENTRY):
    folder = tmp_path / "results"
    folder.mkdir()
    for seed, accuracy in enumerate(accuracies, 1):
        (folder / f"mnist_pca-{seed}.json").write_text(json.dumps({"dataset": "mnist", "test_accuracy": accuracy}))
    (tmp_path / "expected.json").write_text(json.dumps({"mnist_pca": [entry]}))
    return list(experiment_tables.verdict_table(("mnist_pca",), folder, tmp_path / "expected.json"))[2:]


@pytest.mark.parametrize("side, accuracies, verdict", [
    (None, [0.951, 0.949], "reproduced"),
    (None, [0.96, 0.962], "differs by +1.10 points because of the seeds"),
    ("at least", [0.96, 0.962], "reproduced"),
    ("at least", [0.93, 0.95], "differs by -1.00 points because of the seeds"),
    ("at least", [0.947, 0.949], "reproduced within 0.50 points"),
    ("at most", [0.93, 0.95], "reproduced"),
])
def test_the_mean_over_seeds_is_judged(side, accuracies, verdict, tmp_path):
    entry = ENTRY | ({"side": side} if side else {})
    (row,) = rows(tmp_path, accuracies, entry)
    mean = sum(accuracies) / 2
    assert f"| {mean:.2%} ({min(accuracies):.2%} to {max(accuracies):.2%}) | 2 | {verdict} |" in row
    assert "[1](results/mnist_pca-1.json), [2](results/mnist_pca-2.json)" in row


def test_a_number_without_a_run_says_so(tmp_path):
    (row,) = rows(tmp_path, [0.95], ENTRY | {"when": {"dataset": "strokes"}})
    assert row == "| 95% at epsilon 2 | 95.00% | no run yet | | | |"


def test_every_number_of_expected_json_has_a_table():
    text = (experiment_tables.ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    for experiment, entries in experiment_tables.load(experiment_tables.EXPECTED).items():
        assert experiment in experiment_tables.FILES
        for entry in entries:
            assert f"| {entry['sentence']} |" in text


def test_panels_and_budgets_without_runs_are_empty_tables(tmp_path):
    for table in (experiment_tables.commands_table, experiment_tables.figure_5_table, experiment_tables.cifar_table):
        assert len(list(table(tmp_path))) == 2
    for table in (experiment_tables.figure_3_table, experiment_tables.ledgers_table, experiment_tables.trained_table,
                  experiment_tables.claims_table, experiment_tables.figure_4_table):
        assert len(list(table(tmp_path / "none.json"))) == 2
