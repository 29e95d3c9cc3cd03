"""A model file that describes itself: the network's layers and parameters, its inputs, and the
meaning of its outputs. Nothing is pickled; only constructors rebuild the network.
"""

import json
from contextlib import contextmanager
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import nn
from ..backend import to_host
from ..errors import CheckpointError, ParameterError
from ..util.atomic import StrPath
from ..util.files import check_path, damage_named
from .checkpoint import load_arrays, refuse_misfits, save_arrays
from .layer_names import class_name, minidp_class
from .model import Model

FACTS = ("about", "ledger_sha256", "target_bounds", "image_shape", "classes")
MOST_LAYERS = 1000  # in a file; each takes time to construct, whatever its size


def save_model(
    path: StrPath,
    network: nn.Sequential,
    about: dict[str, Any] | None = None,
    classes: ArrayLike | None = None,
    target_bounds: tuple[float, float] | None = None,
    ledger_sha256: str | None = None,
    image_shape: tuple[int, ...] | None = None,
) -> None:
    """Write a network to a file from which `load_model` rebuilds it. The other arguments are those
    of `Model`.

    Raises ParameterError for a layer that cannot be written, and says what to add to its class.
    """
    write_model(path, Model(network, classes, target_bounds, about, ledger_sha256, image_shape))


def write_model(path: StrPath, model: Model) -> None:
    """Write a Model, as `save_model` does."""
    facts = {name: getattr(model, name) for name in FACTS}
    header = {"kind": "model", **facts, "architecture": describe(model.network)}
    save_arrays(path, model.network.state(), header)


def load_model(path: StrPath, layers: dict[str, type[nn.Layer]] | None = None) -> Model:
    """The Model in a file that `save_model` or a run wrote; layers: {class name: class} of your own
    layers.

    >>> import tempfile
    >>> network = nn.Sequential([nn.Dense(4, 2, rng=np.random.default_rng(0)), nn.Tanh()], (4,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(f"{folder}/model.npz", network, classes=["no", "yes"])
    ...     model = load_model(f"{folder}/model.npz")
    >>> model
    <Model: x (B, 4) to 2 classes (no, yes); dense1, tanh1; 10 parameters>
    >>> model.predict([[-1, 0, 0, 0], [1, 0, 0, 0]])
    array(['yes', 'no'], dtype='<U3')

    Only constructors of `minidp.nn` and of `layers` are called; nothing is unpickled. Raises
    CheckpointError, in one line, for any other file.
    """
    check_path(path=path)
    with damage_named(path, CheckpointError):
        arrays, header = load_arrays(path, "model")
        network = _build(path, header["architecture"], arrays, layers or {})
        return Model(network, **{name: header.get(name) for name in FACTS})


def describe(network: nn.Sequential) -> dict[str, Any]:
    """The architecture as JSON values. Raises ParameterError if the network cannot be rebuilt from
    them.
    """
    rows, again = [], []
    with _named(network):
        _refuse_too_many(network.layers)
        own = _classes(network)
        arrays = {name: to_host(array) for name, array in network.state().items()}
    for layer in network.layers:
        with _named(layer):
            rows.append(_row(layer))
            again.append(_layer("made again", rows[-1], arrays, own))
            if (found := _row(again[-1])) != rows[-1]:
                raise ValueError(
                    f"made again, its settings {rows[-1]['settings']} are {found['settings']}"
                )
    with _named(network):
        found = {
            "class": class_name(type(network)),
            "input_shape": list(map(int, network.input_shape)),
            "frozen": sorted(network.frozen),
            "layers": rows,
        }
        _network("made again", found, again, arrays, own)
    return found


@contextmanager
def _named(part):
    """Turn any error of a constructor into one that names the layer or network that a model file
    cannot hold.
    """
    try:
        yield
    except Exception as error:
        why = " ".join(str(error).split())[:300]
        raise ParameterError(
            f"{getattr(part, 'name', 'network')}: a model file cannot hold {type(part).__name__}: "
            f"{type(error).__name__}: {why}; give a layer's class a method settings(self) that "
            "returns the constructor's keywords but rng, init, dtype and name: numbers, text, "
            "tuples of them, or arrays of self.constants; the network's class has to be an "
            "nn.Sequential that is made by cls(layers, input_shape, frozen)"
        ) from error


def _classes(network):
    """{name in a file: class} of a network and its layers. Raises ValueError if two classes have
    one name.
    """
    found = {}
    for cls in map(type, (network, *network.layers)):
        if found.setdefault(class_name(cls), cls) is not cls:
            raise ValueError(f"two classes have the name {cls.__name__}")
    return found


def _build(path, found: dict, arrays: dict, own: dict) -> nn.Sequential:
    """Build the network of a description with these arrays. Raises an error if they do not fit."""
    _refuse_too_many(found["layers"])
    layers = [_layer(path, row, arrays, own) for row in found["layers"]]
    return _network(path, found, layers, arrays, own)


def _refuse_too_many(layers):
    """Raise ValueError for so many layers that they would take minutes to construct."""
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
        "class": class_name(type(layer)),
        "name": layer.name,
        "settings": plain,
        "constants": constants,
    }


def _layer(path, row, arrays, own):
    """Construct a layer. The parameters of minidp's own layers take no memory yet."""
    cls, name = _known(path, row["class"], own), row["name"]
    prefix = f"{name}."
    dtype = next(
        (array.dtype for key, array in arrays.items() if key.startswith(prefix)), "float32"
    )
    given = {"rng": np.random.default_rng(0), "init": nn.init.zeros, "dtype": dtype}
    given = {key: value for key, value in given.items() if key in signature(cls).parameters}
    for key, constant in row["constants"].items():
        given[key] = arrays[prefix + constant]
    with nn.init.shapes_only(minidp_class(class_name(cls)) is cls):
        layer = cls(**given, **{key: _tuples(value) for key, value in row["settings"].items()})
    if not isinstance(layer, nn.Layer) or not isinstance(name, str) or not name.isprintable():
        raise TypeError(f"{name!r:.80} is no nn.Layer with a name that is printable text")
    layer.name = name
    return layer


def _network(path, found, layers, arrays, own):
    """A network of these layers with these arrays."""
    network = _known(path, found["class"], own)(layers, found["input_shape"], found["frozen"])
    refuse_misfits(path, arrays, network.state())
    for layer in layers:
        for store in (layer.params, layer.constants):
            for key in store:
                store[key] = arrays[f"{layer.name}.{key}"]
    return network


def _known(path, name, own):
    """A class by its name in a file: one of minidp, or of {name: class} `own`. Raises
    CheckpointError.
    """
    cls = minidp_class(name) or own.get(name)
    if cls is None:
        raise CheckpointError(
            f"{path}: the class {name!r:.80} is none of minidp's layers; pass yours to load_model "
            "as layers={class name: class}"
        )
    return cls


def _tuples(value):
    """Turn JSON's lists into tuples, which constructors expect for shapes."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
