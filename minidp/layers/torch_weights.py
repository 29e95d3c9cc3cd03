"""Weights of PyTorch: arrays of a `state_dict` into a network, and out again, without PyTorch.

PyTorch has channels first, and weights of shape (outputs, inputs); here channels are last, and
weights are (inputs, outputs). So a Linear layer after a Flatten of images has its inputs in another
order, too.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..backend import namespace_of, to_host
from ..errors import ParameterError, ShapeError
from ..nn.layer import Layer
from ..nn.network import Sequential
from ..nn.reshape import Flatten
from ..util.text import listed
from .recurrent import LSTM

NAMES = {"W": "weight", "E": "weight", "scale": "weight", "b": "bias", "shift": "bias"}
AXES = {3: (2, 0, 1), 4: (3, 2, 0, 1)}  # of LayerNorm over images, and of kernels
SECOND_BIAS = "bias_hh_l0"  # an LSTM has two there, which are added


class ByName(dict[str, NDArray]):
    """{name: array} in an order that may differ from that of the layers."""


def load_state_dict(
    network: Sequential, state: Mapping[str, ArrayLike], names: Mapping[str, str] | None = None
) -> None:
    """Copy the arrays of a PyTorch `state_dict()` into a network: all of them, or none if one does
    not fit.

    state  {"0.weight": array or CPU tensor, ...}
    names  {layer here: its name in the state}, such as {"conv1": "features.0"}; other layers keep
           their weights. Default: all layers, in the order of the state

    Raises ParameterError for missing layers or names, ShapeError for arrays that do not fit the
    layer.

    >>> from minidp.nn import Dense
    >>> network = Sequential(Dense(2, 3))
    >>> load_state_dict(network, {"0.weight": np.ones((3, 2)), "0.bias": np.zeros(3)})
    >>> network(np.ones((1, 2), "float32")).tolist()
    [[2.0, 2.0, 2.0]]
    """
    layers, parts = _layers(network), _parts(state)
    names = _in_order(layers, parts, state) if names is None else names
    new = []
    for name, prefix in names.items():
        if name not in layers:
            raise ParameterError(f"names: expected layers among {listed(layers)}, got {name!r}")
        where = f"{name}: expected {prefix!r} to hold"
        new.append((layers[name][0], _values(where, parts.get(prefix, {}), *layers[name])))
    for layer, values in new:
        for key, held in layer.params.items():
            held[...] = namespace_of(held).asarray(values[key].astype(held.dtype))


def state_dict(network: Sequential, names: Mapping[str, str] | None = None) -> dict[str, NDArray]:
    """{"dense1.weight": array, ...}: the network's weights in the order and shapes of PyTorch.

    names: {layer here: its name in PyTorch}; default: all layers, by their names here. Of the two
    biases of an LSTM, the first is its bias here, and the second is zero.
    """
    layers, found = _layers(network), {}
    for name, prefix in (names or {name: name for name in layers}).items():
        layer, images = layers[name]
        held = {key: to_host(array) for key, array in layer.params.items()}
        for key, array in _there(layer, images, held).items():
            found[f"{prefix}.{key}"] = np.ascontiguousarray(array) * (key != SECOND_BIAS)
    return found


def _layers(network):
    """{name: (layer, (H, W, C) of the images that a Flatten before it takes, or None)} for layers
    with weights.
    """
    found, images, shape = {}, None, network.input_shape
    for layer in network.layers:
        if layer.params:
            found[layer.name] = layer, images
        if layer.params or isinstance(layer, Flatten):
            images = shape if isinstance(layer, Flatten) and len(shape) == 3 else None
        shape = layer.output_shape(shape)
    return found


def _parts(state: Mapping[str, Any]) -> dict[str, dict[str, NDArray]]:
    """{name of a layer in the state: {"weight": array, ...}}."""
    found: dict[str, dict[str, NDArray]] = {}
    for name, array in state.items():
        prefix, _, last = name.rpartition(".")
        found.setdefault(prefix, {})[last] = np.asarray(array)
    return found


def _in_order(layers, parts, state):
    """{layer here: its name in the state}, paired in order."""
    if len(layers) == len(parts) and not isinstance(state, ByName):
        return dict(zip(layers, parts))
    of = ", of a file that sorts its names" if isinstance(state, ByName) else ""
    raise ParameterError(
        f"expected names={{layer here: its name there}}: here are {listed(layers)}; there are "
        f"{listed(parts)}{of}"
    )


def _values(where, given, layer, images):
    """{parameter: array} from one layer's arrays in a state."""
    ends = np.cumsum([array.size for array in layer.params.values()])
    places = {  # number the entries of the layer, and find the place of each in PyTorch's arrays
        key: part.reshape(array.shape)
        for (key, array), part in zip(layer.params.items(), np.split(np.arange(ends[-1]), ends))
    }
    there = _there(layer, images, places)
    wanted, got = ({key: each.shape for key, each in side.items()} for side in (there, given))
    if wanted != got:
        raise ShapeError(f"{where} {wanted}, got {got or 'nothing'}")
    values = np.zeros(ends[-1])
    for key, each in there.items():
        values[each] += given[key]
    return {key: values[place] for key, place in places.items()}


def _there(
    layer: Layer, images: tuple[int, ...] | None, arrays: dict[str, NDArray]
) -> dict[str, NDArray]:
    """{"weight": array, ...}: a layer's parameters, named and transposed as in PyTorch. images: (H,
    W, C) of the images that a Flatten before a dense layer takes, or None.
    """
    if isinstance(layer, LSTM):
        h = layer.hidden  # gates i, f, o, g here and i, f, g, o there
        order = [*range(2 * h), *range(3 * h, 4 * h), *range(2 * h, 3 * h)]
        W, b = arrays["W"][:, order].T, arrays["b"][order]
        weights = {"weight_ih_l0": W[:, : layer.inputs], "weight_hh_l0": W[:, layer.inputs :]}
        return {**weights, "bias_ih_l0": b, SECOND_BIAS: b}
    found = {}
    for key, array in arrays.items():
        if key == "W" and array.ndim == 2:
            array = array.T
            if images is not None:
                array = array.reshape((-1, *images)).transpose(0, 3, 1, 2)
                array = array.reshape((len(array), -1))
        elif array.ndim in AXES:
            array = array.transpose(AXES[array.ndim])
        found[NAMES.get(key, key)] = array
    return found
