"""The benchmark runs as a user runs it; its parts: ratios on figures made up, contenders that
cannot run, networks' shapes.
"""

import json
import subprocess
import sys

import pytest
from tqdm import tqdm

from tests.support.scripts import environment
from tools import benchmark
from tools.bench import contest, ours, report
from tools.bench.workloads import WORKLOADS


def run(*flags, cwd):
    return subprocess.run(
        [sys.executable, "-m", "tools.benchmark", *flags],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(),
    )


def test_it_measures_and_writes_json(tmp_path):
    flags = ["--smoke", "--workloads", "W5", "--peers", "none", "--json", "all.json"]
    done = run(*flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "all.json").read_text())
    (one,) = result["contests"]
    assert one["workload"] == "W5" and one["device"] == "cpu" and not one["usual_lot"]
    assert one["command"] == "python -m tools.benchmark " + " ".join(flags)
    ours = ["auto", "factored", "explicit"]
    assert [row["contender"] for row in one["rows"]] == [*ours, "floor"]
    for row in one["rows"]:
        assert row["step_ms"] > 0 and row["peak_mib"] >= 0 and row["process_mib"] > 10
        assert len(row["turns_ms"]) == one["rounds"] == 2 and row["versions"]["minidp"]
        assert row["products"] is None or row["products"]["threads"] == one["threads"]
    assert [(ratio["of"], ratio["to"]) for ratio in one["ratios"]] == [
        (name, "floor") for name in ours
    ]
    assert all(ratio["low"] <= ratio["ratio"] <= ratio["high"] for ratio in one["ratios"])


def test_parts_are_merged_and_measured_again(tmp_path):
    flags = "--smoke --workloads W1 --peers none --floors none --strategies factored --json all.json".split()
    assert run(*flags, "--lots", "4", "8", cwd=tmp_path).returncode == 0
    before = json.loads((tmp_path / "all.json").read_text())["contests"]
    done = run(*flags, "--lots", "8", "--merge", "--picture", "lots.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    after = json.loads((tmp_path / "all.json").read_text())["contests"]
    assert [one["lot"] for one in after] == [one["lot"] for one in before] == [4, 8]
    assert after[0] == before[0] and after[1] != before[1]
    assert "| W1 | 8 | factored | " in done.stdout
    assert (tmp_path / "lots.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--lots many", "invalid positive value: 'many'"),
        ("--merge", "--merge needs --json FILE"),
        ("--json no/such/folder.json", "no such folder"),
        ("--peers-python no-such-python", "no Python interpreter"),
        ("--json other.json --merge --peers none", "not a result of this tool"),
    ],
)
def test_what_the_user_did_wrong_is_one_line(flags, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(SystemExit) as stopped:
        benchmark.main(flags.split())
    out, err = capsys.readouterr()
    assert (
        (stopped.value.code, out, err.count("\n")) == (2, "", 1)
        and message in err
        and err.startswith("error: ")
    )


def made(workload="W1", lot=600, usual=True, **turns):
    rows = [
        {
            "contender": name.replace("_", "-").replace("-kept", "+pages"),
            "turns_ms": times,
            "step_ms": min(t for t in times if t),
            "peak_mib": 20.0,
        }
        for name, times in turns.items()
    ]
    return {
        "workload": workload,
        "device": "cpu",
        "lot": lot,
        "usual_lot": usual,
        "rows": rows,
        "ratios": report.ratios(rows),
    }


def test_a_ratio_is_the_median_of_ratios_within_the_rounds_in_common():
    """The third round is disturbed for one, the fourth did not take place for the other."""
    (ratio,) = made(factored=[1.0, 2.0, 9.0, 1.0], torch=[2.0, 4.0, 4.5, None])["ratios"]
    assert (ratio["of"], ratio["to"], ratio["ratio"]) == ("factored", "torch", 0.5)
    assert made(factored=[None, 1.0], torch=[1.0, None])["ratios"] == []


def test_limits_are_judged_with_and_without_kept_pages():
    judged = report.judged(
        [made(factored=[1.0], torch_in_place=[0.8], opacus_ghost=[4.0], opacus_ghost_kept=[2.0])]
    )
    assert [(one["to"], one["ratio"], one["limit"], one["met"]) for one in judged] == [
        ("torch-in-place", 1.25, 1.15, False),
        ("opacus-ghost", 0.25, 0.35, True),
        ("opacus-ghost+pages", 0.5, 0.35, False),
    ]


def test_the_fastest_mode_of_opacus_is_found_and_other_lots_are_not_judged():
    judged = report.judged(
        [made("W5", auto=[1.0], opacus=[3.0], opacus_ew=[2.0], opacus_ghost=[4.0])]
    )
    assert [(one["to"], one["ratio"]) for one in judged] == [("fastest Opacus", 0.5)]
    assert report.judged([made(usual=False, factored=[1.0], torch=[0.8])]) == []


@pytest.mark.parametrize(
    "large, slope, linear", [(100.0, 1.0, True), (200.0, 1.15, False), (40.0, 0.8, False)]
)
def test_slope_of_time_against_the_lot(large, slope, linear):
    (growth,) = report.growth(
        [made(lot=600, factored=[1.0]), made(lot=60_000, usual=False, factored=[large])]
    )
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
    rows, interrupted = contest.hold(
        TINY, ["floor", "torch"], settings, said.append, tqdm(disable=True)
    )
    assert [row["contender"] for row in rows] == ["floor"] and not interrupted
    assert said == ["left out: torch: ModuleNotFoundError: No module named 'numpy'"]


def test_the_floor_multiplies_the_matrices_of_every_layer():
    """Positions, inputs and outputs, worked out by hand from the networks' shapes."""
    assert {name: ours.products(WORKLOADS[name]) for name in ("W1", "W4", "W5")} == {
        "W1": [(1, 60, 1000), (1, 1000, 10)],
        "W4": [(576, 75, 64), (144, 1600, 64), (1, 2304, 384), (1, 384, 384), (1, 384, 10)],
        "W5": [(196, 64, 16), (25, 256, 32), (1, 512, 32), (1, 32, 10)],
    }
