"""Checks of exp, log and tanh, and of first weights and masks, number by number."""

from functools import partial

import numpy as np

from ... import nn
from ...backend import to_host
from ...exact import elementwise
from ...host.series import MAGIC, exp_parts, log_of
from ..equation import Case
from . import measures, states


def _apart(bench, name):
    """Of numbers of all sizes; of log, of their exponentials."""
    x = bench.rng.standard_normal(8000) * np.exp2(bench.rng.uniform(-60, 9, 8000))
    x = np.append(np.clip(x, -708, 709.7), np.arange(-40, 40) * np.log(2) / 2)
    if name == "log":
        x = np.append(np.exp(x), [5e-324, 1.7e308])
    exact = getattr(np, name)(x.astype(np.longdouble))
    got = to_host(getattr(elementwise, name)(bench.asarray(x)))
    yield np.max(np.abs(got[exact == 0]), initial=0)
    yield np.max(np.abs(got / exact - 1)[exact != 0])


for _name, _labels, _tolerance in (
    ("exp", "F1 M1", 5e-16),
    ("log", "F1 M2", 1e-15),
    ("tanh", "F1", 1e-15),
):
    _register = measures(f"exact.elementwise.{_name}", _labels, "80 bits", _tolerance, _name)
    _register(partial(_apart, name=_name))


def _at(bench, name, x):
    return to_host(getattr(elementwise, name)(bench.asarray(np.array([x]))))[0]


@states("exact.elementwise.exp", "F1 M1")
def exp_by_its_parts(bench):
    for x in (-800.0, -708.5, *bench.rng.uniform(-9, 9, 20)):
        t, p = exp_parts(np.float64(x))
        yield Case({"x": x, "y": _at(bench, "exp", x), "k": t - MAGIC, "p": p})


@states("exact.elementwise.log", "F1 M2")
def log_by_its_parts(bench):
    for x in np.exp(bench.rng.uniform(-9, 9, 20)):
        given = {"x": x, "y": _at(bench, "log", x), "log": lambda m: log_of(m, 0.0)}
        yield Case(given)


@states("exact.elementwise.tanh", "F1")
def tanh_by_its_parts(bench):
    for x in bench.rng.choice([-1, 1], 20) * bench.rng.uniform(0.2, 3, 20):
        t, p = exp_parts(-2 * abs(x))
        yield Case({"x": x, "y": _at(bench, "tanh", x), "w": 2 ** (t - MAGIC), "p": p})


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
