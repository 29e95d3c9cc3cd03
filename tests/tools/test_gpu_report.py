"""The report on a GPU, made on arrays that stand for one: its parts, and what it says of what is
wrong or missing.
"""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from minidp import device_kernels, nn
from minidp.audit.cases import LAYERS, LOSSES
from minidp.backend import Backend
from minidp.errors import DeviceUnavailableError
from tests.support import shim
from tests.support.guarded import guarded_backend
from tools.gpu import compare, measure, report


def made(tmp_path, *parts, status=0):
    """{name: part} of report.json on the guarded arrays, and the page."""
    assert (
        report.main(
            ["--out", str(tmp_path), "--on", "guarded", *(["--parts", *parts] if parts else [])]
        )
        == status
    )
    return json.loads((tmp_path / "report.json").read_text())["parts"], (
        tmp_path / "report.html"
    ).read_text()


def test_every_part_runs_without_a_gpu(monkeypatch, tmp_path):
    assert sum(seconds for seconds, _ in report.PARTS.values()) <= report.SECONDS == 8 * 60
    monkeypatch.setenv("MINIDP_CACHE", str(tmp_path))  # no CIFAR-10 there
    monkeypatch.delenv("MINIDP_DATA", raising=False)
    parts, page = made(tmp_path)
    skipped = {"limits": "not measured", "CIFAR-10": "name its folder by --data"}
    skipped |= {} if shim.COMPILER else {"kernels": "no C++ compiler"}
    for name in report.PARTS:
        assert (
            parts[name]["state"] == ("skipped" if name in skipped else "passed")
            and skipped.get(name, "") in parts[name]["message"]
        )
    assert len(parts["layers and losses"]["rows"]) == 2 * (len(LAYERS) + len(LOSSES))
    assert all(
        0 <= row["test accuracy"] <= 1
        for name in ("main job", "CNN")
        for row in parts[name]["rows"]
    )
    assert (
        "no figure here was measured on a GPU" in page
        and "FAIL" not in page
        and "data:image/png" in page
    )


@pytest.mark.parametrize("factor", [1.001, np.nan])
def test_a_layer_that_differs_fails_the_report(factor, monkeypatch, tmp_path):
    class Other(nn.Tanh):
        def _value(self, x, xp):
            return xp.tanh(x) * (1 if xp is np else factor)

    wrong = replace(
        next(case for case in LAYERS if case.name == "tanh"), make=lambda rng, dtype: Other()
    )
    monkeypatch.setattr(compare, "LAYERS", [wrong])
    parts, page = made(tmp_path, "layers and losses", status=1)
    assert (
        parts["layers and losses"]["state"] == "failed" and page.count("FAIL") == 2
    )  # once for each dtype


@pytest.mark.skipif(not shim.COMPILER, reason="no C++ compiler: the CUDA sources were not executed")
@pytest.mark.parametrize("part, wrong", [("noise", {"ordinary", "exact"}), ("training", {"exact"})])
def test_noise_that_is_off_by_a_bit_on_the_device_fails_the_report(
    part, wrong, monkeypatch, tmp_path
):
    right = device_kernels.release
    monkeypatch.setattr(
        device_kernels,
        "release",
        lambda sums, *rest: right(
            [(raw + (grid or 1), *place, grid, scale) for raw, *place, grid, scale in sums], *rest
        ),
    )
    rows = made(tmp_path, part, status=1)[0][part]["rows"]
    assert all(row["ok"] != bool(wrong & set(map(str, row.values()))) for row in rows)


def test_what_fails_is_in_the_report_and_the_rest_goes_on(monkeypatch, tmp_path):
    def part(then):
        def rows(bench):
            yield {"ok": True}
            then()

        return 0.1, rows

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(
        report,
        "PARTS",
        {
            "breaks": part(lambda: {}["key"]),
            "sleeps": part(lambda: time.sleep(30)),
            "stops": part(interrupt),
            "never": part(interrupt),
        },
    )
    with pytest.raises(SystemExit) as stopped:
        report.main(["--out", str(tmp_path), "--on", "guarded"])
    found = json.loads((tmp_path / "report.json").read_text())["parts"]
    assert stopped.value.code == 130 and all(
        part["rows"] == [{"ok": True}] for part in found.values()
    )
    assert [(name, part["state"], part["message"]) for name, part in found.items()] == [
        ("breaks", "failed", "KeyError: 'key'"),
        ("sleeps", "failed", "cut after its 0.4 seconds"),
        ("stops", "interrupted", ""),
    ]


def test_without_a_gpu_it_says_so(monkeypatch, tmp_path, capsys):
    def none(device=None):
        raise DeviceUnavailableError("device gpu: there is none")

    monkeypatch.setattr(Backend, "cupy", none)
    with pytest.raises(SystemExit) as stopped:
        report.main(["--out", str(tmp_path / "out")])
    assert (
        stopped.value.code == 2 and capsys.readouterr().err == "error: device gpu: there is none\n"
    )
    assert not (tmp_path / "out").exists()


def test_times_are_held_to_the_limits():
    bench = report.Bench(replace(guarded_backend(), name="gpu"), None)
    rows = [
        {"workload": "W1", "contender": name, "explicit to it": 1.6, "factored to it": 1.1}
        for name in ("copy", "torch")
    ]
    bench.parts |= {"steps": {"rows": rows}, "main job": {"rows": [{"seconds": 14.0}]}}
    assert [row["ok"] for row in measure.limits(bench)] == [False, True, True]
