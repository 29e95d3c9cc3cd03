"""Which kernels of OpenBLAS are picked for which processor, and that nobody's own choice is overruled."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minidp import blas

ROOT = Path(__file__).resolve().parents[1]
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
    assert blas.kernels_for(text) == expected


def coretype_after(script, **environment):
    """OPENBLAS_CORETYPE after a script in a fresh process, and what OpenBLAS then runs."""
    inherited = {name: value for name, value in os.environ.items()
                 if name not in ("OPENBLAS_CORETYPE", "MINIDP_KERNELS")}
    script += ("; import os; from minidp import blas; import numpy; "
               "print(os.environ.get('OPENBLAS_CORETYPE'), blas.kernels(), sep=',')")
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env={**inherited, **environment}, text=True,
                          capture_output=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.strip().split(",")


def test_importing_minidp_first_chooses_for_this_processor():
    path = Path("/proc/cpuinfo")
    expected = str(blas.kernels_for(path.read_text(encoding="utf-8"))) if path.exists() else "None"
    chosen, running = coretype_after("import minidp")
    assert chosen == expected
    if expected != "None" and running != "None":
        assert running.upper() == expected


@pytest.mark.parametrize("script, environment, expected", [
    ("import numpy, minidp", {}, "None"),  # too late
    ("import minidp", {"MINIDP_KERNELS": "default"}, "None"),
    ("import minidp", {"OPENBLAS_CORETYPE": "PRESCOTT"}, "PRESCOTT"),
])
def test_a_choice_made_elsewhere_stands(script, environment, expected):
    assert coretype_after(script, **environment)[0] == expected


def test_without_an_openblas_nothing_is_claimed(monkeypatch):
    monkeypatch.setattr(blas, "_function", lambda name: None)
    assert blas.kernels() is None and blas.thread_functions.__wrapped__() is None
