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

arithmetics = pytest.mark.parametrize("arithmetic", ["ordinary", "exact"])


def release(raw, sigma, arithmetic="ordinary"):
    """One release of a raw sum at clip norm 1, with noise of the operating system's entropy."""
    raw = np.trunc(raw.astype("float64") * 2.0**32) if arithmetic == "exact" else raw.copy()
    return Sanitizer(flat_group([KEY], 1.0, sigma), arithmetic=arithmetic).release(
        {KEY: raw}, Streams().noise(0)
    )[KEY]


@arithmetics
def test_low_order_bits_do_not_tell_a_raw_sum_of_zero(arithmetic):
    """The sum of 0.1 and float32 noise lies on a coarser grid than the noise alone, which is fine
    near zero.
    """

    def share(value, releases=300):
        raw, seen = np.full(100, np.float32(value)), 0
        for _ in range(releases):
            fine = release(raw, 1.0, arithmetic).astype("float64") / 2.0**-27
            seen += bool((fine != np.round(fine)).any())
        return seen / releases

    # total variation of unit noise moved by |raw| = 1: what the analysis allows
    most = math.erf(0.5 / math.sqrt(2))
    assert abs(share(0.0) - share(0.1)) < most + 0.12  # and four standard errors


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.001, 1e-7, 1 / 3])
@arithmetics
def test_the_last_bits_of_every_value_have_one_law(value, dtype, arithmetic):
    """Two-sample tests of the last six bits of the grid's cells, and of the exponents of what is
    left in float64.
    """
    size, bits, fine = 40_000, 64, 2.0 ** (32 if arithmetic == "exact" else 18)
    cells = [
        release(np.full(size, value if moved else 0, dtype), 4.0, arithmetic).astype("float64")
        * fine
        for moved in (0, 1)
    ]
    for found in cells:
        assert (found == np.round(found)).all()  # every value is on the grid, under both neighbours
    for step in (1, 2**6, 2**12, fine / 2**9, fine / 2**6):
        counts = [
            np.bincount((found // step % bits).astype(int), minlength=bits) for found in cells
        ]
        chi = ((counts[0] - counts[1]) ** 2 / (counts[0] + counts[1])).sum()
        # a false alarm once in 10 million
        assert abs(chi - (bits - 1)) < 6 * math.sqrt(2 * (bits - 1))


@pytest.mark.parametrize("distance", [1, 64, 256, 512])
@arithmetics
def test_pairs_of_last_bits_have_one_law(distance, arithmetic):
    """Two-sample test of the joint last bits of two coordinates; 256 apart are the sine and cosine
    of one pair.
    """
    size, bits = 65_536, 16
    counts = []
    for value in (0.0, 0.003):
        fine = 2.0 ** (32 if arithmetic == "exact" else 20)
        cells = (
            (release(np.full(size, value), 1.0, arithmetic) * fine).astype(int).reshape((-1, 1024))
        )
        pairs = cells[:, : 1024 - distance] % bits * bits + cells[:, distance:] % bits
        counts.append(np.bincount(pairs.ravel(), minlength=bits**2))
    chi = ((counts[0] - counts[1]) ** 2 / (counts[0] + counts[1])).sum()
    assert abs(chi - (bits**2 - 1)) < 8 * math.sqrt(2 * (bits**2 - 1))  # a cell counts in two pairs
