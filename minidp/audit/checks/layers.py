"""Checks of layers, losses and the chain of layers. Layers and losses are rows of a table of cases.

A row of a layer (see audit/cases.py) measures every label of the cards of its class and bases: F
the output, B the gradient of the input, P1, P2, ... the gradients of the first, second, ...
parameter.
"""

import re
from functools import partial

import numpy as np

from ... import nn
from ...exact import arithmetic
from ...train.trial import COMPLEX_STEP, LayerTrial, LossTrial, quantities
from .. import reference
from ..cases import LAYERS, LOSSES, everything, to_backend
from . import holds, measures, worst

# norms that are rounded up are off by more than rounding alone
CLOSE = COMPLEX_STEP._replace(apart=1e-10)
EXACT, COMPLEX, CUT = 1e-12, COMPLEX_STEP.tolerance, 2.0**-22


def _layer(bench, case):
    return to_backend(case.make(bench.rng, "float64"), bench.backend)


def _output(bench, case):
    layer, x = _layer(bench, case), case.input(bench.rng, 3)
    empty = layer.forward(bench.asarray(case.input(bench.rng, 0)))[0]
    yield holds(empty.shape == (0, *layer.output_shape(case.shape)))
    yield worst(layer.forward(bench.asarray(x))[0], case.reference(x, everything(layer)))


def _exact_output(bench, case):
    layer, x = _layer(bench, case), 8 * case.input(bench.rng, 3)
    layer.arithmetic = arithmetic.EXACT
    return worst(layer.forward(bench.asarray(x))[0], case.reference(x, everything(layer)))


def _gradient(bench, case, label):
    x, how = case.input(bench.rng, 3), {"how": COMPLEX_STEP, "asarray": bench.asarray}
    return _error(LayerTrial(_layer(bench, case), x, bench.rng, **how), label)


def _error(trial, label):
    """The error of one gradient by the complex step; infinity if its shape is wrong."""
    yield from (np.inf for _ in (*trial.forms(), *trial.derivatives()))
    yield trial.labelled()[label][1]


def _forms(bench, case, name):
    """Norms and weighted sums of each form against sums over the materialised gradients."""
    layer, weights = _layer(bench, case), bench.rng.uniform(0, 1, 4)
    y, cache = layer.forward(bench.asarray(case.input(bench.rng, 4)))
    grad = layer.param_grads(bench.asarray(bench.rng.uniform(-1, 1, y.shape)), cache)[name]
    for strategy in ("auto", "explicit", "factored"):
        for _, got, expected in quantities(grad.form(strategy), weights, bench.asarray):
            yield worst(got, expected)


def _card_of(cls):
    return f"{cls.__module__.removeprefix('minidp.')}.{cls.__qualname__}"


def _register_layer(case):
    """Register the checks of one row for the labels of the cards of the layer's class and bases."""
    kind = case.make(np.random.default_rng(0), "float64")
    outputs = "F2" if isinstance(kind, nn.Dropout) else "F0 F1 F2"
    rows = [
        (outputs, "output", "loop over numbers", EXACT, _output),
        ("F1", "exact output", "loop over numbers, exact arithmetic", CUT, _exact_output),
        ("B1", "input gradient", "complex step", COMPLEX, partial(_gradient, label="B1")),
    ]
    for label, name in ((f"P{n}", name) for n, name in enumerate(kind.params, 1)):
        gradient, forms = partial(_gradient, label=label), partial(_forms, name=name)
        rows += [
            (label, f"gradients of {name}", "complex step of each example", COMPLEX, gradient),
            (label, f"forms of {name}", "explicit against factored", EXACT, forms),
        ]
    for cls in type(kind).__mro__:
        labels = re.findall(r"^ +\[(\w+)\]", cls.__doc__ or "", re.M)
        for wanted, name, method, tolerance, measure in rows:
            found = " ".join(label for label in wanted.split() if label in labels)
            name = f"{name} of {case.name}"
            register = measures(_card_of(cls), found, method, tolerance, name, _card_of(type(kind)))
            register(partial(measure, case=case))


for _case in LAYERS:
    _register_layer(_case)


def _losses(bench, case):
    z, target = bench.rng.uniform(-3, 3, (6, 4)), case.target(bench.rng, 6, 4)
    got, _ = case.loss(bench.asarray(z), bench.asarray(target))
    return worst(got, case.reference(z, target))


def _loss_gradient(bench, case):
    z, target = bench.rng.uniform(-3, 3, (6, 4)), case.target(bench.rng, 6, 4)
    return _error(LossTrial(case.loss, z, target, bench.rng, bench.asarray, COMPLEX_STEP), "B1")


for _case in LOSSES:
    for _label, _name, _method, _tolerance, _measure in (
        ("F1", "losses", "loop over numbers", EXACT, _losses),
        ("B1", "gradient", "complex step", COMPLEX, _loss_gradient),
    ):
        _name = f"{_name} of {_case.name}"
        _register = measures(_card_of(type(_case.loss)), _label, _method, _tolerance, _name)
        _register(partial(_measure, case=_case))


@measures("nn.loss.SoftmaxCrossEntropy", "F2 B2", "zero, and loops over the other examples", EXACT)
def targets_of_no_class(bench):
    z, target, known = bench.rng.uniform(-3, 3, (5, 3)), np.array([0, 3, -1, 2, 100]), [0, 3]
    losses, dz = np.zeros(5), np.zeros((5, 3))
    losses[known] = reference.cross_entropy(z[known], target[known])
    dz[known] = reference.softmax(z[known], {}) - np.eye(3)[target[known]]
    found = nn.SoftmaxCrossEntropy()(bench.asarray(z), bench.asarray(target))
    return max(map(worst, found, (losses, dz)))


@measures("nn.init.truncated_normal", "F1", "the same numbers, drawn again one by one", 1e-15)
def initial_weights(bench):
    shape, rng = (3, 3, 5, 40), np.random.default_rng(7)
    z = list(rng.standard_normal(1800))
    while far := [place for place, value in enumerate(z) if abs(value) > 2]:
        for place in far:
            z[place] = rng.standard_normal()
    return worst(
        nn.init.truncated_normal(np.random.default_rng(7), shape, "float64").ravel(),
        np.array(z) / 45**0.5,
    )


@measures("nn.dropout.Dropout", "F1 B1", "the same numbers, drawn again", EXACT)
def a_drawn_mask(bench):
    layer, (x, dy) = nn.Dropout(0.3), bench.rng.uniform(1, 2, (2, 20, 10))
    y, cache = layer.forward(bench.asarray(x), rng=np.random.default_rng(7))
    mask = (np.random.default_rng(7).random((20, 10)) >= 0.3) / 0.7
    yield worst(y, x * mask)
    yield worst(layer.backward(bench.asarray(dy), cache), dy * mask)


def _networks(bench):
    """(network, x): every kind of activation, the second layer of parameters frozen."""
    dense = partial(nn.Dense, rng=bench.rng, dtype="float64")
    for activation in (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.Softmax):
        hidden = [dense(6, 5), activation(), dense(5, 4, bias=False), activation()]
        layers = [nn.Flatten(), *hidden, dense(4, 3), nn.Tanh()]
        for array in (array for layer in layers for array in layer.params.values()):
            array[...] = bench.rng.uniform(-1, 1, array.shape)
        network = nn.Sequential(layers, (2, 3), frozen=("dense2",))
        yield network.to(bench.backend), bench.rng.uniform(-1, 1, (4, 2, 3))


@measures("nn.network.Sequential", "F1", "loop over numbers", EXACT)
def forward_is_the_chain(bench):
    for network, x in _networks(bench):
        got = network.forward(bench.asarray(x))[0]
        for layer in network.layers:
            x = getattr(reference, layer.kind)(x, everything(layer))
        yield worst(got, x)


@measures("nn.network.Sequential", "B1 P1", "complex step through whole networks", COMPLEX)
def gradients_of_whole_networks(bench):
    """Of each parameter that is not frozen, and of no other."""
    how = {"below": False, "how": COMPLEX_STEP, "asarray": bench.asarray}
    for network, x in _networks(bench):
        trial = LayerTrial(network, x, bench.rng, **how)
        yield from (np.inf for _ in (*trial.forms(), *trial.derivatives()))
        yield from (error for _, error in trial.labelled().values())
        named = {what.partition(":")[0] for what in trial.errors}
        yield holds(named == {"dense1.W", "dense1.b", "dense3.W", "dense3.b"})


@measures("nn.conv.Conv2D", "F1 B1 P1", "seven examples against each by itself, to 1e-10", 0.0)
def convolution_in_chunks(bench):
    """Their patches are formed in several chunks. With stride 2, dx is a sum of patches."""
    for stride, kind in ((1, arithmetic.ORDINARY), (2, arithmetic.ORDINARY), (1, arithmetic.EXACT)):
        layer = nn.Conv2D(2, 2, 12, rng=bench.rng, stride=stride, dtype="float64")
        to_backend(layer, bench.backend).arithmetic = kind
        x = bench.rng.uniform(-1, 1, (7, 16 * stride, 16 * stride, 2))
        trial = LayerTrial(layer, x, bench.rng, how=CLOSE, asarray=bench.asarray)
        yield len([*trial.forms(), *trial.independence()])


@measures("nn.pool.MaxPool2D", "B1", "compiled, the same order of additions", 0.0)
def compiled_max_pool(bench):
    for how in ((2, 2, "valid"), (2, 1, "same"), (3, 2, "same"), ((2, 3), (1, 2), "valid")):
        layer, x = nn.MaxPool2D(*how), bench.rng.integers(0, 4, (2, 6, 7, 3))  # ties
        (y, cache), (_, plain) = (layer.forward(x.astype(dtype)) for dtype in ("f4", "f8"))
        # sums of small integers are exact
        dy = bench.rng.integers(-9, 9, y.shape).astype("f4")
        yield worst(layer.backward(dy, cache), layer.backward(dy.astype("f8"), plain))
