"""Layers in a chain: gradients of the whole, frozen layers, names, shapes."""

import numpy as np

from minidp import nn


def make_network(rng, frozen=()):
    """Three dense layers, on images of 2 x 3, with 4 outputs."""
    widths = ((6, 7), (7, 6), (6, 4))
    dense = [nn.Dense(*width, rng=rng, dtype="float64") for width in widths]
    return nn.Sequential([nn.Flatten(), *dense], (2, 3), frozen)


def test_nothing_is_computed_below_the_lowest_trained_layer(rng, monkeypatch):
    network = make_network(rng, frozen=["dense1", "dense2"])
    called = []
    for layer in network.layers:
        monkeypatch.setattr(
            layer, "compute_dx", lambda dy, kept, layer=layer: called.append(layer.name)
        )
    z, caches = network.forward(rng.uniform(-1, 1, (2, 2, 3)))
    assert network.param_grads(np.ones_like(z), caches).keys() == {("dense3", "W"), ("dense3", "b")}
    network = nn.Sequential(network.layers, (2, 3), frozen=["dense1", "dense2", "dense3"])
    assert network.param_grads(np.ones_like(z), caches) == {} == network.params and called == []


def test_an_integer_is_a_shape_and_layers_draw_by_themselves_without_rng():
    network = nn.Sequential([nn.Dense(4, 2), nn.ReLU()], 4)
    assert (
        network.input_shape == (4,)
        and (network.params["dense1", "W"] != nn.Dense(4, 2).params["W"]).any()
    )


def test_pooling_before_the_relu_in_front_of_it_changes_no_bit(rng):
    layers = [nn.Conv2D(2, 3, 3, rng=rng), nn.ReLU(), nn.MaxPool2D(2, 1), nn.Flatten()]
    network = nn.Sequential(layers, (6, 6, 2))
    layers[0].params["W"] = np.round(9 * layers[0].params["W"])  # ties
    x = rng.integers(-1, 2, (4, 6, 6, 2)).astype("float32")
    z, caches = network.forward(x)
    dy = dz = rng.standard_normal(z.shape).astype("float32")
    one_by_one = []
    for layer in layers:
        x, cache = layer.forward(x)
        one_by_one.append(cache)
    np.testing.assert_array_equal(z, x)
    for layer, cache in zip(layers[:0:-1], one_by_one[:0:-1]):
        dy = layer.backward(dy, cache)
    expected = layers[0].param_grads(dy, one_by_one[0])
    for name, grad in network.param_grads(dz, caches).items():
        np.testing.assert_array_equal(grad.materialise(), expected[name[1]].materialise())
