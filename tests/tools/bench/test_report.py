"""Ratios and limits, on figures made up so that the answer is known."""
import pytest

from tools.bench import report


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
    judged = report.judged([made(factored=[1.0], torch=[0.8], opacus_ghost=[4.0], opacus_ghost_kept=[2.0])])
    assert [(one["to"], one["ratio"], one["limit"], one["met"]) for one in judged] == [
        ("torch", 1.25, 1.0, False), ("opacus-ghost", 0.25, 0.35, True), ("opacus-ghost+pages", 0.5, 0.35, False)]


def test_the_fastest_mode_of_opacus_is_found_and_other_lots_are_not_judged():
    judged = report.judged([made("W5", auto=[1.0], opacus=[3.0], opacus_ew=[2.0], opacus_ghost=[4.0])])
    assert [(one["to"], one["ratio"]) for one in judged] == [("fastest Opacus", 0.5)]
    assert report.judged([made(usual=False, factored=[1.0], torch=[0.8])]) == []


@pytest.mark.parametrize("large, slope, linear", [(100.0, 1.0, True), (200.0, 1.15, False), (40.0, 0.8, False)])
def test_slope_of_time_against_the_lot(large, slope, linear):
    (growth,) = report.growth([made(lot=600, factored=[1.0]), made(lot=60_000, usual=False, factored=[large])])
    assert growth["slope"] == pytest.approx(slope, abs=0.005) and growth["linear"] is linear
    assert growth["per_example"] == pytest.approx(large / 100)
