"""Layers in a chain: gradients of the whole, frozen layers, names, shapes."""

import re

import numpy as np
import pytest

from minidp import nn
from minidp.audit import check_layer
from minidp.errors import ParameterError


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


def test_layers_are_given_one_by_one_or_as_a_list(rng):
    layers = [nn.Dense(4, 3, rng=rng), nn.ReLU()]
    one, frozen = nn.Sequential(*layers), nn.Sequential(*layers, frozen="dense1")
    listed = nn.Sequential(layers, 4)
    assert [*one.params] == [*listed.params] and one.input_shape == (4,)
    assert all(one.params[key] is array for key, array in listed.params.items())
    assert not frozen.params and not nn.Sequential(layers, (5, 4), "dense1").params
    assert nn.Sequential(layers, input_shape=(5, 4)).output_shape == (5, 3)
    assert nn.Sequential([nn.Project(np.eye(3)[:, :2])], frozen=()).input_shape == (3,)


@pytest.mark.parametrize(
    "layers, first",
    [
        ([nn.ReLU(), nn.Dense(3, 2)], "relu1"),
        ([nn.Conv2D(1, 2, 3)], "conv1"),
        ([], "without layers"),
    ],
)
def test_a_shape_that_the_first_layer_does_not_know_is_asked_for(layers, first):
    with pytest.raises(ParameterError, match=f"expected input_shape=.*{first}.* takes several"):
        nn.Sequential(*layers)


def test_a_network_is_called_and_gives_gradients_that_print_what_they_are(rng):
    network, loss = make_network(rng), nn.SoftmaxCrossEntropy()
    x, y = rng.uniform(-1, 1, (5, 2, 3)), np.array([0, 1, 2, 3, -1])
    np.testing.assert_array_equal(network(x), network.predict(x))
    found = network.per_example_grads(loss, x, y)
    assert list(found) == [".".join(key) for key in network.params]
    assert repr(found["dense1.W"]) == "Outer: 5 gradients of (6, 7), not formed"
    assert repr(found["dense3.b"]) == "Explicit: 5 gradients of (4,)"
    for name, grad in found.items():
        alone = network.per_example_grads(loss, x[1:2], y[1:2])[name]
        array = np.asarray(grad)
        np.testing.assert_allclose(array[1], np.asarray(alone)[0], atol=1e-14)
        np.testing.assert_allclose(grad.norms(), np.sqrt((array.reshape(5, -1) ** 2).sum(axis=1)))
        assert grad.norms()[4] == 0 and np.asarray(grad, "float32").dtype == "float32"


class Torch:
    """A module of PyTorch, as far as one can tell."""

    def forward(self, x):
        return x


class Mine(nn.Layer):
    def forward(self, x):
        return x


@pytest.mark.parametrize(
    "layer, why",
    [
        (Torch(), "Torch is no subclass of nn.Layer"),
        (Mine(), "Mine has its own forward"),
        (nn.Sequential(nn.Dense(3, 3)), "Sequential is no subclass of nn.Layer"),
    ],
)
def test_a_layer_that_is_written_as_in_pytorch_is_answered(layer, why):
    for door in (lambda: nn.Sequential(layer), lambda: check_layer(layer, 3)):
        with pytest.raises(ParameterError, match=re.escape(why) + ": derive .* compute_grads"):
            door()


def test_a_layer_may_be_in_other_networks_and_keeps_the_name_that_its_maker_gave(rng):
    dense, relu = nn.Dense(5, 4, rng=rng), nn.ReLU()
    first = nn.Sequential(dense, relu, nn.Dense(4, 2, rng=rng))
    assert dense.name is None and relu.name is None
    second = nn.Sequential(nn.Dense(3, 5, rng=rng), *first.layers)
    assert [layer.name for layer in second.layers] == ["dense1", "dense2", "relu1", "dense3"]
    assert [layer.name for layer in first.layers] == ["dense1", "relu1", "dense2"]
    assert second.params["dense2", "W"] is first.params["dense1", "W"] is dense.params["W"]
    third = nn.Sequential(nn.Dense(5, 5, name="relu1", rng=rng), relu)
    assert [layer.name for layer in third.layers] == ["relu1", "relu2"]


def test_a_layer_that_stands_twice_and_equal_names_are_refused(rng):
    dense = nn.Dense(4, 4, rng=rng)
    with pytest.raises(ParameterError, match="each layer once"):
        nn.Sequential(dense, dense)
    with pytest.raises(ParameterError, match=r"different names, got \['a', 'a'\]"):
        nn.Sequential(nn.Dense(4, 4, name="a", rng=rng), nn.ReLU("a"))


def test_more_than_shape_and_frozen_behind_a_list_is_refused(rng):
    with pytest.raises(ParameterError, match="at most input_shape and frozen"):
        nn.Sequential([nn.Dense(4, 4, rng=rng)], 4, (), "more")
