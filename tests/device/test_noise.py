"""The noise kernel: run on the host it gives the host's bits."""

import numpy as np
import pytest

from minidp import device
from minidp.arrays import to_host
from minidp.compiled import ON_A_DEVICE, only
from minidp.host.chacha import STRETCH
from minidp.mechanism.noise import add_gaussian
from minidp.streams import Streams
from tests.conftest import BACKENDS
from tests.support import shim

NO_COMPILER = "no C++ compiler: the CUDA source was not executed"
CASES = [  # number of the first one drawn, how many, std, grid
    (0, 1, 3.0, 0.0),
    (0, 513, 0.7, 2.0**-21),
    (700, 3000, 3.0, 2.0**-19),
    (511, 2, 1e-3, 2.0**-30),
    (2**32 * 8 - 512, 2000, 3.0, 2.0**-19),  # where the low word of the blocks' numbers carries
    (40, 0, 1.0, 0.0),
]


def same_bits(place):
    """The kernel beside Draws.add_normals, case by case; what lies behind `out` stays."""
    draws = Streams(5).noise(2**40)
    for begin, size, std, grid in CASES:
        first, at = divmod(begin, STRETCH)
        here, there = np.full(size, 100.0), place.asarray(np.full(size + 8, 100.0))
        draws.add_normals(here, std, grid, place=(first, at))
        device.add_normals(draws.state(), begin, std, grid, there[:size])
        yield to_host(there).tobytes() == here.tobytes() + np.full(8, 100.0).tobytes()


@pytest.mark.parametrize("place", [name for name in BACKENDS if name != "numpy"])
def test_the_kernel_gives_the_hosts_bits(place):
    if place == "guarded" and not shim.COMPILER:
        pytest.skip(NO_COMPILER)
    assert all(same_bits(BACKENDS[place]()))


@pytest.mark.parametrize("place", [name for name in BACKENDS if name != "numpy"])
@pytest.mark.parametrize("names", [ON_A_DEVICE, ()], ids=["kernel", "host"])
def test_a_release_on_a_device_has_the_hosts_bits(place, names, rng):
    """Of sums in any order and dtype, one after another from the same draws."""
    backend, raw = BACKENDS[place](), rng.standard_normal((40, 30)).astype("float32")
    found = []
    for move in (np.asarray, backend.asarray):
        draws = Streams(5).noise(0)
        with only(backend.xp, names):
            released = [
                add_gaussian(move(raw).T, 3.0, draws, [move(raw).T], 0.25, "float32"),
                add_gaussian(move(raw), 0.0, draws),
                add_gaussian(move(raw[:0]), 3.0, draws),
                add_gaussian(move(raw.astype("float64")), 0.7, draws),
            ]
        assert all(type(each) is type(move(raw)) for each in released)
        found.append([to_host(each) for each in released])
    for host, there in zip(*found, strict=True):
        assert host.dtype == there.dtype
        np.testing.assert_array_equal(there, host)
