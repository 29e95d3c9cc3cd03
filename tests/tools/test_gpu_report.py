"""The report on a GPU, made on arrays that stand for one: its parts, and what is missing."""

import json
import time

import numpy as np
import pytest

from minidp import device, nn
from tests.support import shim
from tests.support.guarded import guarded_backend
from tools import gpu_report


def made(tmp_path, *parts, status=0):
    """{name: part} of report.json on the guarded arrays."""
    flags = ["--out", str(tmp_path), *(["--parts", *parts] if parts else [])]
    assert gpu_report.main(flags, guarded_backend()) == status
    return json.loads((tmp_path / "report.json").read_text())["parts"]


def test_every_part_runs_without_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_report.selfcheck, "NUMBERS", 2**17)  # of a batch
    monkeypatch.setattr(gpu_report, "STRATEGIES", ("explicit", "exact"))
    assert sum(seconds for seconds, _ in gpu_report.PARTS.values()) <= gpu_report.SECONDS == 8 * 60
    parts = made(tmp_path)
    for name, part in parts.items():
        assert part["state"] == "passed", (name, part["message"])
    assert [row["contender"] for row in parts["steps"]["rows"]] == ["explicit", "factored"]


@pytest.mark.parametrize("factor", [1.001, np.nan])
def test_a_layer_that_differs_fails_the_report(factor, monkeypatch, tmp_path):
    def off(self, x, xp):
        return xp.tanh(x) * (1 if xp is np else factor)

    monkeypatch.setattr(nn.Tanh, "_value", off)
    part = made(tmp_path, "layers and losses", status=1)["layers and losses"]
    wrong = {row["what"] for row in part["rows"] if not row["ok"]}
    assert part["state"] == "failed" and "nn.activation.Tanh [F1]" in wrong
    assert not any("ReLU" in what for what in wrong)


@pytest.mark.skipif(not shim.COMPILER, reason="no C++ compiler: the CUDA sources were not executed")
@pytest.mark.parametrize("part", ["noise", "training"])
def test_noise_that_is_off_by_a_bit_on_the_device_fails_the_report(part, monkeypatch, tmp_path):
    right = device.release

    def off(sums, *rest):
        return right(
            [(raw + (grid or 1), *place, grid, scale) for raw, *place, grid, scale in sums], *rest
        )

    monkeypatch.setattr(device, "release", off)
    monkeypatch.setattr(gpu_report, "STRATEGIES", ("exact",))
    rows = made(tmp_path, part, status=1)[part]["rows"]
    assert not any(row["ok"] for row in rows)


def test_what_fails_is_in_the_report_and_the_rest_goes_on(monkeypatch, tmp_path):
    def part(then):
        def rows(bench):
            yield {"ok": True}
            then()

        return 0.1, rows

    def interrupt():
        raise KeyboardInterrupt

    parts = {"breaks": part(lambda: {}["key"]), "sleeps": part(lambda: time.sleep(30))}
    parts |= {"stops": part(interrupt), "never": part(interrupt)}
    monkeypatch.setattr(gpu_report, "PARTS", parts)
    with pytest.raises(SystemExit) as stopped:
        made(tmp_path)
    found = json.loads((tmp_path / "report.json").read_text())["parts"]
    assert stopped.value.code == 130 and all(
        part["rows"] == [{"ok": True}] for part in found.values()
    )
    assert [(name, part["state"], part["message"]) for name, part in found.items()] == [
        ("breaks", "failed", "KeyError: 'key'"),
        ("sleeps", "failed", "OutOfTime: cut after its 0.4 seconds"),
        ("stops", "interrupted", ""),
    ]
