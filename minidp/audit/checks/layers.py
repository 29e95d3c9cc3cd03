"""Checks of layers, losses and the chain of layers. Layers and losses are rows of a table of cases.

A row of a layer (see tests/support/cases.py) measures every label of the cards of its class and bases: F the
output, B the input's gradient, P1, P2, ... the gradients of its first, second, ... parameter.
"""
import numpy as np

from ... import nn
from ...backend import to_host
from .. import gradcheck, reference
from . import measures, worst

EXACT, COMPLEX, DIFFERENCES = 1e-12, 1e-13, 1e-6
SIGMAS = 6.0  # a right implementation exceeds six standard errors once in 500 million


def register(cases, losses):
    """Register the checks of every row; returns the number of rows."""
    for case in cases:
        for cls in _cards(case):
            _register_layer(cls, case)
    for case in losses:
        _register_loss(type(case.loss), case)
    return len(cases) + len(losses)


def _cards(case):
    layer = case.make(np.random.default_rng(0), "float64")
    return [cls for cls in type(layer).__mro__ if cls.__module__.startswith("minidp.nn.")]


def _name(cls):
    return f"{cls.__module__.removeprefix('minidp.')}.{cls.__qualname__}"


def _register_layer(cls, case):
    def add(labels, method, tolerance, measure):
        def check(bench):
            return measure(case, bench)
        check.__name__ = f"{measure.__name__.strip('_')} of {case.name}"
        measures(_name(cls), *labels, method=method, tolerance=tolerance)(check)

    forward = ("F2",) if cls is nn.Dropout else ("F1",) if cls.__name__ != "_Norm" else ("F1", "F2")
    add(forward, "loop over numbers", EXACT, _output)
    add(("B1",), "central differences", DIFFERENCES, _input_gradient)
    if case.analytic:
        add(("B1",), "complex step", COMPLEX, _input_gradient_by_complex_step)
    for place, name in enumerate(case.make(np.random.default_rng(0), "float64").params, 1):
        def differences(case, bench, name=name):
            return _parameter_differences(case, bench, name)

        def single(case, bench, name=name):
            return _single_examples(case, bench, name)

        def forms(case, bench, name=name):
            return _explicit_and_factored(case, bench, name)

        for measure, title in ((differences, "differences"), (single, "single examples"),
                               (forms, "explicit and factored")):
            measure.__name__ = f"{title}: {name}"
        add((f"P{place}",), "differences of each entry", DIFFERENCES, differences)
        add((f"P{place}",), "loop over single examples", EXACT, single)
        add((f"P{place}",), "explicit against factored", EXACT, forms)


def _on_device(case, bench):
    layer = case.make(bench.rng, "float64")
    host = {name: array.copy() for name, array in {**layer.params, **layer.constants}.items()}
    for store in (layer.params, layer.constants):
        for name, array in store.items():
            store[name] = bench.asarray(array)
    return layer, host


def _output(case, bench):
    layer, host = _on_device(case, bench)
    x = case.input(bench.rng, 3)
    return worst(layer.forward(bench.asarray(x))[0], case.reference(x, host))


def _gradient_error(case, bench, x, check):
    layer, _ = _on_device(case, bench)
    y, cache = layer.forward(bench.asarray(x))
    dy = bench.rng.uniform(-1, 1, y.shape)
    dx = to_host(layer.backward(bench.asarray(dy), cache))

    def function(at):
        return (to_host(layer.forward(bench.asarray(at))[0]) * dy).sum()

    return check(function, dx, x, bench.rng)


def _input_gradient(case, bench):
    return gradcheck.away_from_kinks(lambda: case.input(bench.rng, 3), lambda x: _gradient_error(
        case, bench, x, gradcheck.directional_error))


def _input_gradient_by_complex_step(case, bench):
    return _gradient_error(case, bench, case.input(bench.rng, 3), gradcheck.complex_step_error)


def _gradients(case, bench):
    layer, _ = _on_device(case, bench)
    x = case.input(bench.rng, 3)
    y, cache = layer.forward(bench.asarray(x))
    dy = bench.rng.uniform(-1, 1, y.shape)
    return layer, x, dy, layer.param_grads(bench.asarray(dy), cache)


def _parameter_differences(case, bench, name):
    layer, x, dy, grads = _gradients(case, bench)
    got, array = to_host(grads[name].materialise()), layer.params[name]
    kept = to_host(array).copy()
    expected = np.empty(got.shape)
    step = gradcheck.STEP
    for index in np.ndindex(kept.shape):
        values = []
        for k in (-1, -0.5, 0.5, 1):
            moved = kept.copy()
            moved[index] += k * step
            layer.params[name] = bench.asarray(moved)
            y = to_host(layer.forward(bench.asarray(x))[0])
            values.append((y * dy).reshape((len(x), y[0].size)).sum(axis=1))
        below, near_below, near_above, above = values
        expected[(slice(None), *index)] = (4 * (near_above - near_below) / step - (above - below) / (2 * step)) / 3
    return worst(got, expected)


def _single_examples(case, bench, name):
    layer, x, dy, grads = _gradients(case, bench)
    singles = []
    for b in range(len(x)):
        _, cache = layer.forward(bench.asarray(x[b : b + 1]))
        singles.append(to_host(layer.param_grads(bench.asarray(dy[b : b + 1]), cache)[name].materialise())[0])
    return worst(grads[name].materialise(), np.stack(singles))


def _explicit_and_factored(case, bench, name):
    """Norms and weighted sums of each form against sums over the materialised gradients."""
    grad = _gradients(case, bench)[3][name]
    whole, w = to_host(grad.materialise()), bench.rng.uniform(0, 1, 3)
    norms = [float((g**2).sum()) for g in whole]
    total = sum(w[b] * whole[b] for b in range(3))
    return max(max(worst(form.sq_norms(), norms), worst(form.weighted_sum(bench.asarray(w)), total))
               for form in (grad.choose(strategy) for strategy in ("explicit", "factored")))


def _register_loss(cls, case):
    def add(label, method, tolerance, measure):
        measure.__name__ = f"{method} of {case.name}"
        measures(_name(cls), label, method=method, tolerance=tolerance)(measure)

    def inputs(bench):
        return bench.rng.uniform(-3, 3, (6, 4)), case.target(bench.rng, 6, 4)

    def forward(bench):
        z, target = inputs(bench)
        return worst(case.loss(bench.asarray(z), bench.asarray(target))[0], case.reference(z, target))

    def gradient(check):
        def measure(bench):
            z, target = inputs(bench)
            weights = bench.rng.uniform(-1, 1, 6)
            on_device = bench.asarray(target)
            _, dz = case.loss(bench.asarray(z), on_device)
            dz = to_host(dz) * weights[:, None]
            return check(lambda at: (to_host(case.loss(bench.asarray(at), on_device)[0]) * weights).sum(),
                         dz, z, bench.rng)
        return measure

    add("F1", "loop over numbers", EXACT, forward)
    add("B1", "central differences", DIFFERENCES, gradient(gradcheck.directional_error))
    add("B1", "complex step", COMPLEX, gradient(gradcheck.complex_step_error))


@measures("nn.dropout.Dropout", "F1", method="share kept, values, independence", tolerance=SIGMAS)
def masks_are_independent(bench):
    """In standard errors: the share that is kept, and the correlation of neighbouring coordinates."""
    rate, x = 0.3, np.full((400, 500), 2.0)
    y = to_host(nn.Dropout(rate).forward(bench.asarray(x), rng=bench.rng)[0])
    kept = y != 0
    if worst(y[kept], x[kept] / (1 - rate)) > EXACT:
        return np.inf
    both = kept[:, 1:] & kept[:, :-1]
    pairs = (1 - rate) ** 2
    spread = pairs * (1 - pairs) + 2 * (pairs * (1 - rate) - pairs**2)  # neighbouring pairs share a coordinate
    return max(abs(kept.mean() - (1 - rate)) / np.sqrt(rate * (1 - rate) / kept.size),
               abs(both.mean() - pairs) / np.sqrt(spread / both.size))


@measures("nn.dropout.Dropout", "B1", method="the same draw, forward and backward", tolerance=EXACT)
def gradient_of_a_drawn_mask(bench):
    layer, x, dy = nn.Dropout(0.3), bench.rng.uniform(1, 2, (20, 10)), bench.rng.uniform(1, 2, (20, 10))
    y, cache = layer.forward(bench.asarray(x), rng=bench.rng)
    return worst(layer.backward(bench.asarray(dy), cache), dy * to_host(y) / x)


def _network(bench):
    network = nn.Sequential([nn.Dense(4, 5, rng=bench.rng, dtype="float64"), nn.Tanh(),
                             nn.Dense(5, 4, rng=bench.rng, dtype="float64"), nn.Sigmoid(),
                             nn.Dense(4, 3, rng=bench.rng, dtype="float64")], (4,), frozen=("dense2",))
    for layer in network.layers:
        for array in layer.params.values():
            array[...] = bench.rng.uniform(-1, 1, array.shape)
    return network.to(bench.backend), bench.rng.uniform(-1, 1, (4, 4)), bench.rng.integers(0, 3, 4)


@measures("nn.network.Sequential", "F1", method="loop over numbers", tolerance=EXACT)
def forward_is_the_chain(bench):
    network, x, _ = _network(bench)
    got = network.forward(bench.asarray(x))[0]
    for layer in network.layers:
        params = {name: to_host(array) for name, array in layer.params.items()}
        x = {"dense": reference.dense, "tanh": reference.tanh, "sigmoid": reference.sigmoid}[layer.kind](x, params)
    return worst(got, x)


@measures("nn.network.Sequential", "B1", "P1", method="central differences through the whole network",
          tolerance=DIFFERENCES)
def gradients_of_a_whole_network(bench):
    network, x, y = _network(bench)
    loss, weights = nn.SoftmaxCrossEntropy(), bench.rng.uniform(-1, 1, 4)
    x, y = bench.asarray(x), bench.asarray(y)
    z, caches = network.forward(x)
    grads = network.param_grads(loss(z, y)[1], caches)
    if set(grads) != {("dense1", "W"), ("dense1", "b"), ("dense3", "W"), ("dense3", "b")}:
        return np.inf
    layers = {layer.name: layer for layer in network.layers}
    largest = 0.0
    for (layer, name), grad in grads.items():
        store = layers[layer].params
        kept = to_host(store[name]).copy()

        def function(at, store=store, name=name):
            store[name] = bench.asarray(at)
            return float((to_host(loss(network.forward(x)[0], y)[0]) * weights).sum())

        gradient = to_host(grad.weighted_sum(bench.asarray(weights)))
        largest = max(largest, gradcheck.directional_error(function, gradient, kept, bench.rng))
        store[name] = bench.asarray(kept)
    return largest


@measures("nn.network.Sequential", "P1", method="loop over single examples", tolerance=EXACT)
def single_examples_of_a_network(bench):
    network, x, y = _network(bench)
    loss = nn.SoftmaxCrossEntropy()
    x, y = bench.asarray(x), bench.asarray(y)
    z, caches = network.forward(x)
    grads = network.param_grads(loss(z, y)[1], caches)
    singles = []
    for b in range(4):
        z, caches = network.forward(x[b : b + 1])
        one = network.param_grads(loss(z, y[b : b + 1])[1], caches)
        singles.append({key: to_host(grad.materialise())[0] for key, grad in one.items()})
    return max(worst(grad.materialise(), np.stack([one[key] for one in singles])) for key, grad in grads.items())
