"""Checks of layers, losses and the chain of layers. Layers and losses are rows of a table of cases.

A row of a layer (see audit/cases.py) measures every label of the cards of its class and bases: F
the output, B the gradient of the input, P1, P2, ... the gradients of the first, second, ...
parameter.
"""

import re
from functools import partial

import numpy as np

from ... import nn
from ...backend import to_host
from ...exact import arithmetic
from ...train.trial import COMPLEX_STEP, LayerTrial, LossTrial
from ..card import labels_of
from ..cases import LAYERS, LOSSES, to_backend
from ..equation import Case, derivative, value
from ..stated import computed, stated
from . import DERIVED, STEPPED, holds, in_words, measures, printed, states, texts_of, worst

# norms that are rounded up are off by more than rounding alone
CLOSE = COMPLEX_STEP._replace(apart=1e-10)
EXACT, COMPLEX = 1e-12, COMPLEX_STEP.tolerance


def _layer(bench, case):
    return to_backend(case.make(bench.rng, "float64"), bench.backend)


def _cases(bench, case):
    """What a layer computes from two examples."""
    x = bench.asarray(case.input(bench.rng, 2))
    yield computed(
        _layer(bench, case), x, lambda shape: bench.asarray(bench.rng.uniform(-1, 1, shape))
    )


def _output(bench, case, card):
    """The output beside its equation, which stands in `card`, and the shape of that of no
    example.
    """
    texts, layer = texts_of(card), _layer(bench, case)
    empty = layer.forward(bench.asarray(case.input(bench.rng, 0)))[0]
    yield holds(empty.shape == (0, *case.shape))
    yield from (printed(texts, output_label(texts), found) for found in _cases(bench, case))


def _derivatives(bench, case, card, label):
    """A gradient's equation beside complex steps of the output's, without the code."""
    layer, x = _layer(bench, case), case.input(bench.rng, 1)
    dy = bench.rng.uniform(-1, 1, (1, *layer.output_shape(case.shape)))
    found = stated(layer, x=x, dy=dy)
    return printed_gradient(texts_of(card), label, found, found.given["dy"])


def _steps(bench, case, label):
    """A gradient's code beside complex steps of the output's, without the equations."""
    layer, x = _layer(bench, case), case.input(bench.rng, 2)
    return _stepped(LayerTrial(layer, x, bench.rng, how=COMPLEX_STEP, asarray=bench.asarray), label)


def _stepped(trial, label):
    """The error of a gradient in a trial."""
    list(trial.derivatives())  # which sets it
    return trial.labelled()[label][1]


def output_label(texts):
    """The label whose equation gives y or the losses."""
    found = [label for label, text in texts.items() if re.match("(y|loss)(_| |\\()", text)]
    if not found:
        raise ValueError("no label is an equation of y")
    return found[0]


def printed_gradient(texts, label, case, dy):
    """The error of what a gradient's equation gives beside complex steps of the output's equation,
    both as they are printed.

    case: without what the equations compute; dy: the gradient of the output.
    """
    output = output_label(texts)
    context = [text for other, text in texts.items() if other != label]
    computed, y = value(texts[output], case, context)
    shapes = {f"d{key}": np.zeros_like(each) for key, each in case.given.items() if key in "xz"}
    with_output = case._replace(given={**shapes, **case.given, computed: y})
    name, given = value(texts[label], with_output, context)
    slopes = derivative(texts[output], case, name.removeprefix("d"), dy, context)
    if given.size != slopes.size:
        raise ValueError(f"has the shape {given.shape}, its derivative {slopes.shape}")
    return worst(given.reshape(slopes.shape), slopes)


def card_of(cls):
    """The name of the card of a class of the library."""
    return f"{cls.__module__.removeprefix('minidp.')}.{cls.__qualname__}"


# of each kind, since the equations are evaluated number by number
SMALLEST = {type(case.make(np.random.default_rng(0), "float64")): case for case in LAYERS[::-1]}


def _register_layer(case):
    """Register the checks of one row for the labels of the cards of the layer's class and bases."""
    layer = case.make(np.random.default_rng(0), "float64")
    kind = type(layer)
    cards = [
        card_of(cls) for cls in kind.__mro__ if re.search(r"^ +\[F\d\]", cls.__doc__ or "", re.M)
    ]
    subject, whole = cards[0], cards[-1]
    output = output_label(labels_of(whole))
    grads = [f"P{n}" for n, _ in enumerate(layer.params, 1)]
    if kind is nn.Dropout:
        labels = output = "F2"  # without a generator
    else:
        labels = " ".join(n for n in labels_of(whole) if n[0] != "P" or n in grads)
    states(whole, labels, EXACT, f"equations of {case.name}", subject)(partial(_cases, case=case))
    if case in SMALLEST.values() and kind is not nn.Dropout:
        for label in ("B1", *grads):
            for method, function in (
                (DERIVED, partial(_derivatives, case=case, card=whole, label=label)),
                (STEPPED, partial(_steps, case=case, label=label)),
            ):
                measures(whole, label, method, COMPLEX, f"gradient of {case.name}", subject)(
                    function
                )
    if whole != subject:
        register = measures(
            subject, "F0", f"the equation [{output}]", EXACT, f"output of {case.name}"
        )
        register(partial(_output, case=case, card=whole))


CHAINS = {case.name: case for case in LAYERS if case.name in ("residual", "tied")}
for _case in LAYERS:
    if _case.name not in CHAINS:
        _register_layer(_case)

in_words("nn.chain.Residual", "F1 B1 P1", "a chain of layers, each with equations of its own")
in_words("nn.chain.Tied", "F1 B1 P1 P2", "a chain of layers, each with equations of its own")


@measures("nn.chain.Residual", "F1", "each layer by itself", EXACT, "x_plus_a_chain")
@measures("nn.chain.Tied", "F1", "each layer by itself, sums by einsum", EXACT, "a_chain_to_logits")
def output_of_chains(bench):
    for name, case in CHAINS.items():
        layer, x = _layer(bench, case), bench.asarray(case.input(bench.rng, 3))
        each = x
        for inner in layer.layers:
            each = inner.forward(each)[0]
        if name == "residual":
            expected = x + each
        else:
            table = to_host(layer.layers[0].params["E"])
            expected = np.einsum("btj,vj->btv", to_host(each), table)
        yield worst(layer.forward(x)[0], expected)


@measures("nn.chain.Residual", "B1 P1", "complex step", COMPLEX, "gradients_of_residual")
@measures("nn.chain.Tied", "B1 P1 P2", "complex step", COMPLEX, "gradients_of_tied")
def gradients_of_chains(bench):
    for case in CHAINS.values():
        layer, x = _layer(bench, case), case.input(bench.rng, 3)
        trial = LayerTrial(layer, x, bench.rng, how=COMPLEX_STEP, asarray=bench.asarray)
        yield from (np.inf for _ in (*trial.forms(), *trial.derivatives()))
        yield from (error for _, error in trial.labelled().values())


def _loss_cases(bench, case):
    given = _loss_given(bench, case)
    losses, dz = case.loss(bench.asarray(given["z"]), bench.asarray(given["target"]))
    yield Case({**given, "loss": to_host(losses), "dz": to_host(dz)})


def _loss_given(bench, case):
    sizes = {"T": case.shape[0], "K": case.shape[-1]}
    z = bench.rng.uniform(-3, 3, (3, *case.shape))
    return {"z": z, "target": case.target(bench.rng, 3, case.shape), **sizes}


def _loss_derivative(bench, case, card):
    return printed_gradient(texts_of(card), "B1", Case(_loss_given(bench, case)), np.ones(3))


def _loss_steps(bench, case):
    given = _loss_given(bench, case)
    trial = LossTrial(
        case.loss, given["z"], given["target"], bench.rng, bench.asarray, COMPLEX_STEP
    )
    return _stepped(trial, "B1")


for _case in LOSSES:
    _card = card_of(type(_case.loss))
    states(_card, "F1 B1", EXACT, f"equations of {_case.name}")(partial(_loss_cases, case=_case))
    for _method, _function in (
        (DERIVED, partial(_loss_derivative, case=_case, card=_card)),
        (STEPPED, partial(_loss_steps, case=_case)),
    ):
        measures(_card, "B1", _method, COMPLEX, f"gradient of {_case.name}")(_function)


def _of_no_class(bench, kept):
    """Some examples of a batch in which others have a target of no class."""
    z, target = bench.rng.uniform(-3, 3, (5, 3)), np.array([0, 3, -1, 2, 100])
    losses, dz = map(to_host, nn.SoftmaxCrossEntropy()(bench.asarray(z), bench.asarray(target)))
    found = {"z": z, "target": target, "loss": losses, "dz": dz}
    yield Case({**{name: array[kept] for name, array in found.items()}, "K": 3})


for _labels, _tolerance, _kept in (("F2 B2", 0.0, slice(None)), ("F1 B1", EXACT, [0, 3])):
    _register = states("nn.loss.SoftmaxCrossEntropy", _labels, _tolerance, "targets_of_no_class")
    _register(partial(_of_no_class, kept=_kept))


@states("nn.init.truncated_normal", "F1", 1e-15)
def initial_weights(bench):
    shape, rng = (3, 3, 5, 40), np.random.default_rng(7)
    z = list(rng.standard_normal(1800))
    while far := [place for place, value in enumerate(z) if abs(value) > 2]:
        for place in far:
            z[place] = rng.standard_normal()
    W = nn.init.truncated_normal(np.random.default_rng(7), shape, "float64")
    yield Case({"W": W, "z": np.reshape(z, shape), "I": 45})


@states("nn.dropout.Dropout", "F1 B1", EXACT)
def a_drawn_mask(bench):
    """And none, as with a rate of 0."""
    layer, (x, dy) = nn.Dropout(0.3), bench.rng.uniform(1, 2, (2, 20, 10))
    u = np.random.default_rng(7).random((20, 10))
    for rng, rate in ((np.random.default_rng(7), 0.3), (None, 0.0)):
        y, cache = layer.forward(bench.asarray(x), rng=rng)
        dx = layer.backward(bench.asarray(dy), cache)
        yield Case({"x": x, "y": to_host(y), "u": u, "rate": rate, "dy": dy, "dx": to_host(dx)})


in_words("nn.norm.GroupNorm", "F0", "names the set S of the equations in _Norm")
in_words("nn.norm.LayerNorm", "F0", "names the set S of the equations in _Norm")
in_words("nn.network.Sequential", "F1 B1 P1", "a chain of layers, each with equations of its own")


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


@measures("nn.network.Sequential", "F1", "each layer by itself", EXACT)
def forward_is_the_chain(bench):
    for network, x in _networks(bench):
        each = bench.asarray(x)
        got = network.forward(each)[0]
        for layer in network.layers:
            each = layer.forward(each)[0]
        yield worst(got, each)


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


@states("nn.pool.MaxPool2D", "F1 B1", 0.0)
def windows_with_ties(bench):
    layer, x = nn.MaxPool2D(2, 1), bench.rng.integers(0, 2, (2, 4, 3, 2)).astype(float)
    y, cache = layer.forward(bench.asarray(x))
    dy = bench.rng.integers(-9, 9, y.shape).astype(float)  # whose sums are exact
    yield stated(layer, x=x, y=y, dy=dy, dx=layer.backward(bench.asarray(dy), cache))
