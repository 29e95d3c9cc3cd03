"""The sweeps behind Figures 3, 4 and 5: one panel as a user runs it, and what each figure takes
from its runs.
"""

import json
import subprocess

from common.figures import best, claims_figure, spending, spread
from common.results import EXPECTED, hashes_of, ledger_of, rows_of
from common.sweeps import Point

import pytest
from mnist_sweeps import CLAIMS, FASTER, FIGURES, RATES, TRIED

from minidp.privacy import (
    Gaussian,
    JointGaussian,
    Ledger,
    LossDistributionAccountant,
    PoissonSampled,
)
from tests.support.scripts import MPIEXEC, command, environment

EXPERIMENTS = EXPECTED.parent
SMOKE = "mnist_sweeps.py --smoke --dataset strokes --jobs 2"


def result(accuracy, seed=1):
    """What one run says, as far as Figure 4 and the claims read it."""
    accuracies = [accuracy - 0.2, accuracy - 0.1, accuracy]
    return {
        "seed": seed,
        "stopped": "finished",
        "test_accuracy": accuracy,
        "history": {"step": [100, 200, 300], "test_accuracy": accuracies},
    }


def test_the_rate_of_each_lot_size_is_the_best_of_those_tried_on_synthetic_digits():
    panels = json.loads((EXPERIMENTS / "results" / "figure_lot-rates.json").read_text())["panels"]
    assert list(RATES) == list(TRIED)
    for lot, rate in RATES.items():
        accuracies = {
            point["x"]: point["test_accuracy"] for point in panels[f"lots of {lot}"]["points"]
        }
        tried = {round(each * FASTER.get(lot, 1), 4): each for each in TRIED[lot]}
        assert (
            accuracies.keys() == tried.keys() and tried[max(accuracies, key=accuracies.get)] == rate
        )


def test_a_panel_says_what_its_runs_say_and_nothing_is_run_twice(run_script, tmp_path):
    flags, out = f"{SMOKE} --figure 5b --out out", tmp_path / "out"
    run_script(flags, check=0)
    summary = json.loads((out / "figure_5b.json").read_text())
    assert [point["x"] for point in summary["panels"]["b"]["points"]] == [200, 2000]
    made = [(row["name"], row["seed"]) for row in rows_of(summary)]
    assert made == [("hidden-200", 1), ("hidden-2000", 1)]
    for row in rows_of(summary):
        assert row["ledger_sha256"] in hashes_of(ledger_of(row))
    again = run_script(flags, check=0)
    assert "quote: no figure of the paper is at these settings and on this data" in again.stdout
    assert "NOTICE" in again.stdout and "--seeds 2" in again.stdout
    assert "from 2 runs" in again.stdout and "lots" not in again.stderr  # no run was made
    one = out / "hidden-200-seed1.json"
    one.write_text(json.dumps({**json.loads(one.read_text()), "dataset": "mnist"}))
    assert "holds runs on different data" in run_script(flags, check=2).stderr


def test_spending_is_the_certified_epsilon_of_pca_and_the_lots_so_far():
    groups = [{"noise_multiplier": 4.0}] * 2
    settings = {"sampling_probability": 0.01, "pca_noise_multiplier": 7.0, "clip_groups": groups}
    spent = spending({**result(0.9), "settings": settings}, 1e-5)
    ledger = Ledger(
        entries=[(Gaussian(7.0),), (PoissonSampled(0.01, JointGaussian((4.0, 4.0))), 200)]
    )
    assert spent(1) == LossDistributionAccountant().epsilon(ledger, 1e-5).upper
    assert spent(0) < spent(1) < spent(2)


def test_figure_4_reads_each_run_at_the_last_epoch_that_the_pair_allows(monkeypatch):
    points = FIGURES["4"].points(False)
    runs = {
        point.name: [result(0.88 + 0.01 * i), result(0.92 + 0.01 * i)]
        for i, point in enumerate(points)
    }
    monkeypatch.setattr(
        "common.figures.spending", lambda run, delta: lambda row: (0.3, 0.5, 0.9)[row]
    )
    pairs = {
        (pair["epsilon"], pair["delta"]): pair
        for pair in FIGURES["4"].summary(runs, False)["pairs"]
    }
    best = 0.9 + 0.01 * (len(points) - 1)
    assert pairs[0.25, 1e-5]["test_accuracy"] is None
    assert pairs[0.5, 1e-2]["test_accuracy_by_seed"] == pytest.approx([best - 0.12, best - 0.08])
    assert pairs[0.5, 1e-2]["test_accuracy"] == pytest.approx(best - 0.1)
    assert pairs[0.5, 1e-2]["steps"] == 200 and pairs[1.0, 1e-5]["name"] == points[-1].name
    assert pairs[1.0, 1e-5]["test_accuracy"] == pytest.approx(best)


def test_a_claim_is_evaluated_for_each_seed_and_a_best_place_by_the_means_too():
    runs = {
        "a": [result(0.9), result(0.8, 2)],
        "b": [result(0.8), result(0.86, 2)],
        "late": [result(0.9, 2)],
    }
    made = claims_figure(
        {
            "best_name": lambda of: best({name: of.accuracy(name) for name in "ab"}),
            "spread": lambda of: spread(map(of.accuracy, "ab")),
            "lead": lambda of: of.accuracy("late") - of.accuracy("b"),
        },
        lambda smoke: [Point(name) for name in runs],
    )
    summary = made.summary(runs, False)
    means, values = summary["quantities"], summary["quantities_by_seed"]
    assert values["best_name"] == ["a", "b"] and means["best_name"] == "a"
    assert values["spread"] == pytest.approx([0.1, 0.06]) and means["spread"] == pytest.approx(0.08)
    assert values["lead"] == pytest.approx([0.04]) and means["lead"] == pytest.approx(0.04)


def test_what_is_measured_is_what_is_expected():
    entries = json.loads((EXPERIMENTS / "expected.json").read_text())["mnist_sweeps"]
    names = {entry["quantity"] for entry in entries if entry["when"]["figure"] == "sentences"}
    assert names == {f"quantities.{name}" for name in CLAIMS}


def test_a_sweep_that_was_started_as_one_run_over_several_ranks_is_refused_in_one_line(tmp_path):
    words = [MPIEXEC, "-n", "2", *command("mnist_sweeps.py --smoke --out out")]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    (said,) = done.stderr.splitlines()
    assert done.returncode == 2 and said.startswith("error: a sweep is not")
