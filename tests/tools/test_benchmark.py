"""The benchmark runs as a user runs it; its figures are looked at, not asserted."""
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_it_measures_and_writes_json(tmp_path):
    command = [sys.executable, str(ROOT / "tools" / "benchmark.py"), "--workloads", "W1", "--strategies", "factored",
               "--repeats", "2", "--device", "cpu", "--json", str(tmp_path / "benchmark.json")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "benchmark.json").read_text())["rows"]
    assert row["workload"] == "W1" and row["lot"] == 600 and row["device"] == "cpu"
    assert row["step_ms"] > 0 and row["ratio"] == row["step_ms"] / row["floor_ms"] and row["peak_mib"] >= 0


def test_bad_flags_are_refused(tmp_path):
    for flags in (["--workloads", "W9"], ["--repeats", "0"]):
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "benchmark.py"), *flags], capture_output=True)
        assert done.returncode == 2
