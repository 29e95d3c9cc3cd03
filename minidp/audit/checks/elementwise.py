"""Checks of exp, log and tanh, and of the compiled twins of what is computed coordinate by coordinate."""
from unittest import mock

import numpy as np

from ... import elementwise, nn
from ...backend import to_host
from ...host import elementwise as twins
from ...nn import activation, loss
from . import measures

SPECIAL = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 709.7, 710, -708, -745, -746, 1e-45, 3e-39, 1e-300, 5e-324, 88.7, -103.9])


def drawn(rng, size):
    """(size,) float32: of the usual size and of any, and SPECIAL."""
    x = np.concatenate([rng.standard_normal(size), rng.standard_normal(size) * np.exp2(rng.uniform(-40, 8, size)), SPECIAL])
    return rng.choice(x.astype(np.float32), size)


def differing(got, expected):
    """How many bits' patterns differ; one NaN is as good as another."""
    same = got.view(np.int32) == expected.view(np.int32)
    return np.inf if got.shape != expected.shape else (~same & ~(np.isnan(got) & np.isnan(expected))).sum()


def _relative(bench, function, x):
    got, exact = to_host(getattr(elementwise, function)(bench.asarray(x))), getattr(np, function)(x.astype(np.longdouble))
    return np.nan if np.isnan(got).any() else np.abs(got - exact).max(where=exact == 0, initial=0) + np.abs(
        got / np.where(exact == 0, 1, exact) - 1).max(where=exact != 0, initial=0)


@measures("elementwise.exp", "F1", "M1", method="80 bits", tolerance=5e-16)
def exp_equals_the_library(bench):
    x = np.concatenate([bench.rng.uniform(-708, 709.7, 4000), bench.rng.standard_normal(4000), np.arange(-40, 40) * np.log(2) / 2])
    return _relative(bench, "exp", x) + abs(to_host(elementwise.exp(bench.asarray(np.array([-1e9, -709.0])))).max())


@measures("elementwise.log", "F1", "M2", method="80 bits", tolerance=1e-15)
def log_equals_the_library(bench):
    near = 1 + bench.rng.standard_normal(2000) * np.exp2(bench.rng.uniform(-52, -3, 2000))
    return _relative(bench, "log", np.concatenate([np.exp(bench.rng.uniform(-744, 709, 4000)), near, [5e-324, 1.7e308, 1]]))


@measures("elementwise.tanh", "F1", method="80 bits", tolerance=1e-15)
def tanh_equals_the_library(bench):
    sizes = np.exp2(bench.rng.uniform(-60, 3, 4000))
    return _relative(bench, "tanh", np.concatenate([sizes, -sizes, bench.rng.uniform(-30, 30, 4000), [0, 1e9, -1e9]]))


def _compiled_function(name):
    def bits(bench):
        """The definition computes in float64 and rounds once: it is asked in float64, and rounded here."""
        x = drawn(bench.rng, 1500)
        y = np.empty_like(x)
        getattr(twins, name)(x, y)
        return differing(y, getattr(elementwise, name)(x.astype(np.float64)).astype(np.float32))

    measures(f"host.elementwise.{name}", "F1", method="the definition, bit for bit", tolerance=0.0, name=f"compiled {name}")(bits)


for _name in ("exp", "log", "tanh"):
    _compiled_function(_name)


def both(module, function):
    with mock.patch.object(module, "compiled", lambda *arrays: False):
        defined = function()
    return function(), defined


@measures("host.elementwise.relu", "F1", method="nn.ReLU [F1], bit for bit", tolerance=0.0)
def compiled_relu(bench):
    x = drawn(bench.rng, 999).reshape((37, 27)).T
    return differing(*both(activation, lambda: nn.ReLU().forward(x)[0]))


@measures("host.elementwise.relu_gradient", "B1", method="nn.ReLU [B1], bit for bit", tolerance=0.0)
def compiled_relu_gradient(bench):
    (y, cache), dy = nn.ReLU().forward(drawn(bench.rng, 999)), drawn(bench.rng, 999)
    return differing(*both(activation, lambda: nn.ReLU().backward(dy, cache)))


@measures("host.elementwise.softmax_cross_entropy", "F1", "B1", method="nn.SoftmaxCrossEntropy, bit for bit", tolerance=0.0)
def compiled_softmax_cross_entropy(bench):
    wrong = 0
    for examples, classes in ((0, 3), (40, 1), (60, 10), (9, 33)):
        z = np.concatenate([bench.rng.standard_normal((examples, classes)) * 5, drawn(bench.rng, examples * classes).reshape(
            (examples, classes))]).astype(np.float32)
        target = bench.rng.integers(-1, classes + 1, 2 * examples)
        twin, defined = both(loss, lambda: nn.SoftmaxCrossEntropy()(z, target))
        wrong += differing(twin[0], defined[0]) + differing(twin[1], defined[1])
    return wrong
