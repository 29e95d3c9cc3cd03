"""A network's architecture as JSON, and the network made from it: constructors are called, nothing
is evaluated.
"""

import json
from inspect import signature
from typing import Any

import numpy as np

from .. import nn
from ..backend import to_host
from ..errors import CheckpointError, ParameterError
from .checkpoint import refuse_misfits

MOST_LAYERS = 1000  # in a file; each takes time to make, whatever its size
CLASSES = {
    f"nn.{name}": found
    for name in nn.__all__
    if name != "Layer"
    and isinstance(found := getattr(nn, name), type)
    and issubclass(found, (nn.Layer, nn.Sequential))
}


def describe(network: nn.Sequential) -> dict[str, Any]:
    """The architecture as JSON values. Raises ParameterError where the network could not be made
    again from them.
    """
    part: Any = network
    rows, again = [], []
    try:
        _refuse_too_many(network.layers)
        every = [network, *network.layers]
        own = {_name(type(each)): type(each) for each in every}
        arrays = {name: to_host(array) for name, array in network.state().items()}
        for part in every:
            if own[_name(type(part))] is not type(part):
                raise ValueError(f"two classes have the name {type(part).__name__}")
        for part in network.layers:
            rows.append(_row(part))
            again.append(_layer("made again", rows[-1], arrays, own))
            if _row(again[-1]) != rows[-1]:
                raise ValueError(
                    f"made again, its settings {rows[-1]['settings']} are "
                    f"{_row(again[-1])['settings']}"
                )
        part = network
        found = {
            "class": _name(type(network)),
            "input_shape": list(map(int, network.input_shape)),
            "frozen": sorted(network.frozen),
            "layers": rows,
        }
        _network("made again", found, again, arrays, own)
        return found
    except Exception as error:  # a constructor of somebody's own may raise anything
        why = " ".join(str(error).split())[:300]
        raise ParameterError(
            f"{getattr(part, 'name', 'network')}: a model file cannot hold {type(part).__name__}: "
            f"{type(error).__name__}: {why}; give a layer's class a method settings(self) that "
            "returns the constructor's keywords but rng, init, dtype and name: numbers, text, "
            "tuples of them, or arrays of self.constants; the network's class has to be an "
            "nn.Sequential that is made by cls(layers, input_shape, frozen)"
        ) from error


def build(path, found: dict, arrays: dict, own: dict) -> nn.Sequential:
    """The network that `describe` described, with these arrays; whatever does not fit raises."""
    _refuse_too_many(found["layers"])
    layers = [_layer(path, row, arrays, own) for row in found["layers"]]
    return _network(path, found, layers, arrays, own)


def _refuse_too_many(layers):
    """Raise ValueError for a chain of layers that would take minutes to make."""
    if len(layers) > MOST_LAYERS:
        raise ValueError(f"expected at most {MOST_LAYERS} layers, got {len(layers)}")


def _row(layer):
    """{class, name, settings, constants: {argument: name of the constant}} of one layer."""
    plain, constants = {}, {}
    for key, value in layer.settings().items():
        same = [name for name, array in layer.constants.items() if array is value]
        if same:
            constants[key] = same[0]
        else:
            plain[key] = json.loads(
                json.dumps(value, allow_nan=False, default=lambda number: number.item())
            )
    return {
        "class": _name(type(layer)),
        "name": layer.name,
        "settings": plain,
        "constants": constants,
    }


def _layer(path, row, arrays, own):
    """A layer out of its constructor; those of minidp hold no memory for their parameters yet,
    whatever their size.
    """
    cls, name = _known(path, row["class"], own), row["name"]
    prefix = f"{name}."
    dtype = next(
        (array.dtype for key, array in arrays.items() if key.startswith(prefix)), "float32"
    )
    given = {"rng": np.random.default_rng(0), "init": nn.init.zeros, "dtype": dtype}
    given = {key: value for key, value in given.items() if key in signature(cls).parameters}
    for key, constant in row["constants"].items():
        given[key] = arrays[prefix + constant]
    with nn.init.shapes_only(cls in CLASSES.values()):
        layer = cls(**given, **{key: _tuples(value) for key, value in row["settings"].items()})
    if not isinstance(layer, nn.Layer) or not isinstance(name, str) or not name.isprintable():
        raise TypeError(f"{name!r:.80} is no nn.Layer with a name that is printable text")
    layer.name = name
    return layer


def _network(path, found, layers, arrays, own):
    """The layers in a network, with the arrays."""
    network = _known(path, found["class"], own)(layers, found["input_shape"], found["frozen"])
    refuse_misfits(path, arrays, network.state())
    for layer in layers:
        for store in (layer.params, layer.constants):
            for key in store:
                store[key] = arrays[f"{layer.name}.{key}"]
    return network


def _known(path, name, own):
    """A class by its name in a file: minidp's, or among {name: class} `own`. Raises
    CheckpointError.
    """
    cls = CLASSES.get(name, own.get(name))
    if cls is None:
        raise CheckpointError(
            f"{path}: the class {name!r:.80} is none of minidp's layers; pass yours to load_model "
            "as layers={class name: class}"
        )
    return cls


def _name(cls):
    """A class's name in a file: nn.NAME if it is minidp's."""
    name = f"nn.{cls.__name__}"
    return name if CLASSES.get(name) is cls else cls.__name__


def _tuples(value):
    """JSON's lists as tuples, which constructors take for shapes."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
