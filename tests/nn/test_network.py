"""Layers in a chain: gradients of the whole, frozen layers, names, shapes."""
import numpy as np
import pytest

from minidp import nn
from minidp.audit import gradcheck, reference
from minidp.backend import Backend, to_host
from minidp.errors import DtypeError, ParameterError, ShapeError
from minidp.audit.cases import LOSSES

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "softmax": nn.Softmax}
losses = pytest.mark.parametrize("case", LOSSES, ids=lambda case: case.name)
activations = pytest.mark.parametrize("activation", ACTIVATIONS)


def make_network(rng, activation="tanh", dtype="float64", frozen=()):
    """A layer of every kind, on images of 2 x 3, with 4 outputs."""
    layers = [
        nn.Standardise(rng.uniform(-1, 1, (3,)).astype(dtype), rng.uniform(0.5, 2, (2, 1)).astype(dtype)),
        nn.Flatten(),
        nn.Project(rng.uniform(-1, 1, (6, 5)).astype(dtype)),
        nn.Dense(5, 7, rng=rng, dtype=dtype),
        ACTIVATIONS[activation](),
        nn.Dense(7, 6, rng=rng, dtype=dtype, bias=False),
        ACTIVATIONS[activation](),
        nn.Dense(6, 4, rng=rng, dtype=dtype),
    ]
    return nn.Sequential(layers, (2, 3), frozen)


def weighted_loss(network, loss, x, target, weights):
    z, _ = network.forward(x)
    return (loss(z, target)[0] * weights).sum()


def gradients(network, loss, x, target):
    z, caches = network.forward(x)
    _, dz = loss(z, target)
    return network.param_grads(dz, caches)


def central_differences(network, loss, x, target, weights, array):
    """The gradient of the weighted loss in one parameter, entry by entry."""
    slopes, h = np.zeros_like(array), 1e-5
    for index in np.ndindex(array.shape):
        kept, values = array[index], []
        for k in (-1, -0.5, 0.5, 1):
            array[index] = kept + k * h
            values.append(weighted_loss(network, loss, x, target, weights))
        array[index] = kept
        slopes[index] = (4 * (values[2] - values[1]) / h - (values[3] - values[0]) / (2 * h)) / 3
    return slopes


@losses
@activations
def test_gradients_of_a_whole_network(case, activation, rng):
    network = make_network(rng, activation)
    x, target, weights = rng.uniform(-1, 1, (3, 2, 3)), case.target(rng, 3, 4), rng.uniform(-1, 1, 3)
    grads = gradients(network, case.loss, x, target)
    assert list(network.params) == [("dense1", "W"), ("dense1", "b"), ("dense2", "W"), ("dense3", "W"),
                                      ("dense3", "b")]
    assert grads.keys() == network.params.keys()
    for key, array in network.params.items():
        expected = central_differences(network, case.loss, x, target, weights, array)
        error = np.abs(grads[key].weighted_sum(weights) - expected).max() / np.abs(expected).max()
        assert error < 1e-6, key


@losses
@activations
def test_gradients_along_random_directions(case, activation, rng):
    network = make_network(rng, activation)
    target, weights = case.target(rng, 5, 4), rng.uniform(-1, 1, 5)

    def check(x):
        worst = 0.0
        for key, grad in gradients(network, case.loss, x, target).items():
            array = network.params[key]
            kept = array.copy()

            def at(moved, array=array, kept=kept):
                array[...] = moved
                value = weighted_loss(network, case.loss, x, target, weights)
                array[...] = kept
                return value

            worst = max(worst, gradcheck.directional_error(at, grad.weighted_sum(weights), kept, rng))
        return worst

    assert gradcheck.away_from_kinks(lambda: rng.uniform(-1, 1, (5, 2, 3)), check) < 1e-6


@losses
@activations
def test_per_example_gradients_equal_one_example_at_a_time(case, activation, backend, rng):
    network = make_network(rng, activation).to(backend)
    x, target = backend.asarray(rng.uniform(-1, 1, (5, 2, 3))), backend.asarray(case.target(rng, 5, 4))
    got = gradients(network, case.loss, x, target)
    if backend.name == "cpu":
        expected = reference.single_example_grads(network, case.loss, x, target)
    else:
        ones = [gradients(network, case.loss, x[b : b + 1], target[b : b + 1]) for b in range(5)]
        expected = {key: np.stack([to_host(one[key].materialise()[0]) for one in ones]) for key in got}
    assert got.keys() == expected.keys()
    for key, grad in got.items():
        np.testing.assert_allclose(to_host(grad.materialise()), expected[key], rtol=1e-11, atol=1e-14)


def test_forward_is_the_chain_of_layers(backend, rng):
    network = make_network(rng).to(backend)
    x = backend.asarray(rng.uniform(-1, 1, (4, 2, 3)))
    expected = x
    for layer in network.layers:
        expected, _ = layer.forward(expected)
    y, caches = network.forward(x)
    np.testing.assert_array_equal(to_host(y), to_host(expected))
    assert len(caches) == len(network.layers)
    assert network.output_shape == (4,) == tuple(y.shape[1:])


def test_examples_do_not_talk_to_each_other(rng):
    network, loss = make_network(rng), nn.SoftmaxCrossEntropy()
    x, target = rng.uniform(-1, 1, (4, 2, 3)), rng.integers(0, 4, 4)
    moved = x.copy()
    moved[0] += 1
    before, after = gradients(network, loss, x, target), gradients(network, loss, moved, target)
    for key in before:
        np.testing.assert_array_equal(before[key].materialise()[1:], after[key].materialise()[1:])


def test_frozen_layers_have_no_gradients_and_change_no_others(rng):
    network, loss = make_network(rng), nn.SoftmaxCrossEntropy()
    half = nn.Sequential(network.layers, (2, 3), frozen=["dense2"])
    x, target = rng.uniform(-1, 1, (4, 2, 3)), rng.integers(0, 4, 4)
    all_grads, grads = gradients(network, loss, x, target), gradients(half, loss, x, target)
    assert grads.keys() == half.params.keys() == {key for key in all_grads if key[0] != "dense2"}
    for key, grad in grads.items():
        np.testing.assert_array_equal(grad.materialise(), all_grads[key].materialise())
    assert half.state().keys() == network.state().keys()  # a saved model holds the frozen layers too


def test_nothing_is_computed_below_the_lowest_trained_layer(rng, monkeypatch):
    network = make_network(rng, frozen=["dense1", "dense2"])
    called = []
    for layer in network.layers:
        monkeypatch.setattr(layer, "backward", lambda dy, cache, layer=layer: called.append(layer.name))
    z, caches = network.forward(rng.uniform(-1, 1, (2, 2, 3)))
    assert network.param_grads(np.ones_like(z), caches).keys() == {("dense3", "W"), ("dense3", "b")}
    assert called == []


def test_a_network_without_trained_layers_has_no_gradients(rng):
    network = make_network(rng, frozen=["dense1", "dense2", "dense3"])
    z, caches = network.forward(rng.uniform(-1, 1, (2, 2, 3)))
    assert network.param_grads(np.ones_like(z), caches) == {} == network.params


def test_layers_are_named_by_kind_and_number(rng):
    network = nn.Sequential([nn.Dense(3, 3, rng=rng), nn.ReLU(), nn.Dense(3, 3, rng=rng, name="middle"), nn.ReLU(),
                             nn.Dense(3, 2, rng=rng)], (3,))
    assert [layer.name for layer in network.layers] == ["dense1", "relu1", "middle", "relu2", "dense3"]
    assert list(network.state()) == ["dense1.W", "dense1.b", "middle.W", "middle.b", "dense3.W", "dense3.b"]


def test_bad_names_are_refused(rng):
    dense = nn.Dense(3, 3, rng=rng)
    with pytest.raises(ParameterError, match="expected layers with different names"):
        nn.Sequential([dense, nn.ReLU(), dense], (3,))
    with pytest.raises(ParameterError, match=r"expected frozen to name layers of \['dense1'\], got \['dense9'\]"):
        nn.Sequential([nn.Dense(3, 3, rng=rng)], (3,), frozen=["dense9"])


def test_layers_that_do_not_fit_are_refused_when_the_network_is_built(rng):
    with pytest.raises(ShapeError, match=r"dense2: expected input of shape \(4,\), got \(5,\)"):
        nn.Sequential([nn.Dense(3, 5, rng=rng), nn.Tanh(), nn.Dense(4, 2, rng=rng)], (3,))


@pytest.mark.parametrize("shape", [(4, 6), (4, 3, 2), (4,), (2, 3)])
def test_input_of_another_shape_is_refused(shape, rng):
    with pytest.raises(ShapeError, match=r"network: expected x of shape \(B, 2, 3\), got"):
        make_network(rng).forward(np.zeros(shape))


def test_integers_are_refused(rng):
    with pytest.raises(DtypeError, match="network: expected x of dtype float32 or float64, got int64"):
        make_network(rng).forward(np.zeros((4, 2, 3), "int64"))


@pytest.mark.parametrize("examples", [0, 1, 6, 7])
def test_predict_in_batches_equals_one_forward(examples, backend, rng):
    network = make_network(rng).to(backend)
    x = backend.asarray(rng.uniform(-1, 1, (examples, 2, 3)))
    got = network.predict(x, batch_size=3)
    assert got.shape == (examples, 4)
    np.testing.assert_allclose(to_host(got), to_host(network.forward(x)[0]), rtol=1e-13)


@losses
def test_an_empty_batch_gives_empty_gradients(case, backend, rng):
    network = make_network(rng).to(backend)
    x, target = backend.asarray(np.zeros((0, 2, 3))), backend.asarray(case.target(rng, 0, 4))
    for key, grad in gradients(network, case.loss, x, target).items():
        assert grad.n_examples == 0 and grad.shape == network.params[key].shape
        np.testing.assert_array_equal(to_host(grad.weighted_sum(backend.asarray(np.zeros(0)))),
                                      np.zeros(grad.shape))


def test_params_are_the_arrays_themselves_and_moving_changes_the_dtype(rng):
    network = make_network(rng)
    network.params["dense1", "b"][...] = 3.0
    assert (network.layers[3].params["b"] == 3.0).all()
    network.to(Backend.numpy(), "float32")
    assert {array.dtype.name for array in network.state().values()} == {"float32"}
    assert network.forward(np.zeros((2, 2, 3), "float32"))[0].dtype == np.float32
