"""Checks of exp, log and tanh."""

import numpy as np

from ...backend import to_host
from ...exact import elementwise
from ...host.series import MAGIC, exp_parts, log_of
from ..equation import Case
from . import measures, states


def _register(name, labels, tolerance, draw):
    def error(bench):
        x = draw(bench.rng)
        exact, got = (
            getattr(np, name)(x.astype(np.longdouble)),
            to_host(getattr(elementwise, name)(bench.asarray(x))),
        )
        zero = exact == 0
        return np.max(np.where(zero, np.abs(got), np.abs(got / np.where(zero, 1, exact) - 1)))

    card = f"exact.elementwise.{name}"
    measures(card, " ".join(labels), "80 bits", tolerance, name=f"{name} equals the library's")(
        error
    )


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
