"""A network's architecture as JSON, and the network made from it: constructors are called, nothing is evaluated."""
import json
from inspect import signature
from typing import Any

import numpy as np

from .. import nn
from ..backend import to_host
from ..errors import CheckpointError, ParameterError
from ..validate import count
from .checkpoint import refuse_misfits

CLASSES = {f"nn.{name}": found for name in nn.__all__ if name != "Layer"
          and isinstance(found := getattr(nn, name), type) and issubclass(found, (nn.Layer, nn.Sequential))}
MOST_NUMBERS = 2**31  # of one example in all layers


def describe(network: nn.Sequential) -> dict[str, Any]:
    """The architecture as JSON values. Raises ParameterError where a layer could not be made again from them."""
    own: dict[str, type] = {}
    cls = type(network)
    if not isinstance(network, nn.Sequential):
        raise ParameterError(f"a model file holds an nn.Sequential, or a subclass of it, got a {cls.__name__}")
    for each in (cls, *map(type, network.layers)):
        if _name(each) not in CLASSES and own.setdefault(each.__name__, each) is not each:
            raise ParameterError(f"expected classes of one's own with different names, got two {each.__name__}")
    try:
        refuse_misfits("made again", network.state(), cls(network.layers, network.input_shape, network.frozen).state())
    except Exception as error:
        raise ParameterError(f"a model file cannot hold the network {cls.__name__}: {one_line(error)}; give an "
                             "nn.Sequential, or a subclass that is made by cls(layers, input_shape, frozen)") from error
    return {"class": _name(cls), "input_shape": list(map(int, network.input_shape)), "frozen": sorted(network.frozen),
            "layers": list(map(_described, network.layers))}


def _described(layer):
    """{class, name, settings, constants: {argument: name of the constant}} of one layer, after making it again."""
    cls, constants = type(layer), {}
    try:
        plain, constants = _settings(layer)
        dtype = next((array.dtype for array in (*layer.params.values(), *layer.constants.values())), "float32")
        given = {key: to_host(layer.constants[name]) for key, name in constants.items()}
        again = _made(cls, layer.name, plain, given, dtype)
        if _settings(again) != (plain, constants):
            raise ValueError(f"made again with {plain} it has the settings {_settings(again)[0]}")
        refuse_misfits("made again", {**layer.params, **layer.constants}, {**again.params, **again.constants})
    except Exception as error:  # a constructor of somebody's own may raise anything
        raise ParameterError(
            f"{getattr(layer, 'name', layer)}: a model file cannot hold the layer {cls.__name__}: {one_line(error)}; "
            "give the class a method settings(self) that returns the constructor's keywords but rng, init, dtype and "
            "name: numbers, text, tuples of them, or arrays of self.constants") from error
    return {"class": _name(cls), "name": layer.name, "settings": plain, "constants": constants}


def _settings(layer):
    """(JSON values, {argument: name of a constant}) of a layer's settings."""
    plain, constants = {}, {}
    for key, value in layer.settings().items():
        same = [name for name, array in layer.constants.items() if array is value]
        if same:
            constants[key] = same[0]
        else:
            plain[key] = json.loads(json.dumps(value, allow_nan=False, default=lambda number: number.item()))
    return plain, constants


def build(path, found: dict, arrays: dict, own: dict) -> nn.Sequential:
    """The network that `describe` described, with these arrays; whatever does not fit raises."""
    layers = []
    for row in found["layers"]:
        name = row["name"]
        given = {key: arrays[f"{name}.{constant}"] for key, constant in row["constants"].items()}
        dtype = next((array.dtype for key, array in arrays.items() if key.startswith(f"{name}.")), "float32")
        layers.append(_made(_known(path, row["class"], own), name, row["settings"], given, dtype))
    count(**{f"input_shape[{i}]": size for i, size in enumerate(found["input_shape"])})
    network = _known(path, found["class"], own)(layers, found["input_shape"], found["frozen"])
    if network.example_numbers > MOST_NUMBERS:
        raise ValueError(f"one example takes {network.example_numbers} numbers")
    refuse_misfits(path, arrays, network.state())
    for layer in layers:
        for store in (layer.params, layer.constants):
            store.update({key: _filled(array, arrays[f"{layer.name}.{key}"]) for key, array in store.items()})
    return network


def _known(path, name, own):
    """A class by its name in a file: minidp's, or among {name: class} `own`. Raises CheckpointError."""
    cls = CLASSES.get(name, own.get(name))
    if cls is None:
        raise CheckpointError(f"{path}: the class {name!r:.80} is none of minidp's layers; pass yours to load_model as "
                              "layers={class name: class}")
    return cls


def _filled(array, values):
    """The values, in the array that is there if it can hold them: a layer made of others may share it with them."""
    if not array.flags.writeable or array.dtype != values.dtype:
        return values
    array[...] = values
    return array


def _made(cls, name, settings, constants, dtype):
    """A layer out of its constructor; those of minidp hold no memory for their parameters yet, whatever their size."""
    drawn = {"rng": np.random.default_rng(0), "init": nn.init.zeros, "dtype": dtype}
    drawn = {key: value for key, value in drawn.items() if key in signature(cls).parameters}
    settings = {key: _tuples(value) for key, value in settings.items()}
    with nn.init.shapes_only(_name(cls) in CLASSES):
        layer = cls(**drawn, **settings, **constants)
    if not isinstance(layer, nn.Layer) or not isinstance(name, str) or not name.isprintable():
        raise TypeError(f"{name!r:.80} is no nn.Layer with a name that is printable text")
    layer.name = name
    return layer


def _name(cls):
    """A class's name in a file: nn.NAME if it is minidp's."""
    name = f"nn.{cls.__name__}"
    return name if CLASSES.get(name) is cls else cls.__name__


def _tuples(value):
    """JSON's lists as tuples, which constructors take for shapes."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def one_line(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
