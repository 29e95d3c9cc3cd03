"""The guard refuses what CuPy refuses; that it lets pass what a layer needs, every test with `backend` shows."""
import operator

import numpy as np
import pytest

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
    "set host value": lambda x: x.__setitem__(slice(None), HOST),
    "object dtype": lambda x: xp.asarray([None, "a"], dtype=object),
}


@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED.keys())
def test_refused(use, x):
    with pytest.raises(GuardError):
        use(x)


def test_allow_sync_permits_scalars_for_a_block_only(x):
    with allow_sync():
        assert float(x[1, 2]) == 5.0 and bool((x >= 0).all()) and x[0].tolist() == [0.0, 1.0, 2.0]
        with pytest.raises(GuardError):
            np.asarray(x)
    with pytest.raises(GuardError):
        float(x[1, 2])
