"""The benchmark on tiny workloads: what it measures, who is left out, that the work is the same."""

import importlib.util
import json

import numpy as np
import pytest

from tools import benchmark, benchmark_ours
from tools.benchmark import WORKLOADS, hold, ratios

TINY = {name: WORKLOADS[name].small() for name in ("W1", "W5")}


@pytest.fixture
def tiny(monkeypatch):
    """Tiny workloads, turns of one step, and no peers that are installed."""
    monkeypatch.setattr(benchmark, "WORKLOADS", TINY)
    monkeypatch.setattr(benchmark, "hold", lambda *arguments: hold(*arguments, seconds=0.0))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_it_measures_prints_and_writes_json(tiny, tmp_path, capsys):
    file = tmp_path / "found.json"
    flags = [
        "--workloads",
        "W5",
        "--strategies",
        "auto",
        "exact",
        "--rounds",
        "2",
        "--json",
        str(file),
    ]
    assert benchmark.main(flags) == 0
    (one,) = json.loads(file.read_text())["contests"]
    assert one["workload"] == "W5" and one["left_out"] == {}
    assert one["command"] == "python -m tools.benchmark " + " ".join([*flags[:-1], "found.json"])
    assert [row["contender"] for row in one["rows"]] == ["auto", "exact", "floor"]
    for row in one["rows"]:
        assert len(row["turns_ms"]) == 2 and min(row["turns_ms"]) > 0 and row["versions"]["minidp"]
        assert min(row["turns_ms"]) <= row["step_ms"] <= max(row["turns_ms"])
    assert [(pair["of"], pair["to"]) for pair in one["ratios"]] == [
        ("auto", "floor"),
        ("exact", "floor"),
    ]
    assert all(pair["low"] <= pair["ratio"] <= pair["high"] for pair in one["ratios"])
    out, err = capsys.readouterr()
    assert "| W5 | step, ms | auto to it | exact to it |" in out
    assert err == "absent, not timed: torch, jax, opacus-ghost; pip install 'minidp[peers]'\n"
    assert one["absent"] == ["torch", "jax", "opacus-ghost"]


def test_nothing_to_time_is_no_success(tiny, capsys):
    assert benchmark.main(["--workloads", "W1", "--strategies", "none", "--floors", "none"]) == 1


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--rounds many", "an integer of at least 1, got many"),
        ("--rounds 0", "an integer of at least 1, got 0"),
        ("--json no/such/folder.json", "no such folder"),
        ("--peers keras", "invalid choice: 'keras'"),
    ],
)
def test_what_the_user_did_wrong_is_one_line(flags, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        benchmark.main(flags.split())
    out, err = capsys.readouterr()
    assert (stopped.value.code, out, err.count("\n")) == (2, "", 1)
    assert message in err and err.startswith("error: ")


def test_a_ratio_is_the_median_of_the_ratios_within_the_rounds():
    """The second round is slow for both, the third is disturbed for one of them."""
    (pair,) = ratios({"factored": [1.0, 8.0, 9.0], "torch": [2.0, 16.0, 2.0]})
    assert (pair["of"], pair["to"], pair["ratio"]) == ("factored", "torch", 0.5)


def test_a_contender_that_cannot_run_is_left_out_with_its_reason():
    contest = hold(TINY["W1"], ["floor", "nonsense"], 2, 0.0)
    assert [row["contender"] for row in contest["rows"]] == ["floor"] and contest["ratios"] == []
    assert "nonsense" in contest["left_out"]["nonsense"]


def test_a_contender_whose_network_is_another_is_left_out(monkeypatch):
    monkeypatch.setattr(benchmark, "parameters", lambda workload: 70_001)
    contest = hold(TINY["W1"], ["floor"], 1, 0.0)
    assert contest["rows"] == []
    assert contest["left_out"] == {"floor": "70,000 parameters, not 70,001: other work"}


@pytest.mark.parametrize("name", WORKLOADS)
def test_our_networks_have_the_parameters_that_are_counted(name):
    network = benchmark_ours.network_of(WORKLOADS[name], np.random.default_rng(0))
    assert benchmark_ours.size(network) == benchmark.parameters(WORKLOADS[name])


@pytest.mark.parametrize("peer, library", benchmark.PEERS.items())
@pytest.mark.parametrize("name", TINY)
def test_a_peer_that_is_installed_runs(peer, library, name):
    pytest.importorskip(library, reason=f"PEER MISSING: {library}; pip install 'minidp[peers]'")
    contest = hold(TINY[name], ["auto", peer], 2, 0.0)
    assert contest["left_out"] == {} and [row["contender"] for row in contest["rows"]] == [
        "auto",
        peer,
    ]


def test_the_floor_multiplies_the_matrices_of_every_layer():
    """Positions, inputs and outputs, worked out by hand from the networks' shapes."""
    networks = {
        name: benchmark_ours.network_of(WORKLOADS[name], None) for name in ("W1", "W4", "W5")
    }
    assert {name: benchmark_ours.products(network) for name, network in networks.items()} == {
        "W1": [(1, 60, 1000), (1, 1000, 10)],
        "W4": [(576, 75, 64), (144, 1600, 64), (1, 2304, 384), (1, 384, 384), (1, 384, 10)],
        "W5": [(196, 64, 16), (25, 256, 32), (1, 512, 32), (1, 32, 10)],
    }


def test_turns_are_at_least_one_step_and_leave_their_first_third_out(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: next(clock))
    assert benchmark.turn(lambda: None, 0.0) == 1000.0
    assert benchmark.turn(lambda: None, 9.0) == 1000.0
