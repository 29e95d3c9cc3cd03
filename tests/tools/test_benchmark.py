"""The benchmark on tiny workloads: what it measures, who is left out, that the work is the same."""

import json

import pytest

from tools import benchmark, contenders
from tools.benchmark import hold, ratios
from tools.contenders import WORKLOADS

TINY = {name: WORKLOADS[name].small() for name in ("W1", "W5")}


def test_it_measures_prints_and_writes_json(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(benchmark, "WORKLOADS", TINY)
    for name in (*benchmark.KEEP_PAGES, *benchmark.THREADS):
        monkeypatch.setenv(name, "1")  # and so what it sets ends with this test
    monkeypatch.setattr(benchmark, "hold", lambda *arguments: hold(*arguments, seconds=0.0))
    file = tmp_path / "found.json"
    flags = "--workloads W5 --strategies auto factored --peers none --rounds 2 --json".split()
    assert benchmark.main([*flags, str(file)]) == 0
    (one,) = json.loads(file.read_text())["contests"]
    assert one["workload"] == "W5" and one["left_out"] == {}
    assert [row["contender"] for row in one["rows"]] == ["auto", "factored", "floor"]
    for row in one["rows"]:
        assert len(row["turns_ms"]) == 2 and min(row["turns_ms"]) > 0 and row["versions"]["minidp"]
        assert min(row["turns_ms"]) <= row["step_ms"] <= max(row["turns_ms"])
    pairs = [(pair["of"], pair["to"]) for pair in one["ratios"]]
    assert pairs == [("auto", "floor"), ("factored", "floor")]
    said = capsys.readouterr().out
    assert "W5 auto: " in said and "W5 factored / floor: " in said


def test_a_ratio_is_the_median_of_the_ratios_within_the_rounds():
    """The second round is slow for both, the third is disturbed for one of them."""
    (pair,) = ratios({"factored": [1.0, 8.0, 9.0], "torch": [2.0, 16.0, 2.0]})
    assert pair == {"of": "factored", "to": "torch", "ratio": 0.5}


def test_a_contender_that_cannot_run_is_left_out():
    contest = hold(TINY["W1"], ["nonsense"], 2, seconds=0.0)
    assert contest["rows"] == contest["ratios"] == []
    assert "nonsense" in contest["left_out"]["nonsense"]


@pytest.mark.parametrize("peer, library", [*zip(benchmark.PEERS, ("torch", "jax", "opacus"))])
@pytest.mark.parametrize("name", TINY)
def test_a_peer_that_is_installed_runs(peer, library, name):
    pytest.importorskip(library, reason=f"PEER MISSING: {library}; pip install 'minidp[peers]'")
    contest = hold(TINY[name], ["auto", peer], 2, seconds=0.0)
    assert contest["left_out"] == {}
    assert [row["contender"] for row in contest["rows"]] == ["auto", peer]


@pytest.mark.parametrize("name", WORKLOADS)
def test_pytorch_has_the_same_parameters(name):
    pytest.importorskip("torch", reason="PEER MISSING: torch; pip install 'minidp[peers]'")
    workload = WORKLOADS[name]
    ours = [each.size for each in workload.network().params.values()]
    theirs = [each.numel() for each in contenders.torch_network(workload).parameters()]
    assert ours == theirs


def test_the_floor_multiplies_the_matrices_of_every_layer():
    """Positions, inputs and outputs, worked out by hand from the networks' shapes."""
    network = WORKLOADS["W5"].network()
    sizes = [(196, 64, 16), (25, 256, 32), (1, 512, 32), (1, 32, 10)]
    assert contenders.products(network) == sizes
