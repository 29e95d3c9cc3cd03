"""The report on a GPU, made on arrays that stand for one: its parts, and what is missing."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from minidp import device, nn
from minidp.audit.cases import LAYERS, LOSSES
from minidp.backend import Backend
from minidp.errors import DeviceUnavailableError
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
    assert len(parts["layers and losses"]["rows"]) == 2 * (len(LAYERS) + len(LOSSES))
    assert [row["contender"] for row in parts["steps"]["rows"]] == ["explicit", "factored"]


@pytest.mark.parametrize("factor", [1.001, np.nan])
def test_a_layer_that_differs_fails_the_report(factor, monkeypatch, tmp_path):
    class Other(nn.Tanh):
        def _value(self, x, xp):
            return xp.tanh(x) * (1 if xp is np else factor)

    tanh = next(case for case in LAYERS if case.name == "tanh")
    monkeypatch.setattr(gpu_report, "LAYERS", [replace(tanh, of=Other)])
    part = made(tmp_path, "layers and losses", status=1)["layers and losses"]
    assert part["state"] == "failed" and part["message"].startswith("2 of ")  # one for each dtype


@pytest.mark.skipif(not shim.COMPILER, reason="no C++ compiler: the CUDA sources were not executed")
@pytest.mark.parametrize("part, wrong", [("noise", {"ordinary", "exact"}), ("training", {"exact"})])
def test_noise_that_is_off_by_a_bit_on_the_device_fails_the_report(
    part, wrong, monkeypatch, tmp_path
):
    right = device.release

    def off(sums, *rest):
        return right(
            [(raw + (grid or 1), *place, grid, scale) for raw, *place, grid, scale in sums], *rest
        )

    monkeypatch.setattr(device, "release", off)
    monkeypatch.setattr(gpu_report, "STRATEGIES", ("auto", "exact"))
    rows = made(tmp_path, part, status=1)[part]["rows"]
    assert all(row["ok"] != bool(wrong & set(map(str, row.values()))) for row in rows)


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


def test_without_a_gpu_it_says_so(monkeypatch, tmp_path, capsys):
    def none(device=None):
        raise DeviceUnavailableError("device gpu: there is none")

    monkeypatch.setattr(Backend, "cupy", none)
    with pytest.raises(SystemExit) as stopped:
        gpu_report.main(["--out", str(tmp_path / "out")])
    assert (
        stopped.value.code == 2 and capsys.readouterr().err == "error: device gpu: there is none\n"
    )
    assert not (tmp_path / "out").exists()
