"""Which kernels are picked for which processor, that nobody's own choice is overruled, and that only tune() acts."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minidp import host
from minidp.host import blas
from minidp.host.tune import kernels_for

ROOT = Path(__file__).resolve().parents[2]
AVX512 = "sse2 avx2 avx512f avx512dq avx512cd avx512bw avx512vl"


def cpuinfo(vendor, family, flags):
    one = f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: 17\nflags\t\t: {flags}\n"
    return f"{one}\n{one.replace('processor	: 0', 'processor	: 1')}"


@pytest.mark.parametrize("text, expected", [
    (cpuinfo("AuthenticAMD", 25, AVX512), "SKYLAKEX"),  # Zen 4
    (cpuinfo("GenuineIntel", 6, AVX512), "SKYLAKEX"),
    (cpuinfo("AuthenticAMD", 25, "sse2 avx2"), None),  # Zen 3
    (cpuinfo("GenuineIntel", 6, AVX512.replace("avx512bw", "")), None),
    (cpuinfo("SomebodyElse", 6, AVX512), None),
    ("processor\t: 0\nBogoMIPS\t: 50\nFeatures\t: fp asimd\n", None),
    ("", None),
])
def test_kernels_follow_the_processor(text, expected):
    assert kernels_for(text) == expected


def after(script, **environment):
    """(OPENBLAS_CORETYPE, host.describe()) after a script in a fresh process."""
    inherited = {name: value for name, value in os.environ.items()
                 if name not in ("OPENBLAS_CORETYPE", "MINIDP_KERNELS", "MINIDP_MALLOC")}
    script += ("; import os, json; from minidp import host; "
               "print(json.dumps([os.environ.get('OPENBLAS_CORETYPE'), host.describe()]))")
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env={**inherited, **environment}, text=True,
                          capture_output=True, timeout=60, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_importing_changes_nothing():
    chosen, described = after("import minidp; from minidp import nn, train")
    assert chosen is None and described["allocator"] == "default"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what there is to tune is Linux's")
def test_tune_chooses_for_this_processor():
    expected = kernels_for(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    chosen, described = after("from minidp import host; host.tune()")
    assert chosen == expected
    if expected and described["openblas_kernels"]:
        assert described["openblas_kernels"].upper() == expected
    assert described["allocator"] in ("glibc, freed pages kept", "default")  # the latter with another C library


@pytest.mark.parametrize("first, environment, expected", [
    ("import numpy", {}, None),  # too late
    ("pass", {"MINIDP_KERNELS": "default"}, None),
    ("pass", {"OPENBLAS_CORETYPE": "PRESCOTT"}, "PRESCOTT"),
])
def test_a_choice_made_elsewhere_stands(first, environment, expected):
    chosen, described = after(f"{first}; from minidp import host; host.tune()", MINIDP_MALLOC="default", **environment)
    assert chosen == expected and described["allocator"] == "default"


def test_without_an_openblas_nothing_is_claimed(monkeypatch):
    monkeypatch.setattr(blas, "_function", lambda name: None)
    assert host.describe()["openblas_kernels"] is None and blas.thread_functions.__wrapped__() is None
