"""Attacks on the low-order bits of released noise (Mironov 2012): one release tells which of two
neighbours it came from.

Each test states the guarantee, that an event has nearly the same probability under both, and
measures how often it occurs. All of them succeeded against float32 noise; float64 noise, rounded
with the sum to a public grid, gives nothing.
"""

import math

import numpy as np
import pytest

from minidp.mechanism import Sanitizer, flat_group
from minidp.streams import Streams

KEY = ("layer", "W")


def release(raw, sigma):
    """One release of a raw sum at clip norm 1, with noise of the operating system's entropy."""
    sanitizer = Sanitizer(flat_group([KEY], 1.0, sigma))
    return sanitizer.release({KEY: raw.copy()}, Streams().noise(0))[KEY]


def assert_one_law(first, second, cells, errors):
    """A two-sample test of counts in `cells` cells, in standard errors."""
    counts = [np.bincount(found.ravel(), minlength=cells) for found in (first, second)]
    chi = ((counts[0] - counts[1]) ** 2 / (counts[0] + counts[1])).sum()
    assert abs(chi - (cells - 1)) < errors * math.sqrt(2 * (cells - 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.001, 1e-7, 1 / 3])
def test_the_last_bits_of_every_value_have_one_law(value, dtype):
    """Of the last six bits of the grid's cells, and of the exponents of what is left in float64."""
    fine, cells = 2.0**18, []
    for moved in (0, value):
        released = release(np.full(40_000, moved, dtype), 4.0).astype("float64") * fine
        assert (released == np.round(released)).all()  # on the grid, under both neighbours
        cells.append(released)
    for step in (1, 2**6, 2**12, fine / 2**9, fine / 2**6):
        # a false alarm once in 10 million
        assert_one_law(*((found // step % 64).astype(int) for found in cells), 64, 6)


@pytest.mark.parametrize("distance", [1, 64, 256, 512])
def test_pairs_of_last_bits_have_one_law(distance):
    """Of the joint last bits of two coordinates; 256 apart are the sine and cosine of one pair."""
    fine, pairs = 2.0**20, []
    for value in (0.0, 0.003):
        cells = (release(np.full(65_536, value), 1.0) * fine).astype(int) % 16
        cells = cells.reshape((-1, 1024))
        pairs.append(cells[:, : 1024 - distance] * 16 + cells[:, distance:])
    assert_one_law(*pairs, 256, 8)  # a cell counts in two pairs
