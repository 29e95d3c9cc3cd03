"""The report on a GPU, made on arrays that stand for one."""

import json

import numpy as np
import pytest

from minidp import nn
from tests.support import shim
from tests.support.guarded import guarded_backend
from tools import gpu_report


def made(tmp_path, *parts, status=0):
    """{name: rows} of report.json on the guarded arrays."""
    flags = ["--out", str(tmp_path), *(["--parts", *parts] if parts else [])]
    assert gpu_report.main(flags, guarded_backend()) == status
    return json.loads((tmp_path / "report.json").read_text())["parts"]


def test_every_part_runs_without_a_gpu(tmp_path):
    parts = made(tmp_path)
    (about,), jobs = parts["device"], parts["main job"]
    assert about["noise drawn on"] == ("GPU" if shim.COMPILER else "CPU") and about["numpy"]
    assert list(parts) == list(gpu_report.PARTS)
    assert len(parts["training"]) == 5 and all(row["gpu_ms"] > 0 for row in parts["training"])
    assert len(parts["starts"]) == 6 and all(row["us"] > 0 for row in parts["starts"])
    assert all(min(row["us"].values()) > 0 for row in parts["products"])
    for row in parts["where"]:
        assert [*row["ms"]] == "gather forward loss backward clip release".split()
    (contest,) = parts["benchmark"]
    assert {row["contender"] for row in contest["rows"]} == {"auto", "floor"}
    assert [job["caches"] for job in jobs] == ["cold", "warm"]
    for job in jobs:
        assert job["epsilon"] > 0 and job["seconds_total"] > 0
        parts_of_it = [each for name, each in job["seconds"].items() if name != "process"]
        assert sum(parts_of_it) == pytest.approx(job["seconds"]["process"])


@pytest.mark.parametrize("factor", [-3, np.nan])
def test_weights_that_differ_fail_the_report(factor, monkeypatch, tmp_path):
    right = nn.Dense.compute_y

    def off(self, x, rng):
        y, cache = right(self, x, rng)
        return y if isinstance(x, np.ndarray) else y * factor, cache

    monkeypatch.setattr(nn.Dense, "compute_y", off)
    rows = made(tmp_path, "training", status=1)["training"]
    assert not any(row["ok"] for row in rows)


def test_a_main_job_that_fails_is_in_the_report(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_report, "MAIN_JOB", ["--no-such-flag"])
    for row in made(tmp_path, "main job", status=1)["main job"]:
        assert not row["ok"] and "--no-such-flag" in row["error"]
