"""The benchmark runs as a user runs it; its figures are looked at, not asserted."""
import json
import subprocess
import sys

import pytest

from tests.support.scripts import environment
from tools import benchmark


def run(*flags, cwd):
    return subprocess.run([sys.executable, "-m", "tools.benchmark", *flags], capture_output=True, text=True, cwd=cwd,
                          env=environment())


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
    assert [(ratio["of"], ratio["to"]) for ratio in one["ratios"]] == [(name, "floor") for name in ours]
    assert all(ratio["low"] <= ratio["ratio"] <= ratio["high"] for ratio in one["ratios"])


def test_parts_are_merged_and_measured_again(tmp_path):
    flags = "--smoke --workloads W1 --peers none --floors none --strategies factored --json all.json".split()
    assert run(*flags, "--lots", "4", "8", cwd=tmp_path).returncode == 0
    before = json.loads((tmp_path / "all.json").read_text())["contests"]
    done = run(*flags, "--lots", "8", "--merge", "--markdown", "--picture", "lots.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    after = json.loads((tmp_path / "all.json").read_text())["contests"]
    assert [one["lot"] for one in after] == [one["lot"] for one in before] == [4, 8]
    assert after[0] == before[0] and after[1] != before[1]
    assert "| W1 | 8 | factored | " in done.stdout
    assert (tmp_path / "lots.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("flags, message", [
    ("--lots many", "invalid positive value: 'many'"), ("--merge", "--merge needs --json FILE"),
    ("--json no/such/folder.json", "no such folder"), ("--peers-python no-such-python", "no Python interpreter"),
    ("--json other.json --merge --peers none", "not a result of this tool")])
def test_what_the_user_did_wrong_is_one_line(flags, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(SystemExit) as stopped:
        benchmark.main(flags.split())
    out, err = capsys.readouterr()
    assert (stopped.value.code, out, err.count("\n")) == (2, "", 1) and message in err and err.startswith("error: ")
