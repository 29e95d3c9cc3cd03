"""Checks of the optimizers and of averaged weights."""

from functools import partial

import numpy as np

from ... import train
from ...backend import to_host
from ...mechanism import LinearDecay
from ..card import labels_of
from ..equation import Case
from . import states

EXACT, KEY = 1e-12, ("layer", "W")
# the names that the equations give the fields and slots of optimizers
NAMED = {"momentum": "m", "offset": "e", "beta1": "b1", "beta2": "b2", "velocity": "v"}
NAMED |= {"sum_of_squares": "s", "mean": "m", "square": "v"}
SETTINGS = {  # besides the rate
    "sgd": (),
    "momentum": (0.5,),
    "nesterov": (0.5,),
    "adagrad": (0.5,),
    "adam": (0.5, 0.7, 0.2),
}


def _steps(bench, cls, others, label):
    """With the settings it has by itself and others, a constant rate and one that falls. What a
    second label starts from is what the first has changed.
    """
    for rate, settings in ((0.1, ()), (LinearDecay(0.2, 0.1, 3), others)):
        optimizer = cls(rate, *settings)
        theta = {KEY: bench.asarray(bench.rng.uniform(-1, 1, (2, 3)))}
        optimizer.allocate(theta)
        fields = {NAMED.get(name, name): value for name, value in vars(optimizer).items()}
        for step in range(6):
            before, g = (
                _state(optimizer, theta),
                bench.rng.uniform(-1, 1, (2, 3)) * 8.0 ** (2 - step),
            )
            optimizer.update(theta, {KEY: bench.asarray(g.copy())}, step)
            after = _state(optimizer, theta)
            given = {"g": g, "t": step + 1, **fields}
            given["eta"] = rate(step) if callable(rate) else rate
            given |= {**(after if label == "F2" else before), "theta": before["theta"]}
            yield Case(given, after)


def _state(optimizer, theta):
    found = {NAMED[name]: to_host(slot[KEY]).copy() for name, slot in optimizer.slots.items()}
    return {**found, "theta": to_host(theta[KEY]).copy()}


for _name, _others in SETTINGS.items():
    _cls = train.OPTIMIZERS[_name]
    _card = f"train.optimizer.{_cls.__name__}"
    for _label in labels_of(_card):
        states(_card, _label, EXACT, "steps")(
            partial(_steps, cls=_cls, others=_others, label=_label)
        )


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
