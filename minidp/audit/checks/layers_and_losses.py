"""Checks of layers, losses and chains of layers. Layers and losses are rows of a table of cases.

A row of a layer (see audit/cases.py) measures every label of the cards of its class and bases: F
the output, B the gradient of the input, P1, P2, ... the gradients of the first, second, ...
parameter.
"""

import math
import re
from functools import partial

import numpy as np

from ... import nn
from ...backend import to_host
from ..card import labels_of
from ..cases import LAYERS, LOSSES, to_backend
from ..differences import compare
from ..equation import Case, value
from ..layer_case import case_of, stated
from ..names import card_of
from ..trial import COMPLEX_STEP, LayerTrial
from . import DERIVED, STEPPED, holds, in_words, measures, printed, states, texts_of, worst

# norms that are rounded up differ by more than rounding
CLOSE = COMPLEX_STEP._replace(apart=1e-10)
EXACT, COMPLEX = 1e-12, COMPLEX_STEP.tolerance
SEQUENTIAL = "nn.network.Sequential"


def output_label(texts):
    """The label whose equation gives y or the losses."""
    found = [label for label, text in texts.items() if re.match("(y|loss)(_| |\\()", text)]
    if not found:
        raise ValueError("no label is an equation of y")
    return found[0]


def printed_gradient(texts, label, case, rng):
    """The relative error of a gradient's equation, compared with complex steps of the output's
    equation, both as they are printed.

    case: values without those that the equations compute, except dy, the gradient of the output.
    """
    output, dy = output_label(texts), case.given["dy"]
    context = [text for other, text in texts.items() if other != label]
    computed, y = value(texts[output], case, context)
    shapes = {f"d{key}": np.zeros_like(each) for key, each in case.given.items() if key in "xz"}
    with_output = case._replace(given={**shapes, **case.given, computed: y})
    name, gradient = value(texts[label], with_output, context)
    wrt = name.removeprefix("d")
    array = case.given[wrt]

    def moved(by):
        there = case._replace(given={**case.given, wrt: array + by})
        return value(texts[output], there, context)[1].reshape(dy.shape)

    expected = array.shape if wrt in ("x", "z") else (len(dy), *array.shape)
    if gradient.size != math.prod(expected):
        raise ValueError(f"has the shape {gradient.shape}, its derivative {expected}")
    gradient = gradient.reshape(expected)
    found = compare(COMPLEX_STEP, rng, array.shape, moved, moved(0), dy, gradient)
    return found.best.max()


def _equations(bench, case):
    yield case_of(case.trial(bench))


def _output(bench, case, card):
    """Compare the output with its equation, which is in `card`, and check the output's shape for an
    empty batch.
    """
    texts, trial = texts_of(card), case.trial(bench)
    empty = trial.layer.forward(bench.asarray(case.input(bench.rng, 0)))[0]
    yield holds(empty.shape == (0, *case.shape))
    yield printed(texts, output_label(texts), case_of(trial))


def _of_text(bench, case, card, label):
    """Compare a gradient's equation with complex steps of the output's equation, without the
    code.
    """
    stated = case_of(case.trial(bench), computed=False)
    return printed_gradient(texts_of(card), label, stated, bench.rng)


def _of_code(bench, case, label):
    """Compare a gradient's code with complex steps of the output's code, without the equations."""
    trial = case.trial(bench)
    list(trial.derivatives())  # sets the errors
    return [*trial.errors.values()][0 if label == "B1" else int(label[1:])]


def _register(case, card, labels, gradients):
    """Register a row's checks for these labels of a card."""
    states(card, labels, EXACT, case, f"equations of {case.name}")(_equations)
    name = f"gradient of {case.name}"
    for label in gradients:
        of_text = partial(_of_text, case=case, card=card, label=label)
        of_code = partial(_of_code, case=case, label=label)
        measures(card, label, DERIVED, COMPLEX, None, name)(of_text)
        measures(card, label, STEPPED, COMPLEX, None, name)(of_code)


# of each kind, since the equations are evaluated number by number
SMALLEST = {type(case.make(np.random.default_rng(0), "float64")): case for case in LAYERS[::-1]}


def _register_layer(case):
    """Register the checks of one row for the labels of the cards of the layer's class and bases."""
    layer = case.make(np.random.default_rng(0), "float64")
    kind = type(layer)
    cards = [
        card_of(cls) for cls in kind.__mro__ if re.search(r"^ +\[F\d\]", cls.__doc__ or "", re.M)
    ]
    own, whole = cards[0], cards[-1]
    gradients = ["B1", *(f"P{n}" for n, _ in enumerate(layer.params, 1))]
    labels = [label for label in labels_of(whole) if label[0] != "P" or label in gradients]
    if kind is nn.Dropout:
        labels = ["F2"]  # without a generator
    if kind is nn.Dropout or case is not SMALLEST[kind]:
        gradients = []
    _register(case, whole, " ".join(labels), gradients)
    if whole != own:
        method, name = f"the equation [{output_label(labels_of(whole))}]", f"output of {case.name}"
        output = partial(_output, case=case, card=whole)
        measures(own, "F0", method, EXACT, None, name)(output)
        in_words(own, "F0", "names the set S of the equations in _Norm")


for _loss in LOSSES:
    _register(_loss, card_of(type(_loss.loss)), "F1 B1", ["B1"])

for _layer in LAYERS:
    _register_layer(_layer)


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


@measures(SEQUENTIAL, "F1", "each layer by itself", EXACT, name="chains")
def output_of_a_network(bench):
    for network, x in _networks(bench):
        expected = bench.asarray(x)
        for layer in network.layers:
            expected = layer.forward(expected)[0]
        yield worst(network.forward(bench.asarray(x))[0], expected)


@measures(SEQUENTIAL, "B1 P1", "complex step through the chain", COMPLEX, name="chains")
def gradients_of_a_network(bench):
    """Gradients of each parameter that is not frozen, and of no other."""
    for network, x in _networks(bench):
        trial = LayerTrial(
            network, x, bench.rng, below=False, how=COMPLEX_STEP, asarray=bench.asarray
        )
        yield from (np.inf for _ in (*trial.forms(), *trial.derivatives()))
        yield from trial.errors.values()


in_words(SEQUENTIAL, "F1 B1 P1", "a chain of layers, each with equations of its own")


@states("nn.loss.SoftmaxCrossEntropy", "F2 B2", 0.0)
def targets_of_no_class(bench):
    z, target = bench.rng.uniform(-3, 3, (5, 3)), np.array([0, 3, -1, 2, 100])
    losses, dz = map(to_host, nn.SoftmaxCrossEntropy()(bench.asarray(z), bench.asarray(target)))
    yield Case({"z": z, "target": target, "loss": losses, "dz": dz, "K": 3})


@measures("nn.conv.Conv2D", "F1 B1 P1", "seven examples against each by itself, to 1e-10", 0.0)
def convolution_in_chunks(bench):
    """Patches are formed in several chunks. With stride 2, dx is a sum of patches."""
    for stride in (1, 2):
        layer = nn.Conv2D(2, 2, 12, rng=bench.rng, stride=stride, dtype="float64")
        to_backend(layer, bench.backend)
        x = bench.rng.uniform(-1, 1, (7, 16 * stride, 16 * stride, 2))
        trial = LayerTrial(layer, x, bench.rng, how=CLOSE, asarray=bench.asarray)
        yield len([*trial.forms(), *trial.independence()])


@states("nn.pool.MaxPool2D", "F1 B1", 0.0)
def windows_with_ties(bench):
    layer, x = nn.MaxPool2D(2, 1), bench.rng.integers(0, 2, (2, 4, 3, 2)).astype(float)
    y, cache = layer.forward(bench.asarray(x))
    dy = bench.rng.integers(-9, 9, y.shape).astype(float)  # whose sums are exact
    yield stated(layer, x=x, y=y, dy=dy, dx=layer.backward(bench.asarray(dy), cache))


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
    """Without a generator nothing is dropped, as with a rate of 0."""
    layer, (x, dy) = nn.Dropout(0.3), bench.rng.uniform(1, 2, (2, 20, 10))
    u = np.random.default_rng(7).random((20, 10))
    for rng, rate in ((np.random.default_rng(7), 0.3), (None, 0.0)):
        y, cache = layer.forward(bench.asarray(x), rng=rng)
        dx = layer.backward(bench.asarray(dy), cache)
        yield Case({"x": x, "y": to_host(y), "u": u, "rate": rate, "dy": dy, "dx": to_host(dx)})
