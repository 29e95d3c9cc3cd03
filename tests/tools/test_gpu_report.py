"""The report on a GPU, made on arrays that stand for one: its parts, and what it says of what is wrong or missing."""
import json
import time
from dataclasses import replace

import numpy as np
import pytest

from minidp import nn
from minidp.audit.cases import LAYERS
from minidp.backend import Backend
from minidp.errors import DeviceUnavailableError
from minidp.mechanism import sanitizer
from tests.support.guarded import guarded_backend
from tools.gpu import compare, measure, report


def made(tmp_path, *parts, status=0):
    """report.json of these parts on the guarded arrays, {name: part}, and the page."""
    flags = ["--out", str(tmp_path), "--on", "guarded", *(["--parts", *parts] if parts else [])]
    assert report.main(flags) == status
    found = json.loads((tmp_path / "report.json").read_text())
    return {part["name"]: part for part in found["parts"]}, (tmp_path / "report.html").read_text()


def test_every_part_runs_without_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIDP_CACHE", str(tmp_path))  # no CIFAR-10
    monkeypatch.delenv("MINIDP_DATA", raising=False)
    parts, page = made(tmp_path)
    assert list(parts) == [part.name for part in report.PARTS]
    states = {name: part["state"] for name, part in parts.items()}
    assert {name for name, state in states.items() if state != "passed"} == {"profile", "limits", "CIFAR-10"}
    assert all(parts[name]["state"] == "skipped" for name in ("profile", "limits", "CIFAR-10"))
    assert all("not measured" in parts[name]["message"] for name in ("profile", "limits"))
    assert {row["workload"] for row in parts["launches"]["rows"]} == {"W1", "W2", "W3", "W4", "W5"}
    assert all(row["launches, predicted"] > 0 and row["measured"] == "not measured" for row in parts["launches"]["rows"])
    assert len(parts["layers and losses"]["rows"]) == 2 * (len(LAYERS) + len(compare.LOSSES))
    assert "no figure here was measured on a GPU" in page and "FAIL" not in page and "data:image/png" in page
    for name in ("main job", "CNN"):
        (row,) = parts[name]["rows"]
        assert row["steps"] > 0 and 0 <= row["test accuracy"] <= 1


def test_the_whole_ends_in_time():
    assert sum(part.seconds for part in report.PARTS) <= report.SECONDS == 8 * 60


def test_a_layer_that_differs_fails_the_report(monkeypatch, tmp_path):
    class Other(nn.Tanh):
        def _value(self, x, xp):
            return xp.tanh(x) * (1 if xp is np else 1.01)

    wrong = replace(next(case for case in LAYERS if case.name == "tanh"), make=lambda rng, dtype: Other())
    monkeypatch.setattr(compare, "LAYERS", [wrong])
    parts, page = made(tmp_path, "layers and losses", status=1)
    assert parts["layers and losses"]["state"] == "failed" and page.count("FAIL") == 2  # once for each dtype


@pytest.mark.parametrize("part, name, arithmetic", [("noise", "add_gaussian", "ordinary"), ("noise", "add_integers", "exact"),
                                                    ("training", "add_integers", "exact")])
def test_noise_that_is_off_by_a_bit_on_the_device_fails_the_report(part, name, arithmetic, monkeypatch, tmp_path):
    right = getattr(sanitizer, name)
    monkeypatch.setattr(sanitizer, name, lambda raw, *rest: right(raw if isinstance(raw, np.ndarray) else raw + (1 if name == "add_integers" else 2.0**-18), *rest))
    parts, _ = made(tmp_path, part, status=1)
    assert {row["arithmetic"] for row in parts[part]["rows"] if not row["ok"]} == {arithmetic}


def test_what_fails_is_in_the_report_and_the_rest_goes_on(monkeypatch, tmp_path):
    def breaks(bench):
        yield {"what": "one", "ok": True}
        raise ValueError("broken\nby the test")

    def sleeps(bench):
        yield {"what": "two"}
        time.sleep(30)

    def interrupted(bench):
        yield {"what": "three"}
        raise KeyboardInterrupt

    made_of = (report.Part("breaks", 5, breaks), report.Part("sleeps", 1, sleeps), report.Part("interrupted", 5, interrupted),
               report.Part("never", 5, breaks))
    monkeypatch.setattr(report, "PARTS", made_of)
    with pytest.raises(SystemExit) as stopped:
        report.main(["--out", str(tmp_path), "--on", "guarded"])
    assert stopped.value.code == 130
    parts = json.loads((tmp_path / "report.json").read_text())["parts"]
    assert [part["state"] for part in parts] == ["failed", "failed", "interrupted"]
    assert parts[0]["message"] == "ValueError: broken" and "cut after its 1 seconds" in parts[1]["message"]
    assert [part["rows"][0]["what"] for part in parts] == ["one", "two", "three"]


def test_without_a_gpu_it_says_so(monkeypatch, tmp_path, capsys):
    def none(device=None):
        raise DeviceUnavailableError("device gpu: there is none")

    monkeypatch.setattr(Backend, "cupy", none)
    with pytest.raises(SystemExit) as stopped:
        report.main(["--out", str(tmp_path / "out")])
    assert stopped.value.code == 2 and capsys.readouterr().err == "error: device gpu: there is none\n"
    assert not (tmp_path / "out").exists()


def test_an_experiment_without_its_data_is_skipped_by_name(monkeypatch, tmp_path):
    bench = report.Bench(guarded_backend(), "gpu", tmp_path)
    monkeypatch.setenv("MINIDP_CACHE", str(tmp_path))
    monkeypatch.delenv("MINIDP_DATA", raising=False)
    report.run(report.Part("CIFAR-10", 5, measure.cifar), bench)
    assert bench.parts[0]["state"] == "skipped" and "CIFAR-10" in bench.parts[0]["message"] and "--data" in bench.parts[0]["message"]


def test_kernels_of_a_trace_are_counted_by_their_names():
    events = [{"cat": cat, "name": name, "dur": dur} for cat, name, dur in (
        ("kernel", "gemm", 30.0), ("kernel", "gemm", 30.0), ("kernel", "clip", 20.0), ("cuda_runtime", "cudaLaunchKernel", 9.0),
        ("gpu_memcpy", "Memcpy HtoD", 20.0))] + [{"name": "no category"}]
    bench = report.Bench(guarded_backend(), "guarded", None)
    bench.kernels = {("W1", "explicit"): measure.device_events({"traceEvents": events})}
    rows = list(measure.profile_of(bench))
    assert [(row["kernel"], row["share"]) for row in rows] == [("gemm", 0.6), ("clip", 0.2), ("Memcpy HtoD", 0.2)]
