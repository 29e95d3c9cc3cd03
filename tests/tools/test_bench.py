"""The benchmark's parts: ratios on figures made up, a contender that cannot run, the networks' shapes."""
import sys

import pytest
from tqdm import tqdm

from tools.bench import contest, ours, report
from tools.bench.workloads import WORKLOADS

def made(workload="W1", lot=600, usual=True, **turns):
    rows = [{"contender": name.replace("_", "-").replace("-kept", "+pages"), "turns_ms": times,
             "step_ms": min(t for t in times if t), "peak_mib": 20.0} for name, times in turns.items()]
    return {"workload": workload, "device": "cpu", "lot": lot, "usual_lot": usual, "rows": rows,
            "ratios": report.ratios(rows)}


def test_a_ratio_is_the_median_of_ratios_within_the_rounds_in_common():
    """The third round is disturbed for one, the fourth did not take place for the other."""
    (ratio,) = made(factored=[1.0, 2.0, 9.0, 1.0], torch=[2.0, 4.0, 4.5, None])["ratios"]
    assert (ratio["of"], ratio["to"], ratio["ratio"]) == ("factored", "torch", 0.5)
    assert made(factored=[None, 1.0], torch=[1.0, None])["ratios"] == []


def test_limits_are_judged_with_and_without_kept_pages():
    judged = report.judged([made(factored=[1.0], torch_in_place=[0.8], opacus_ghost=[4.0], opacus_ghost_kept=[2.0])])
    assert [(one["to"], one["ratio"], one["limit"], one["met"]) for one in judged] == [
        ("torch-in-place", 1.25, 1.15, False), ("opacus-ghost", 0.25, 0.35, True), ("opacus-ghost+pages", 0.5, 0.35, False)]


def test_the_fastest_mode_of_opacus_is_found_and_other_lots_are_not_judged():
    judged = report.judged([made("W5", auto=[1.0], opacus=[3.0], opacus_ew=[2.0], opacus_ghost=[4.0])])
    assert [(one["to"], one["ratio"]) for one in judged] == [("fastest Opacus", 0.5)]
    assert report.judged([made(usual=False, factored=[1.0], torch=[0.8])]) == []


@pytest.mark.parametrize("large, slope, linear", [(100.0, 1.0, True), (200.0, 1.15, False), (40.0, 0.8, False)])
def test_slope_of_time_against_the_lot(large, slope, linear):
    (growth,) = report.growth([made(lot=600, factored=[1.0]), made(lot=60_000, usual=False, factored=[large])])
    assert growth["slope"] == pytest.approx(slope, abs=0.005) and growth["linear"] is linear
    assert growth["per_example"] == pytest.approx(large / 100)


TINY = WORKLOADS["W1"].small()


def test_a_contender_that_cannot_run_is_left_out(tmp_path):
    """An interpreter without any library stands in for one without the peers."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    settings = contest.Settings(threads=1, rounds=2, seconds=0.0, peers_python=str(bare))
    said = []
    rows, interrupted = contest.hold(TINY, ["floor", "torch"], settings, said.append, tqdm(disable=True))
    assert [row["contender"] for row in rows] == ["floor"] and not interrupted
    assert said == ["left out: torch: ModuleNotFoundError: No module named 'numpy'"]


def test_the_floor_multiplies_the_matrices_of_every_layer():
    """Positions, inputs and outputs, worked out by hand from the networks' shapes."""
    assert {name: ours.products(WORKLOADS[name]) for name in ("W1", "W4", "W5")} == {
        "W1": [(1, 60, 1000), (1, 1000, 10)],
        "W4": [(576, 75, 64), (144, 1600, 64), (1, 2304, 384), (1, 384, 384), (1, 384, 10)],
        "W5": [(196, 64, 16), (25, 256, 32), (1, 512, 32), (1, 32, 10)]}
