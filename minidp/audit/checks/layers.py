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
from .. import gradcheck, reference
from ..cases import LAYERS, LOSSES, everything, to_backend
from . import measures, worst

EXACT, COMPLEX, CUT = 1e-12, 1e-13, 2.0**-22


def _register_layer(cls, case):
    """Register the checks of one row for the labels of the card of `cls`, the layer's class or a
    base of it.
    """
    labels = set(re.findall(r"^ +\[(\w+)\]", cls.__doc__ or "", re.M))

    def add(wanted, name, method, tolerance, measure):
        if found := [label for label in wanted if label in labels]:
            _named(
                f"{name} of {case.name}",
                cls,
                found,
                method,
                tolerance,
                measure,
                _card_of(type(kind)),
            )

    kind = case.make(np.random.default_rng(0), "float64")

    def made(bench):
        return to_backend(case.make(bench.rng, "float64"), bench.backend)

    def output(bench):
        layer, nothing, x = made(bench), case.input(bench.rng, 0), case.input(bench.rng, 3)
        empty = layer.forward(bench.asarray(nothing))[0].shape == (
            0,
            *layer.output_shape(case.shape),
        )
        return (
            worst(layer.forward(bench.asarray(x))[0], case.reference(x, everything(layer)))
            if empty
            else np.inf
        )

    def exact(bench):
        layer, x = made(bench), 8 * case.input(bench.rng, 3)
        layer.arithmetic = arithmetic.EXACT
        return worst(layer.forward(bench.asarray(x))[0], case.reference(x, everything(layer)))

    def input_gradient(bench):
        return gradcheck.layer_input_error(
            made(bench), case.input(bench.rng, 3), bench.rng, bench.asarray
        )

    def entries(bench, name):
        return gradcheck.layer_param_errors(
            made(bench), case.input(bench.rng, 3), bench.rng, bench.asarray
        )[name]

    def forms(bench, name):
        """Norms and weighted sums of each form against sums over the materialised gradients."""
        layer = made(bench)
        y, cache = layer.forward(bench.asarray(case.input(bench.rng, 4)))
        grad = layer.param_grads(bench.asarray(bench.rng.uniform(-1, 1, y.shape)), cache)[name]
        whole, w = to_host(grad.materialise()), bench.rng.uniform(0, 1, 4)
        norms, total = [float((g**2).sum()) for g in whole], sum(w[b] * whole[b] for b in range(4))
        chosen = [grad.form(strategy) for strategy in ("auto", "explicit", "factored")]
        return max(
            max(
                worst(form.sq_norms(), norms),
                worst(form.sq_norms_upper(), norms),
                worst(form.weighted_sum(bench.asarray(w)), total),
            )
            for form in chosen
        )

    add(
        ("F2",) if cls is nn.Dropout else ("F0", "F1", "F2"),
        "output",
        "loop over numbers",
        EXACT,
        output,
    )
    add(("F1",), "exact output", "loop over numbers, exact arithmetic", CUT, exact)
    add(("B1",), "input gradient", "complex step", COMPLEX, input_gradient)
    for place, name in enumerate(kind.params, 1):
        add(
            (f"P{place}",),
            f"gradients of {name}",
            "complex step of each entry and example",
            COMPLEX,
            partial(entries, name=name),
        )
        add(
            (f"P{place}",),
            f"forms of {name}",
            "explicit against factored",
            EXACT,
            partial(forms, name=name),
        )


def _card_of(cls):
    return f"{cls.__module__.removeprefix('minidp.')}.{cls.__qualname__}"


def _named(name, cls, labels, method, tolerance, measure, subject=""):
    measures(
        _card_of(cls), *labels, method=method, tolerance=tolerance, name=name, subject=subject
    )(measure)


def _register_loss(cls, case):
    def inputs(bench):
        return bench.rng.uniform(-3, 3, (6, 4)), case.target(bench.rng, 6, 4)

    def forward(bench):
        z, target = inputs(bench)
        return worst(
            case.loss(bench.asarray(z), bench.asarray(target))[0], case.reference(z, target)
        )

    def gradient(bench):
        return gradcheck.loss_error(case.loss, *inputs(bench), bench.rng, bench.asarray)

    _named(f"losses of {case.name}", cls, ("F1",), "loop over numbers", EXACT, forward)
    _named(f"gradient of {case.name}", cls, ("B1",), "complex step", COMPLEX, gradient)


for _case in LAYERS:
    for _cls in type(_case.make(np.random.default_rng(0), "float64")).__mro__:
        if _cls.__module__.startswith("minidp.nn."):
            _register_layer(_cls, _case)
for _case in LOSSES:
    _register_loss(type(_case.loss), _case)


@measures(
    "nn.loss.SoftmaxCrossEntropy",
    "F2",
    "B2",
    method="zero, and loops over the other examples",
    tolerance=EXACT,
)
def targets_of_no_class(bench):
    z, target, known = bench.rng.uniform(-3, 3, (5, 3)), np.array([0, 3, -1, 2, 100]), [0, 3]
    losses, dz = np.zeros(5), np.zeros((5, 3))
    losses[known] = reference.cross_entropy(z[known], target[known])
    dz[known] = reference.softmax(z[known], {}) - np.eye(3)[target[known]]
    found = nn.SoftmaxCrossEntropy()(bench.asarray(z), bench.asarray(target))
    return max(map(worst, found, (losses, dz)))


@measures(
    "nn.init.truncated_normal",
    "F1",
    method="the same numbers, drawn again one by one",
    tolerance=1e-15,
)
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


@measures("nn.dropout.Dropout", "F1", "B1", method="the same numbers, drawn again", tolerance=EXACT)
def a_drawn_mask(bench):
    layer, x, dy = (
        nn.Dropout(0.3),
        bench.rng.uniform(1, 2, (20, 10)),
        bench.rng.uniform(1, 2, (20, 10)),
    )
    y, cache = layer.forward(bench.asarray(x), rng=np.random.default_rng(7))
    mask = (np.random.default_rng(7).random((20, 10)) >= 0.3) / 0.7
    return max(worst(y, x * mask), worst(layer.backward(bench.asarray(dy), cache), dy * mask))


def _networks(bench):
    """(network, x, loss, target): every kind of activation and loss, the second layer of parameters
    frozen.
    """
    for activation in (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.Softmax):
        for case in LOSSES:
            network = nn.Sequential(
                [
                    nn.Flatten(),
                    nn.Dense(6, 5, rng=bench.rng, dtype="float64"),
                    activation(),
                    nn.Dense(5, 4, rng=bench.rng, bias=False, dtype="float64"),
                    activation(),
                    nn.Dense(4, 3, rng=bench.rng, dtype="float64"),
                    nn.Tanh(),
                ],
                (2, 3),
                frozen=("dense2",),
            )
            for array in (array for layer in network.layers for array in layer.params.values()):
                array[...] = bench.rng.uniform(-1, 1, array.shape)
            yield (
                network.to(bench.backend),
                bench.rng.uniform(-1, 1, (4, 2, 3)),
                case.loss,
                case.target(bench.rng, 4, 3),
            )


@measures("nn.network.Sequential", "F1", method="loop over numbers", tolerance=EXACT)
def forward_is_the_chain(bench):
    for network, x, _, _ in _networks(bench):
        got = network.forward(bench.asarray(x))[0]
        for layer in network.layers:
            x = getattr(reference, layer.kind)(x, everything(layer))
        yield worst(got, x)


@measures(
    "nn.network.Sequential",
    "B1",
    "P1",
    method="complex step through whole networks",
    tolerance=COMPLEX,
)
def gradients_of_whole_networks(bench):
    """Of each parameter, the examples weighted at random."""
    weights = bench.rng.uniform(-1, 1, 4)
    for network, x, loss, target in _networks(bench):
        stores, target = (
            {layer.name: layer.params for layer in network.layers},
            bench.asarray(target),
        )
        z, caches = network.forward(bench.asarray(x))
        grads = network.param_grads(loss(z, target)[1], caches)
        if set(grads) != {("dense1", "W"), ("dense1", "b"), ("dense3", "W"), ("dense3", "b")}:
            yield np.inf
        for (layer, name), grad in grads.items():
            kept = stores[layer][name]

            def function(at):
                stores[layer][name] = bench.asarray(at)
                z, _ = network.forward(bench.asarray(x.astype(complex)))
                return (to_host(loss(z, target)[0]) * weights).sum()

            gradient = to_host(grad.weighted_sum(bench.asarray(weights)))
            yield gradcheck.directional_error(function, gradient, to_host(kept), bench.rng)
            stores[layer][name] = kept


@measures(
    "nn.conv.Conv2D",
    "F1",
    "B1",
    "P1",
    method="seven examples against each by itself",
    tolerance=EXACT,
)
def convolution_in_chunks(bench):
    """Their patches are formed in several chunks. With stride 2, dx is a sum of patches."""
    for stride, kind in ((1, arithmetic.ORDINARY), (2, arithmetic.ORDINARY), (1, arithmetic.EXACT)):
        layer = to_backend(
            nn.Conv2D(2, 2, 12, rng=bench.rng, stride=stride, dtype="float64"), bench.backend
        )
        layer.arithmetic = kind
        x = bench.asarray(bench.rng.uniform(-1, 1, (7, 16 * stride, 16 * stride, 2)))
        dy = bench.asarray(bench.rng.uniform(-1, 1, (7, 16, 16, 2)))
        w = bench.asarray(bench.rng.uniform(0, 1, 7))

        def found(rows):
            y, cache = layer.forward(x[rows])
            grad = layer.param_grads(dy[rows], cache)["W"]
            norms = grad.sq_norms(), grad.sq_norms_upper()
            every = (
                y,
                layer.backward(dy[rows], cache),
                grad.materialise(),
                *norms,
                grad.weighted_sum(w[rows]),
            )
            return list(map(to_host, every))

        *together, total = found(slice(0, 7))
        *alone, totals = zip(*(found(slice(b, b + 1)) for b in range(7)))
        yield worst(total, sum(totals))
        yield from (worst(whole, np.concatenate(parts)) for whole, parts in zip(together, alone))


@measures("nn.pool.MaxPool2D", "B1", method="compiled, the same order of additions", tolerance=0.0)
def compiled_max_pool(bench):
    for window, stride, padding in (
        (2, 2, "valid"),
        (2, 1, "same"),
        (3, 2, "same"),
        ((2, 3), (1, 2), "valid"),
    ):
        # ties
        layer, x = (
            nn.MaxPool2D(window, stride, padding),
            bench.rng.integers(0, 4, (2, 6, 7, 3)).astype("float32"),
        )
        (y, cache), (_, plain) = layer.forward(x), layer.forward(x.astype("float64"))
        # sums of small integers are exact
        dy = bench.rng.integers(-9, 9, y.shape).astype("float32")
        yield worst(layer.backward(dy, cache), layer.backward(dy.astype("float64"), plain))
