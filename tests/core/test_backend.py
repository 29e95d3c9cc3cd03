"""Which library arrays belong to, which device can be had, and the operations the libraries spell
differently.
"""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from minidp.backend import (
    Backend,
    batch_budget,
    explicit_budget,
    explicit_fits,
    measure_memory,
    namespace_of,
    to_host,
)
from minidp.errors import BackendMismatchError, DeviceUnavailableError, ParameterError
from minidp.host import memory
from tests.support.guarded import GuardedArray, guarded_backend

ARRAY, GUARDED = np.ones(2), guarded_backend().asarray(np.ones(2))


def fake_cupy(devices=1, failure=None, free=4000, driver=None):
    """A module that answers what Backend.cupy asks of CuPy."""

    def zeros(size):
        if failure:
            raise failure
        return np.zeros(size)

    def count():
        if driver:
            raise driver
        return devices

    cupy = ModuleType("cupy")
    cupy.used = []
    runtime = SimpleNamespace(
        getDeviceCount=count, memGetInfo=lambda: (free, 10 * free), getDevice=lambda: 0
    )
    cupy.cuda = SimpleNamespace(
        runtime=runtime,
        Device=lambda number: SimpleNamespace(use=lambda: cupy.used.append(number)),
        get_current_stream=lambda: SimpleNamespace(synchronize=lambda: cupy.used.append("waited")),
    )
    cupy.zeros, cupy.ndarray = zeros, GuardedArray
    cupy.get_default_memory_pool = lambda: SimpleNamespace(free_bytes=lambda: 80)
    return cupy


@pytest.mark.parametrize(
    "arrays, words",
    [
        ((ARRAY, GUARDED), "expected arrays of one library.*move them with Backend.asarray"),
        ((GUARDED, GUARDED, ARRAY), "expected arrays of one library.*move them with"),
        ((ARRAY, [1.0]), "expected a numpy or cupy array, got list"),
    ],
)
def test_two_libraries_are_not_mixed(arrays, words):
    with pytest.raises(BackendMismatchError, match=words):
        namespace_of(*arrays)


def test_a_broken_cupy_is_named_in_one_line(tmp_path, monkeypatch):
    (tmp_path / "cupy.py").write_text("raise OSError('libcuda.so.1 is missing\\nand a long story')")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(DeviceUnavailableError, match="libcuda.so.1 is missing[^\n]*$"):
        Backend.pick("gpu")


@pytest.mark.parametrize(
    "cupy, why, cure",
    [
        (None, "CuPy is not installed", r"install the extra with pip install '.[gpu]', or "),
        (
            fake_cupy(driver=RuntimeError("cudaErrorInsufficientDriver: too old\nat line 3")),
            "CuPy is installed but found no NVIDIA driver, or one that is too old",
            "",
        ),
        (
            fake_cupy(failure=RuntimeError("out of memory\nat line 3")),
            "the GPU cannot be used (out of memory)",
            "",
        ),
        (fake_cupy(failure=RuntimeError()), "the GPU cannot be used (RuntimeError)", ""),
        (
            fake_cupy(driver=RuntimeError("cudaErrorNoDevice: none")),
            "CuPy is installed but found no GPU (cudaErrorNoDevice: none)",
            "",
        ),
        (fake_cupy(devices=0), "CuPy is installed but found no GPU", ""),
    ],
)
def test_a_gpu_that_does_not_work_is_named_and_auto_takes_the_cpu(cupy, why, cure, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(DeviceUnavailableError) as refused:
        Backend.pick("gpu")
    assert str(refused.value) == f"device gpu: {why}; {cure}use --device cpu"
    said = []
    assert (
        Backend.pick("auto", said.append) == Backend.pick("cpu", said.append) == Backend("cpu", np)
    )
    assert said == [f"device auto: took cpu: {why}"]


def test_a_gpu_that_works_is_taken(monkeypatch):
    cupy, said = fake_cupy(devices=2), []
    cupy.ndarray = type("CupyArray", (), {})
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert namespace_of(cupy.ndarray()) is cupy
    assert Backend.pick("auto", said.append) == Backend.pick("gpu") == Backend("gpu", cupy)
    assert said == ["device auto: took gpu"]
    assert Backend.pick("gpu:1") == Backend("gpu", cupy)
    assert cupy.used == [0, 0, 1]
    with pytest.raises(DeviceUnavailableError, match="expected a device number below 2, got -1"):
        Backend.cupy(-1)
    with pytest.raises(
        DeviceUnavailableError, match="number below 2, got 7; CUDA_VISIBLE_DEVICES decides"
    ):
        Backend.pick("gpu:7")


@pytest.mark.parametrize("device", ["GPU", "", None, "gpu:", "gpu:-1", "cpu:0"])
def test_other_devices_are_refused(device):
    with pytest.raises(ParameterError, match="to be auto, cpu, gpu or gpu:N"):
        Backend.pick(device)


def test_arrays_move_between_backends_with_their_values(backend, rng):
    host = rng.standard_normal((3, 2))
    there = backend.asarray(host)
    np.testing.assert_array_equal(to_host(there), host)
    assert backend.asarray(host, "float32").dtype == np.float32
    assert namespace_of(there) is backend.xp
    np.testing.assert_array_equal(Backend.numpy().asarray(there), host)
    assert to_host(host) is host and Backend.numpy().asarray(host) is host


def test_auto_materialises_on_a_gpu_that_has_the_room():
    cupy = fake_cupy(free=3920)
    # 80 bytes are in the pool
    assert explicit_budget(cupy) == 500 and explicit_budget(np) == memory.EXPLICIT_BYTES
    assert batch_budget(cupy) == float("inf") and batch_budget(np) == memory.BATCH_BYTES
    assert explicit_fits(cupy, 500) and not explicit_fits(cupy, 501)
    cupy.cuda.runtime.memGetInfo = lambda: (7920, 10**5)
    # a device is asked once, and again by the next run
    assert explicit_fits(cupy, 500) and not explicit_fits(cupy, 501)
    measure_memory(cupy)
    assert explicit_fits(cupy, 1000) and not explicit_fits(np, 1)
