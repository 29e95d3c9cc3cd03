"""Checks of first weights and of masks, number by number."""

import numpy as np

from ... import nn
from ...backend import to_host
from ..equation import Case
from . import states


@states("nn.init.truncated_normal", "F1", 1e-15)
def initial_weights(bench):
    shape, rng = (3, 3, 5, 40), np.random.default_rng(7)
    z = list(rng.standard_normal(1800))
    while far := [place for place, value in enumerate(z) if abs(value) > 2]:
        for place in far:
            z[place] = rng.standard_normal()
    W = nn.init.truncated_normal(np.random.default_rng(7), shape, "float64")
    yield Case({"W": W, "z": np.reshape(z, shape), "I": 45})


@states("nn.dropout.Dropout", "F1 B1", 1e-12)
def a_drawn_mask(bench):
    """And none, as with a rate of 0."""
    layer, (x, dy) = nn.Dropout(0.3), bench.rng.uniform(1, 2, (2, 20, 10))
    u = np.random.default_rng(7).random((20, 10))
    for rng, rate in ((np.random.default_rng(7), 0.3), (None, 0.0)):
        y, cache = layer.forward(bench.asarray(x), rng=rng)
        dx = layer.backward(bench.asarray(dy), cache)
        yield Case({"x": x, "y": to_host(y), "u": u, "rate": rate, "dy": dy, "dx": to_host(dx)})
