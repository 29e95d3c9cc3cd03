"""Checks of exp, log and tanh, and of the compiled twins of what is computed coordinate by
coordinate.
"""

import numpy as np

from ... import nn
from ...backend import to_host
from ...exact import elementwise
from ...exact.arithmetic import in_pairs
from ...host import elementwise as twins
from ...host.series import MAGIC, exp_parts, log_of
from ..equation import Case
from . import measures, states

SPECIAL = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 709.7, 710, -708, -745, 1e-45, 3e-39, 88.7, -103.9]
)


def drawn(rng, *shape):
    """float32: of the usual size, of any size, and SPECIAL."""
    usual, others = rng.standard_normal((2, 999))
    x = np.concatenate([usual, others * np.exp2(rng.uniform(-40, 8, 999)), SPECIAL])
    return rng.choice(x.astype(np.float32), shape)


def _unequal(a, b):
    """How many numbers differ, in any bit; NaN is NaN."""
    bits = f"i{a.itemsize}"
    return ((a.view(bits) != b.view(bits)) & ~(np.isnan(a) & np.isnan(b))).sum()


def _register(name, labels, tolerance, draw):
    def error(bench):
        x = draw(bench.rng)
        exact, got = (
            getattr(np, name)(x.astype(np.longdouble)),
            to_host(getattr(elementwise, name)(bench.asarray(x))),
        )
        zero = exact == 0
        return np.max(np.where(zero, np.abs(got), np.abs(got / np.where(zero, 1, exact) - 1)))

    def twin(bench):
        """In float64 too, whose last bits tell what rounding to float32 hides."""
        x, function = drawn(bench.rng, 1500), getattr(elementwise, name)
        wide = x * np.float64(1.1)
        y = np.empty_like(wide)
        getattr(twins, name)(wide, y)
        return _unequal(function(x), function(x.astype(float)).astype("float32")) + _unequal(
            y, function(wide)
        )

    card = f"exact.elementwise.{name}"
    measures(card, " ".join(labels), "80 bits", tolerance, name=f"{name} equals the library's")(
        error
    )
    measures(card, "F1", "compiled, bit for bit", 0.0, name=f"compiled {name}")(twin)


_register(
    "exp",
    ("F1", "M1"),
    5e-16,
    lambda rng: np.concatenate(
        [
            rng.uniform(-708, 709.7, 4000),
            rng.standard_normal(4000),
            np.arange(-40, 40) * np.log(2) / 2,
        ]
    ),
)
_register(
    "log",
    ("F1", "M2"),
    1e-15,
    lambda rng: np.concatenate(
        [
            np.exp(rng.uniform(-744, 709, 4000)),
            [5e-324, 1.7e308, 1],
            1 + rng.standard_normal(2000) * np.exp2(rng.uniform(-52, -3, 2000)),
        ]
    ),
)
_register(
    "tanh",
    ("F1",),
    1e-15,
    lambda rng: np.concatenate(
        [
            rng.choice([-1, 1], 4000) * np.exp2(rng.uniform(-60, 3, 4000)),
            rng.uniform(-30, 30, 4000),
            [0, 1e9, -1e9],
        ]
    ),
)


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


@measures("nn.activation.ReLU", "F1 B1", "compiled, against float64 bit for bit", 0.0)
def compiled_relu(bench):
    x, dy, relu = drawn(bench.rng, 37, 27).T, drawn(bench.rng, 27, 37), nn.ReLU()
    (y, cache), (wide, wide_cache) = relu.forward(x), relu.forward(x.astype(float))
    yield _unequal(y, wide.astype("float32"))
    yield _unequal(
        relu.backward(dy, cache), relu.backward(dy.astype(float), wide_cache).astype("float32")
    )


@measures(
    "nn.loss.SoftmaxCrossEntropy",
    "F1 F2 B1 B2",
    "compiled, bit for bit by operations on whole arrays",
    0.0,
)
def compiled_softmax_cross_entropy(bench):
    for examples, classes in ((0, 3), (40, 1), (60, 10), (9, 33)):
        usual = bench.rng.normal(0, 5, (99, classes)).astype(np.float32)
        z = np.concatenate([drawn(bench.rng, examples, classes), usual])
        target = bench.rng.integers(-1, classes + 1, len(z))
        losses, dz = nn.SoftmaxCrossEntropy()(z, target)
        chosen = np.arange(classes) == target[:, None]
        shifted = z - z.max(axis=1, keepdims=True)
        e = elementwise.exp(shifted)
        total = in_pairs(e, 1)
        known = chosen.any(axis=1)
        true_logit = np.where(chosen, shifted, np.float32(0)).sum(axis=1)
        yield _unequal(losses, np.where(known, elementwise.log(total) - true_logit, np.float32(0)))
        yield _unequal(dz, np.where(known[:, None], e / total[:, None] - chosen, np.float32(0)))
