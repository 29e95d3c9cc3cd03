"""The guard refuses what CuPy refuses; other tests show that both let pass."""

import json
import operator
from operator import attrgetter

import numpy as np
import pytest

from tests.support import cupy_names, guarded, shim
from tests.support.guarded import GuardError, allow_sync, guarded_xp

xp = guarded_xp
HOST = np.ones((2, 3))


@pytest.fixture
def x():
    return xp.asarray(np.arange(6.0).reshape(2, 3))


REFUSED = {
    "conversion": np.asarray,
    "numpy function": lambda x: np.concatenate([x, x]),
    "float": lambda x: float(x[0, 0]),
    "+ host": lambda x: x + HOST,
    "+= host": lambda x: operator.iadd(x, HOST),
    "host in a list": lambda x: xp.concatenate([x, HOST]),
    "ufunc out= host": lambda x: xp.exp(x, out=np.empty((2, 3))),
    "function's unknown keyword": lambda x: xp.max(x, axis=1, initial=0.0),
    "index host integers": lambda x: x[np.array([0, 1])],
    "index mask": lambda x: x[x > 0],
    "set host value": lambda x: x.__setitem__(slice(None), HOST),
    "object dtype": lambda x: xp.asarray([None, "a"], dtype=object),
}


@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED.keys())
def test_refused(use, x):
    with pytest.raises(GuardError):
        use(x)


def test_a_kernel_is_not_given_none_for_a_null_pointer():
    with pytest.raises(TypeError, match="pass 0"):
        shim._value(None)


def test_allow_sync_permits_scalars_for_a_block_only(x):
    with allow_sync():
        assert float(x[1, 2]) == 5.0 and bool((x >= 0).all()) and x[0].tolist() == [0.0, 1.0, 2.0]
        with pytest.raises(GuardError):
            np.asarray(x)
    with pytest.raises(GuardError):
        float(x[1, 2])


# of CuPy, used beside the functions of arrays whose signatures cupy.json has
USED = (
    "ndarray",
    "get_default_memory_pool",
    "cuda.MemoryPool.free_bytes",
    "cuda.Device.use",
    "cuda.get_current_stream",
    "cuda.Stream.synchronize",
    "cuda.runtime.getDevice",
    "cuda.runtime.getDeviceCount",
    "cuda.runtime.memGetInfo",
)


@pytest.mark.cupy
def test_the_guarded_arrays_have_cupys_signatures():
    """Every call of a guarded array is bound to cupy.json; python -m tests.support.cupy_names
    writes it anew.
    """
    cupy = pytest.importorskip(
        "cupy", reason="CUPY MISSING: pip install cupy-cuda12x, which needs no GPU to be imported"
    )
    signatures = json.loads(cupy_names.FILE.read_text())["signatures"]
    assert cupy_names.described(cupy, signatures) == signatures
    for name in guarded.SHARED:
        assert getattr(cupy, name) is getattr(np, name), name
    for name in dir(guarded.GuardedArray):
        assert name.startswith("_") or name == "xp" or hasattr(cupy.ndarray, name), name
    for name in USED:
        attrgetter(name)(cupy)
