"""The guard refuses what CuPy refuses, and lets pass what a layer needs."""
import operator

import numpy as np
import pytest

from minidp.backend import namespace_of, to_host
from minidp.errors import BackendMismatchError
from tests.support.guarded import GuardedArray, GuardError, allow_sync, guarded_backend, guarded_xp

xp = guarded_xp


@pytest.fixture
def x():
    return xp.asarray(np.arange(6.0).reshape(2, 3))


HOST = np.ones((2, 3))


def test_namespace_and_backend(x):
    assert namespace_of(x, x + 1) is guarded_xp
    moved = guarded_backend().asarray(HOST, dtype=np.float32)
    assert isinstance(moved, xp.ndarray) and moved.dtype == np.float32
    with pytest.raises(BackendMismatchError):
        namespace_of(x, HOST)


def test_to_host_gives_a_plain_copy(x):
    host = to_host(x)
    assert type(host) is np.ndarray
    host[:] = 7
    assert np.array_equal(to_host(x), np.arange(6.0).reshape(2, 3))


def test_moving_to_the_device_copies():
    host = np.zeros(3)
    x = xp.asarray(host)
    x += 1
    assert np.array_equal(host, np.zeros(3))


def test_asarray_keeps_an_array_that_is_there_already_and_array_copies_it(x):
    assert xp.asarray(x) is x
    y = xp.array(x)
    y += 1
    assert not np.shares_memory(y._host, x._host)
    assert xp.asarray(x, dtype=np.float32).dtype == np.float32


REFUSED = {
    "np.asarray": np.asarray,
    "np.array": np.array,
    "np.concatenate": lambda x: np.concatenate([x, x]),
    "np.einsum": lambda x: np.einsum("ij->j", x),
    "np.sum": np.sum,
    "np.add.reduce": np.add.reduce,
    "scipy-like ufunc": lambda x: np.frompyfunc(abs, 1, 1)(x),
    "memoryview": memoryview,
    "float": lambda x: float(x[0, 0]),
    "int": lambda x: int(x[0, 0]),
    "bool": lambda x: bool(x[0, 0]),
    "if": lambda x: "yes" if (x > 0).any() else "no",
    "index": lambda x: operator.index(x[0, 0]),
    "item": lambda x: x[0, 0].item(),
    "tolist": lambda x: x.tolist(),
    "iteration": list,
    "+ host": lambda x: x + HOST,
    "host +": lambda x: HOST + x,
    "@ host": lambda x: x @ HOST.T,
    "+= host": lambda x: operator.iadd(x, HOST),
    "host +=": lambda x: operator.iadd(HOST.copy(), x),
    "+ list": lambda x: x + [1.0, 2.0, 3.0],
    "xp.maximum with list": lambda x: xp.maximum(x, [0.0, 1.0, 2.0]),
    "xp.einsum with host": lambda x: xp.einsum("ij,ij->", x, HOST),
    "xp.concatenate with host": lambda x: xp.concatenate([x, HOST]),
    "xp.where with host": lambda x: xp.where(x > 0, x, HOST),
    "xp.sum of host": lambda x: xp.sum(HOST),
    "xp.exp of host": lambda x: xp.exp(HOST),
    "out= host": lambda x: xp.exp(x, out=np.empty((2, 3))),
    "sum out= host": lambda x: x.sum(axis=0, out=np.empty(3)),
    "einsum out=": lambda x: xp.einsum("ij->j", x, out=xp.empty(3)),
    "ufunc where=": lambda x: xp.divide(x, x, where=x > 0),
    "max initial=": lambda x: xp.max(x, axis=1, initial=0.0),
    "sum where=": lambda x: x.sum(where=x > 0),
    "index host integers": lambda x: x[np.array([0, 1])],
    "index host mask": lambda x: x[HOST > 0],
    "take host": lambda x: x.take(np.array([0, 1]), axis=0),
    "set host index": lambda x: x.__setitem__(np.array([0]), 1.0),
    "set host value": lambda x: x.__setitem__(slice(None), HOST),
    "set list value": lambda x: x.__setitem__(0, [1.0, 2.0, 3.0]),
    "host set": lambda x: HOST.copy().__setitem__(slice(None), x),
    "host indexed by it": lambda x: np.arange(9)[xp.asarray([0, 1])],
    "object dtype": lambda x: xp.asarray([None, "a"], dtype=object),
    "foreign byte order": lambda x: xp.asarray(np.zeros(3, dtype=">i4")),
    "list of arrays": lambda x: xp.asarray([x, x]),
}


@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED.keys())
def test_refused(use, x):
    with pytest.raises((GuardError, TypeError, IndexError)) as caught:
        use(x)
    if not isinstance(caught.value, GuardError):
        # NumPy's or Python's own refusal, before the guard is asked; CuPy arrays get the same
        assert "GuardedArray" in str(caught.value) or "indices" in str(caught.value)


@pytest.mark.parametrize("name", ["errstate", "memmap", "apply_along_axis", "lexsort_of_cupy", "save"])
def test_names_cupy_does_not_share_are_missing(name):
    with pytest.raises(AttributeError, match="guarded_xp"):
        getattr(xp, name)


def test_allow_sync_permits_scalars_for_a_block_only(x):
    with allow_sync():
        assert float(x[1, 2]) == 5.0 and int(x[1, 2]) == 5 and x[1, 2].item() == 5.0
        assert bool((x >= 0).all()) and x[0].tolist() == [0.0, 1.0, 2.0]
        with pytest.raises(GuardError):
            np.asarray(x)
    with pytest.raises(GuardError):
        float(x[1, 2])


PASSES = {
    "arithmetic": lambda np, x: (2.0 * x - 1) / (x + np.float32(3)) ** 2,
    "matmul": lambda np, x: x @ x.T,
    "einsum": lambda np, x: np.einsum("bi,bo->bio", x, x),
    "broadcasting": lambda np, x: x - x.max(axis=1, keepdims=True) + x[0] * x[:, None, 0],
    "softmax": lambda np, x: np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True),
    "where": lambda np, x: np.where(x > 1, x, 0.0),
    "reductions": lambda np, x: np.stack([x.sum(0), x.mean(0), np.max(x, axis=0), np.prod(x, axis=0)]),
    "linalg": lambda np, x: np.linalg.norm(x, axis=1),
    "reshape": lambda np, x: x.reshape(3, 2).T.ravel(),
    "concatenate": lambda np, x: np.concatenate([x, x[:1]], axis=0),
    "index arrays of its own": lambda np, x: x[np.arange(2), np.asarray([2, 0])],
    "mask of its own": lambda np, x: x[x > 2],
    "take": lambda np, x: np.take(x, np.asarray([1, 0]), axis=0),
    "astype": lambda np, x: x.astype(np.float32),
    "empty lot": lambda np, x: np.einsum("bi,bo->io", x[:0], x[:0]),
    "pad": lambda np, x: np.pad(x, ((1, 1), (0, 0))),
    "windows": lambda np, x: np.lib.stride_tricks.sliding_window_view(x, (2, 2)).sum(axis=(2, 3)),
    "allclose": lambda np, x: np.asarray(np.allclose(x, x)),
    "out": lambda np, x: np.exp(x, out=np.empty_like(x)),
}


@pytest.mark.parametrize("compute", PASSES.values(), ids=PASSES.keys())
def test_layer_mathematics_passes_and_equals_numpy(compute):
    host = np.arange(6.0).reshape(2, 3)
    result = compute(xp, xp.asarray(host))
    assert isinstance(result, GuardedArray)
    expected = compute(np, host)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(to_host(result), expected)


def test_in_place_operations_keep_the_object_and_write_through_views(x):
    same = x
    x *= 2
    x[0] += 1
    x[1, 2] = np.float32(50)
    x[:, 0] -= x[:, 1]
    part = x[0, 2]
    part += 100
    assert x is same
    np.testing.assert_array_equal(to_host(x), [[-2, 3, 105], [-2, 8, 50]])


def test_results_are_arrays_where_numpy_gives_scalars(x):
    for result in (x.sum(), xp.max(x), x[0, 0], xp.einsum("ij->", x), x[0] @ x[0], xp.exp(1.0)):
        assert isinstance(result, GuardedArray) and result.shape == ()


def test_generator_draws_arrays_of_its_own():
    draw = xp.random.default_rng(3).standard_normal((2, 3), dtype=np.float32)
    assert isinstance(draw, GuardedArray) and draw.dtype == np.float32
    with pytest.raises(AttributeError):
        xp.random.default_rng(3).normal(0.0, 1.0, (2, 3))
