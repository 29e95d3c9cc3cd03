"""Checks of the optimizers and of averaged weights."""

import numpy as np

from ... import train
from ...backend import to_host
from ...mechanism import LinearDecay
from ..equation import Case
from . import holds, measures, states

KEY = ("layer", "W")
# the names that the equations give the fields and slots of optimizers
NAMED = {"momentum": "m", "offset": "e", "beta1": "b1", "beta2": "b2", "velocity": "v"}
NAMED |= {"sum_of_squares": "s", "mean": "m", "square": "v", "weight_decay": "w"}


@states("train.optimizer.SGD", "F1", case=(train.SGD, ()))
@states("train.optimizer.Momentum", "F1", case=(train.Momentum, (0.5,)))
@states("train.optimizer.Nesterov", "F1", case=(train.Nesterov, (0.5,)))
@states("train.optimizer.AdaGrad", "F1", case=(train.AdaGrad, (0.5,)))
@states("train.optimizer.Adam", "F1", case=(train.Adam, (0.5, 0.7, 0.2)))
def steps(bench, case):
    """With default and other settings, with a constant rate and one that falls."""
    kind, others = case
    for rate, settings in ((0.1, ()), (LinearDecay(0.2, 0.1, 3), others)):
        optimizer = kind(rate, *settings)
        theta = {KEY: bench.asarray(bench.rng.uniform(-1, 1, (2, 3)))}
        optimizer.allocate(theta)
        fields = {NAMED.get(name, name): value for name, value in vars(optimizer).items()}
        for step in range(6):
            before = _state(optimizer, theta)
            g = bench.rng.uniform(-1, 1, (2, 3)) * 8.0 ** (2 - step)
            optimizer.update(theta, {KEY: bench.asarray(g.copy())}, step)
            eta = rate(step) if callable(rate) else rate
            given = {"g": g, "t": step + 1, "eta": eta, **fields, **before}
            yield Case(given, _state(optimizer, theta))


@states("train.optimizer.Adam", "F2", case=(train.Adam, (0.5, 0.7, 0.2)))
@states("train.optimizer.AdamW", "F1", case=(train.AdamW, (0.5, 0.7, 0.2, 0.3)))
def descends_by_its_new_means(bench, case):
    for case in steps(bench, case):
        yield case._replace(given={**case.given, "m": case.after["m"], "v": case.after["v"]})


@measures("train.optimizer.AdamW", "F1", "without decay it is Adam", 0.0)
def decay_alone_is_added(bench):
    gradients, found = bench.rng.uniform(-1, 1, (4, 2, 3)), []
    for optimizer in (train.Adam(0.1), train.AdamW(0.1, weight_decay=0.0)):
        theta = {KEY: bench.asarray(np.ones((2, 3)))}
        optimizer.allocate(theta)
        for step, g in enumerate(gradients):
            optimizer.update(theta, {KEY: bench.asarray(g)}, step)
        found.append(to_host(theta[KEY]))
    yield holds(np.array_equal(*found))


def _state(optimizer, theta):
    found = {NAMED[name]: to_host(slot[KEY]).copy() for name, slot in optimizer.slots.items()}
    return {**found, "theta": to_host(theta[KEY]).copy()}


@states("train.averaging.Averaged", "F1", 1e-14)
def averages(bench):
    for decay in (0.0, 0.6, 0.999):
        averaged, a = train.Averaged(train.SGD(0.1), decay), np.zeros(3)
        theta = {KEY: bench.asarray(np.ones(3))}
        for t, g in enumerate(bench.rng.uniform(-1, 1, (30, 3))):
            averaged.update(theta, {KEY: bench.asarray(g)}, t)
            given = {"a": a, "theta": to_host(theta[KEY]).copy(), "decay": decay, "t": t}
            with averaged.averaged_weights(theta):
                a = to_host(theta[KEY]).copy()
            yield Case(given, {"a": a})
