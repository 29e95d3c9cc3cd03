"""The host: parts of a step side by side, BLAS's threads, the cache's size, and kernels that only
tune() picks.
"""

import json
import os
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from minidp.errors import ParameterError
from minidp.fast.process import kernels_for
from minidp.host import memory, threads
from tests.support import training
from tests.support.scripts import ROOT, python


@pytest.fixture
def three(monkeypatch):
    training.side_by_side(3, monkeypatch)


side_by_side = pytest.mark.usefixtures("three")


@side_by_side
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_results_keep_the_order_of_the_items(count):
    assert threads.map_parallel(
        lambda i: time.sleep(0.01 * (count - i)) or i * i, range(count)
    ) == [i * i for i in range(count)]


@side_by_side
@pytest.mark.parametrize("bad", [0, 1, 3])
def test_an_exception_comes_out_after_all_are_done(bad):
    def fail(i):
        if i == bad:
            raise KeyError(i)

    with pytest.raises(KeyError, match=str(bad)):
        threads.map_parallel(fail, range(4))
    assert threads.map_parallel(lambda i: i, range(4)) == [0, 1, 2, 3]  # and nothing is stuck


@side_by_side
def test_a_call_inside_another_runs_in_order():
    def inner(_):
        return threads.map_parallel(lambda i: threading.get_ident(), range(3))

    assert all(len({*found}) == 1 for found in threads.map_parallel(inner, range(2)))


def test_blas_has_one_thread_meanwhile_and_its_own_number_after():
    if threads.thread_functions() is None:
        assert threads.limit() == 1
        return
    get, set_ = threads.thread_functions()
    before = get()
    with threads.single_blas():
        assert get() == 1
        x = np.ones((300, 300), dtype="float32")
        assert (x @ x == 300).all()
    assert get() == before


@pytest.mark.parametrize(
    "given, wanted, expected",
    [(4, "", 4), (5, "", 1), (16, "3", 3), (None, "4", 1)],
)
def test_the_limit_follows_blas_or_the_environment(given, wanted, expected, monkeypatch):
    monkeypatch.setattr(
        threads, "thread_functions", lambda: None if given is None else (lambda: given, None)
    )
    monkeypatch.setenv("MINIDP_THREADS", wanted)
    assert threads.limit.__wrapped__() == expected
    for wrong in ("0", "two", "²"):
        monkeypatch.setenv("MINIDP_THREADS", wrong)
        with pytest.raises(ParameterError, match="MINIDP_THREADS"):
            threads.limit.__wrapped__()


@side_by_side
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_threads_of_its_own():
    assert threads.map_parallel(lambda i: i, range(3)) == [0, 1, 2]
    with warnings.catch_warnings():
        # Python 3.12 warns of any fork beside threads
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os._exit(0 if threads.map_parallel(lambda i: i, range(3)) == [0, 1, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    "answers, bytes_", [([2**24], 2**24), ([2**20], 2**23), ([-1], 2**25), ([], 2**25)]
)
def test_the_size_of_the_cache_is_what_the_system_tells_within_reason(answers, bytes_, monkeypatch):
    monkeypatch.setattr(
        memory.os, "sysconf", lambda name: answers.pop() if answers else int("unknown name")
    )
    assert memory._last_cache() == bytes_


AVX512 = "sse2 avx2 avx512f avx512dq avx512cd avx512bw avx512vl"


def cpuinfo(vendor, family, flags):
    one = f"vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: 17\nflags\t\t: {flags}\n"
    return f"processor\t: 0\n{one}\nprocessor\t: 1\n{one}"


@pytest.mark.parametrize(
    "text, expected",
    [
        (cpuinfo("AuthenticAMD", 25, AVX512), "SKYLAKEX"),  # Zen 4
        (cpuinfo("AuthenticAMD", 25, "sse2 avx2"), None),  # Zen 3
        (cpuinfo("SomebodyElse", 6, AVX512), None),
        ("processor\t: 0\nBogoMIPS\t: 50\nFeatures\t: fp asimd\n", None),
    ],
)
def test_kernels_follow_the_processor(text, expected):
    assert kernels_for(text) == expected


def after(script, **environment):
    """(OPENBLAS_CORETYPE, host.describe()) after a script in a fresh process."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("OPENBLAS_CORETYPE", "MINIDP_KERNELS", "MINIDP_MALLOC")
    }
    script += (
        "; import os, json; from minidp import host; "
        "print(json.dumps([os.environ.get('OPENBLAS_CORETYPE'), host.describe()]))"
    )
    done = python("-c", script, cwd=ROOT, env={**inherited, **environment}, timeout=60, check=True)
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
    # the latter with another C library
    assert described["allocator"] in (
        "glibc, freed pages kept",
        "default",
    )


@pytest.mark.parametrize(
    "first, environment, expected",
    [
        ("import numpy", {}, None),  # too late
        ("pass", {"MINIDP_KERNELS": "default"}, None),
        ("pass", {"OPENBLAS_CORETYPE": "PRESCOTT"}, "PRESCOTT"),
    ],
)
def test_a_choice_made_elsewhere_stands(first, environment, expected):
    chosen, described = after(
        f"{first}; from minidp import host; host.tune()", MINIDP_MALLOC="default", **environment
    )
    assert chosen == expected and described["allocator"] == "default"
