"""Which library arrays belong to, which device can be had, and the operations the libraries spell differently."""
import builtins
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from minidp.host import memory
from minidp.backend import (Backend, batch_budget, contiguous, epsilon, explicit_budget, explicit_fits, namespace_of,
                            row_sq_norms, synchronise, to_host)
from minidp.errors import BackendMismatchError, DeviceUnavailableError, ParameterError
from tests.support.guarded import GuardedArray, guarded_backend, guarded_xp

ARRAY, GUARDED = np.ones(2), guarded_backend().asarray(np.ones(2))


def fake_cupy(devices=1, failure=None, free=4000):
    """A module that answers what Backend.cupy asks of CuPy."""

    def zeros(size):
        if failure:
            raise failure
        return np.zeros(size)

    cupy = ModuleType("cupy")
    cupy.used = []
    runtime = SimpleNamespace(getDeviceCount=lambda: devices, memGetInfo=lambda: (free, 10 * free))
    cupy.cuda = SimpleNamespace(
        runtime=runtime, Device=lambda number: SimpleNamespace(use=lambda: cupy.used.append(number)),
        get_current_stream=lambda: SimpleNamespace(synchronize=lambda: cupy.used.append("waited")))
    cupy.zeros, cupy.ndarray = zeros, GuardedArray
    return cupy


@pytest.fixture
def without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # importing it raises ImportError


def test_namespaces():
    assert namespace_of(ARRAY) is np and namespace_of(ARRAY, np.float32(1), ARRAY[0]) is np
    assert namespace_of(GUARDED) is guarded_xp and namespace_of(GUARDED, GUARDED[:1]) is guarded_xp


@pytest.mark.parametrize("arrays", [(ARRAY, GUARDED), (GUARDED, ARRAY), (GUARDED, GUARDED, ARRAY)])
def test_two_libraries_are_not_mixed(arrays):
    with pytest.raises(BackendMismatchError, match="expected arrays of one library.*move them with Backend.asarray"):
        namespace_of(*arrays)


@pytest.mark.parametrize("thing", [[1.0], 1.0, None, "text"])
def test_what_is_no_array_has_no_namespace(thing):
    with pytest.raises(BackendMismatchError, match=f"expected a numpy or cupy array, got {type(thing).__name__}"):
        namespace_of(ARRAY, thing)
    with pytest.raises(BackendMismatchError, match="expected arrays of one library"):
        namespace_of()


def test_arrays_of_cupy_are_known_once_it_is_imported(monkeypatch):
    class CupyArray:
        pass

    cupy = fake_cupy()
    cupy.ndarray = CupyArray
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert namespace_of(CupyArray()) is cupy


def test_the_host_can_always_be_picked(without_cupy):
    assert Backend.pick("cpu") == Backend.numpy() == Backend("cpu", np)
    assert Backend.pick("auto") == Backend.numpy()


def test_a_missing_cupy_is_named_with_what_to_do(without_cupy):
    for make in (Backend.cupy, lambda: Backend.pick("gpu")):
        with pytest.raises(DeviceUnavailableError, match=r"^device gpu: CuPy cannot be imported \(.*\); install the "
                                                         r"extra with pip install '.\[gpu\]', or use --device cpu$"):
            make()


def test_a_broken_cupy_is_named_in_one_line(monkeypatch):
    real = builtins.__import__

    def broken(name, *arguments):
        if name == "cupy":
            raise OSError("libcuda.so.1 is missing\nand a long story")
        return real(name, *arguments)

    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(DeviceUnavailableError) as caught:
        Backend.pick("gpu")
    assert "libcuda.so.1 is missing" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("cupy, message", [
    (fake_cupy(failure=RuntimeError("out of memory\nat line 3")), r"no usable GPU \(out of memory\); use --device cpu"),
    (fake_cupy(failure=RuntimeError()), r"no usable GPU \(RuntimeError\); use --device cpu"),
    (fake_cupy(devices=0), "CuPy finds no GPU; use --device cpu")])
def test_a_gpu_that_does_not_work_is_named(cupy, message, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(DeviceUnavailableError, match=f"^device gpu: {message}$"):
        Backend.cupy()
    assert Backend.pick("auto") == Backend.numpy()


def test_a_gpu_that_works_is_taken(monkeypatch):
    cupy = fake_cupy(devices=2)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert Backend.pick("auto") == Backend.pick("gpu") == Backend("gpu", cupy)
    assert Backend.pick("gpu:1") == Backend("gpu", cupy)
    assert cupy.used == [0, 0, 1]
    for number in (-1, 2):
        with pytest.raises(DeviceUnavailableError, match=f"expected a device number below 2, got {number}"):
            Backend.cupy(number)
    with pytest.raises(DeviceUnavailableError, match="number below 2, got 7; CUDA_VISIBLE_DEVICES decides"):
        Backend.pick("gpu:7")


@pytest.mark.parametrize("device", ["cuda", "GPU", "", None, 0, "gpu:", "gpu:x", "gpu:-1", "cpu:0", "auto:1"])
def test_other_devices_are_refused(device):
    with pytest.raises(ParameterError, match="to be auto, cpu, gpu or gpu:N"):
        Backend.pick(device)


@pytest.mark.parametrize("cupy, line", [
    (None, "took cpu: CuPy is not installed"), (fake_cupy(devices=0), "took cpu: CuPy finds no GPU"), (fake_cupy(), "took gpu"),
    (fake_cupy(failure=RuntimeError("CUDA driver version is insufficient\nmore")), "took cpu: CUDA driver version is insufficient")])
def test_auto_says_what_it_took_and_why(cupy, line, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    said = []
    Backend.pick("auto", said.append)
    assert said == [f"device auto: {line}"]
    Backend.pick("cpu", said.append)
    assert len(said) == 1


def test_arrays_move_between_backends_with_their_values(backend, rng):
    host = rng.standard_normal((3, 2))
    there = backend.asarray(host)
    np.testing.assert_array_equal(to_host(there), host)
    assert backend.asarray(host, "float32").dtype == np.float32
    assert namespace_of(there) is backend.xp
    np.testing.assert_array_equal(Backend.numpy().asarray(there), host)
    assert to_host(host) is host and Backend.numpy().asarray(host) is host


@pytest.mark.parametrize("dtype, unit", [("float32", 2.0**-23), ("float64", 2.0**-52)])
def test_rounding_unit(dtype, unit, backend):
    got = epsilon(backend.asarray(np.ones(1, dtype)))
    assert got == unit and type(got) is float


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4), (0, 3), (3, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_squared_norms_of_rows_equal_their_definition(shape, dtype, backend, rng):
    x = rng.standard_normal(shape).astype(dtype)
    got = to_host(row_sq_norms(backend.asarray(x)))
    assert got.dtype == x.dtype
    np.testing.assert_allclose(got, (x.astype("float64") ** 2).sum(axis=-1), rtol=1e-6 if dtype == "float32" else 1e-14)


def test_waiting_is_for_the_gpu():
    cupy = fake_cupy()
    for xp in (np, guarded_xp, cupy):
        synchronise(xp)
    assert cupy.used == ["waited"]


def test_auto_materialises_on_a_gpu_that_has_the_room():
    cupy = fake_cupy(free=4000)
    assert explicit_budget(cupy) == 1000 and explicit_budget(np) == memory.EXPLICIT_BYTES
    assert explicit_fits(cupy, 1000) and not explicit_fits(cupy, 1001)
    assert not explicit_fits(np, 1) and not explicit_fits(guarded_xp, 1)


def test_a_batch_is_bounded_by_the_cache_of_the_host_only():
    assert batch_budget(fake_cupy(free=4000)) == float("inf")
    assert batch_budget(np) == batch_budget(guarded_xp) == memory.BATCH_BYTES


def test_copying_runs_equals_a_plain_copy(backend, rng):
    """Every view that patches are: overlapping windows, runs of one number, nothing at all."""
    for dtype in ("float32", "float64", "complex128"):
        x = backend.asarray(rng.standard_normal((4, 5, 6)).astype(dtype))
        for view in (x, x[:, ::2], x[1:, :, 2:5], x[..., :1], x[:0], x.transpose(1, 0, 2)):
            got = contiguous(view)
            np.testing.assert_array_equal(to_host(got), np.ascontiguousarray(to_host(view)))
            assert got.dtype == view.dtype and got.shape == view.shape
    a = to_host(x)
    windows = np.lib.stride_tricks.as_strided(a, (4, 4, 12), (*a.strides[:2], a.itemsize))
    np.testing.assert_array_equal(contiguous(windows), windows.copy())
    assert contiguous(windows).flags.c_contiguous
