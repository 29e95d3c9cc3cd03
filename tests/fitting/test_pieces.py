"""Pieces: the compiled twin gives the bits of the definition."""

import numpy as np
import pytest

from minidp import compiled
from minidp.fitting.pieces import Pieces


@pytest.mark.parametrize("knots", [2, 5, 17])
def test_the_twin_gives_the_bits_of_the_definition(knots):
    rng = np.random.default_rng(knots)
    at = np.sort(rng.normal(size=(3, knots)), axis=1).astype(np.float32)
    x = (2 * rng.normal(size=(400, 4))).astype(np.float32)
    x[:knots, [0, 1, 3]] = at.T  # numbers right at the knots
    x[knots] = np.inf, -np.inf, np.nan, 0
    layer = Pieces([0, 1, 3], at, weight=0.6)
    found, _ = layer.compute_y(x, None)
    assert compiled.kernel("pieces", x) is not None
    with compiled.only(np, {}):
        wanted, _ = layer.compute_y(x, None)
    np.testing.assert_array_equal(found, wanted)
