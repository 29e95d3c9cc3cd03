"""The benchmark runs as a user runs it; its figures are looked at, not asserted."""
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from minidp import nn
from tools import benchmark

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("workload, strategy, lot", [("W1", "factored", 600), ("W5", "auto", 256)])
def test_it_measures_and_writes_json(workload, strategy, lot, tmp_path):
    command = [sys.executable, str(ROOT / "tools" / "benchmark.py"), "--workloads", workload, "--strategies", strategy,
               "--repeats", "2", "--device", "cpu", "--json", str(tmp_path / "benchmark.json")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "benchmark.json").read_text())["rows"]
    assert row["workload"] == workload and row["lot"] == lot and row["device"] == "cpu"
    assert row["step_ms"] > 0 and row["ratio"] == row["step_ms"] / row["floor_ms"] and row["peak_mib"] >= 0


def test_bad_flags_are_refused(tmp_path):
    for flags in (["--workloads", "W9"], ["--repeats", "0"]):
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "benchmark.py"), *flags], capture_output=True)
        assert done.returncode == 2


def test_the_floor_multiplies_the_matrices_of_every_layer():
    """Rows are examples times positions, worked out by hand from the networks' shapes."""
    found = {}
    for name in ("W1", "W4", "W5"):
        workload = benchmark.WORKLOADS[name]
        network = nn.Sequential(workload.layers(nn, np.random.default_rng(0)), workload.input_shape)
        found[name] = benchmark.products(network, workload.lot)
    assert found == {
        "W1": [(600, 60, 1000), (600, 1000, 10)],
        "W4": [(128 * 576, 75, 64), (128 * 144, 1600, 64), (128, 2304, 384), (128, 384, 384), (128, 384, 10)],
        "W5": [(256 * 196, 64, 16), (256 * 25, 256, 32), (256, 512, 32), (256, 32, 10)]}
