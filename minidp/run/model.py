"""A model file that knows itself: the network's layers, its parameters, and what its outputs stand for; no pickle."""
import json
from inspect import signature
from math import isfinite, prod

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..backend import namespace_of, to_host
from ..errors import CheckpointError, DtypeError, ParameterError, ShapeError
from ..files import jsonable
from ..validate import count
from .checkpoint import load_arrays, refuse_misfits, restore, save_arrays

LAYERS = {f"nn.{name}": found for name in nn.__all__ if name != "Layer"
          and isinstance(found := getattr(nn, name), type) and issubclass(found, nn.Layer)}
MOST_NUMBERS = 2**31  # of one example in all layers
BATCH_BYTES, MOST_ROWS = 2**26, 4096


class Model:
    """A network with what its outputs stand for: classes, or targets within public bounds.

    network        nn.Sequential
    classes        (K,) labels, numbers or text, of the network's K logits
    target_bounds  (low, high) of a regression, whose network gives (B, 1) in units where low is -1 and high is 1
    about          a dictionary of facts on how it was made
    ledger_sha256  of the ledger that its training was charged to, None if unknown

    Without classes and bounds `predict` gives the network's outputs as they are.

    Raises
        ParameterError   classes or bounds do not fit the network; both are given
    """

    def __init__(self, network: nn.Sequential, classes=None, target_bounds=None, about: dict | None = None,
                 ledger_sha256: str | None = None):
        if classes is not None and target_bounds is not None:
            raise ParameterError("expected classes or target_bounds, got both")
        self.network, self.about, self.ledger_sha256 = network, about or {}, ledger_sha256
        self.classes = None if classes is None else _labels(classes, network.output_shape)
        self.target_bounds = None if target_bounds is None else _bounds(target_bounds, network.output_shape)

    def predict(self, x) -> NDArray:
        """(B,) labels, or targets within the bounds, of x (B, *input_shape): numbers of any kind, in memory or not.

        Rows that are not finite give what their arithmetic gives. Raises ShapeError and DtypeError.
        """
        z = self._outputs(x)
        if self.classes is not None:
            return self.classes[z.argmax(axis=1)]
        if self.target_bounds is None:
            return z
        low, high = self.target_bounds
        return np.clip(low + (z[:, 0] + 1) / 2 * (high - low), low, high)

    def predict_proba(self, x) -> NDArray:
        """(B, K) float64: the softmax of the logits, in the order of `classes`. Raises ParameterError of a regression."""
        if self.classes is None:
            raise ParameterError("predict_proba: expected a model with classes; this one gives numbers: call predict")
        z = self._outputs(x)
        with np.errstate(all="ignore"):
            y = np.exp(z - z.max(axis=1, keepdims=True))
            return y / y.sum(axis=1, keepdims=True)

    def _outputs(self, x):
        """(B, *output_shape) float64 on the host; x is converted to the network's dtype batch by batch."""
        if not (hasattr(x, "dtype") or hasattr(x, "xp")):  # a list, a table; not an array, nor data.Examples
            try:
                x = np.asarray(x)
            except ValueError as error:
                raise ShapeError(f"{self._takes}, got rows of different lengths") from error
        shape, wanted = tuple(x.shape), self.network.input_shape
        if len(shape) != len(wanted) + 1 or shape[1:] != wanted:
            raise ShapeError(f"{self._takes}, got {shape}{'; give one example as x[None]' if shape == wanted else ''}")
        arrays = [*self.network.params.values(), *self.network.state().values()]
        xp, dtype = (namespace_of(*arrays), arrays[0].dtype) if arrays else (np, np.dtype("float32"))
        rows = min(max(BATCH_BYTES // (dtype.itemsize * max(self.network.example_numbers, 1)), 1), MOST_ROWS)
        z = np.empty((shape[0], *self.network.output_shape))
        with np.errstate(all="ignore"):
            for start in range(0, shape[0], rows):
                part = x[start : start + rows]
                part = to_host(part) if xp is np else xp.asarray(part)
                if part.dtype.kind not in "biuf":
                    raise DtypeError(f"this model takes x of numbers, got dtype {part.dtype}")
                z[start : start + rows] = to_host(self.network.forward(part.astype(dtype, copy=False))[0])
        return z

    @property
    def _takes(self):
        return f"this model takes x of shape ({', '.join(map(str, ('B', *self.network.input_shape)))})"

    def __repr__(self):
        gives = f"outputs {self.network.output_shape}"
        if self.classes is not None:
            some = [*self.classes[:3], "...", self.classes[-1]] if len(self.classes) > 5 else self.classes
            gives = f"{len(self.classes)} classes ({', '.join(map(str, some))})"
        elif self.target_bounds is not None:
            gives = "numbers from {:g} to {:g}".format(*self.target_bounds)
        layers = ", ".join(layer.name for layer in self.network.layers)
        size = sum(array.size for array in self.network.state().values())
        return f"<Model: x (B, {', '.join(map(str, self.network.input_shape))}) to {gives}; {layers}; {size:,} parameters>"


def save_model(path, network: nn.Sequential, about: dict | None = None, classes=None, target_bounds=None,
               ledger_sha256: str | None = None) -> None:
    """Write a network that `load_model` reads without being told its layers; the arguments are those of `Model`.

    Raises ParameterError, naming the layer and what to add to its class, where a layer cannot be written.
    """
    model = Model(network, classes, target_bounds, about, ledger_sha256)
    save_arrays(path, network.state(), {
        "kind": "model", "about": jsonable(model.about), "ledger_sha256": ledger_sha256, "target_bounds": model.target_bounds,
        "classes": None if classes is None else model.classes.tolist(), "architecture": describe(network)})


def load_model(path, layers: dict | None = None) -> Model:
    """The Model in a file that `save_model` or a run wrote; layers: {class name: class} of the layers of one's own.

    >>> import tempfile
    >>> network = nn.Sequential([nn.Dense(4, 2, rng=np.random.default_rng(0)), nn.Tanh()], (4,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(f"{folder}/model.npz", network, classes=["no", "yes"])
    ...     model = load_model(f"{folder}/model.npz")
    >>> model
    <Model: x (B, 4) to 2 classes (no, yes); dense1, tanh1; 10 parameters>
    >>> model.predict([[-1, 0, 0, 0], [1, 0, 0, 0]])
    array(['yes', 'no'], dtype='<U3')

    Only constructors of `minidp.nn` and of `layers` are called; nothing is unpickled. Raises CheckpointError, one line,
    for whatever else the file holds.
    """
    arrays, header = load_arrays(path, "model")
    if "architecture" not in header:
        raise CheckpointError(f"{path}: parameters without an architecture, as an earlier version wrote them; make the "
                              "network and call minidp.run.load_weights(path, network)")
    try:
        network = _built(path, header["architecture"], arrays, layers or {})
        about, digest = header.get("about"), header.get("ledger_sha256")
        if not isinstance(about, dict) or not isinstance(digest, (str, type(None))):
            raise TypeError("about or ledger_sha256 is of another type")
        return Model(network, header.get("classes"), header.get("target_bounds"), about, digest)
    except CheckpointError:
        raise
    except Exception as error:  # what a crafted header makes of the constructors is without end
        raise CheckpointError(f"{path}: damaged, or of another version ({_line(error)})") from error


def load_weights(path, network: nn.Sequential) -> dict:
    """Read the parameters of a model file into a network of the same layers; returns `about`.

    Raises CheckpointError for an array that is missing, extra, of another shape or of more precision.
    """
    arrays, header = load_arrays(path, "model")
    restore(path, arrays, network.state())
    return header.get("about") or {}


def as_model(network, loss) -> Model:
    """A Model as it is; of a network trained with SoftmaxCrossEntropy one whose classes are 0, 1, ..., K-1."""
    if isinstance(network, Model):
        return network
    classified = isinstance(loss, nn.SoftmaxCrossEntropy) and len(network.output_shape) == 1
    return Model(network, np.arange(network.output_shape[0]) if classified else None)


def describe(network: nn.Sequential) -> dict:
    """The architecture as JSON values. Raises ParameterError where a layer could not be made again from them."""
    own = {}
    for layer in network.layers:
        if _name(type(layer)) not in LAYERS and own.setdefault(type(layer).__name__, type(layer)) is not type(layer):
            raise ParameterError(f"expected layers of one's own with different names, got two classes {type(layer).__name__}")
    return {"input_shape": list(map(int, network.input_shape)), "frozen": sorted(network.frozen),
            "layers": list(map(_described, network.layers))}


def _described(layer):
    """{class, name, settings, constants: {argument: name of the constant}} of one layer, after making it again."""
    cls, constants = type(layer), {}
    try:
        plain, constants = _settings(layer)
        again = _made(cls, layer.name, plain, {key: to_host(layer.constants[name]) for key, name in constants.items()})
        if _settings(again) != (plain, constants):
            raise ValueError(f"made again with {plain} it has the settings {_settings(again)[0]}")
        refuse_misfits("made again", {**layer.params, **layer.constants}, {**again.params, **again.constants})
    except Exception as error:  # a constructor of somebody's own may raise anything
        raise ParameterError(
            f"{getattr(layer, 'name', layer)}: a model file cannot hold the layer {cls.__name__}: {_line(error)}; give the "
            "class a method settings(self) that returns the constructor's keywords but rng, init, dtype and name: numbers, "
            "text, tuples of them, or arrays of self.constants") from error
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


def _built(path, found, arrays, own):
    """The network that `describe` described, with these arrays; whatever does not fit raises."""
    layers = []
    for row in found["layers"]:
        name, cls = row["name"], LAYERS.get(row["class"], own.get(row["class"]))
        if cls is None:
            raise CheckpointError(f"{path}: {name!r:.80} is a layer of the class {row['class']!r:.80}, which minidp does not "
                                  "have; pass yours as layers={class name: class}")
        given = {key: arrays[f"{name}.{constant}"] for key, constant in row["constants"].items()}
        layers.append(_made(cls, name, row["settings"], given))
    count(**{f"input_shape[{i}]": size for i, size in enumerate(found["input_shape"])})
    network = nn.Sequential(layers, found["input_shape"], found["frozen"])
    if network.example_numbers > MOST_NUMBERS:
        raise ValueError(f"one example takes {network.example_numbers} numbers")
    refuse_misfits(path, arrays, network.state())
    for layer in layers:
        for store in (layer.params, layer.constants):
            store.update({key: arrays[f"{layer.name}.{key}"] for key in store})
    return network


def _made(cls, name, settings, constants):
    """A layer out of its constructor; those of minidp hold no memory for their parameters yet, whatever their size."""
    drawn = {"rng": np.random.default_rng(0), "init": nn.init.zeros}
    drawn = {key: value for key, value in drawn.items() if key in signature(cls).parameters}
    settings = {key: _tuples(value) for key, value in settings.items()}
    with nn.init.shapes_only(_name(cls) in LAYERS):
        layer = cls(**drawn, **settings, **constants)
    if not isinstance(layer, nn.Layer) or not isinstance(name, str) or not name.isprintable():
        raise TypeError(f"{name!r:.80} is no nn.Layer with a name that is printable text")
    layer.name = name
    return layer


def _name(cls):
    """A class's name in a file: nn.NAME if it is minidp's."""
    name = f"nn.{cls.__name__}"
    return name if LAYERS.get(name) is cls else cls.__name__


def _tuples(value):
    """JSON's lists as tuples, which constructors take for shapes."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _line(error):
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _labels(classes, output_shape):
    """The classes as an array. Raises ParameterError unless they are K different numbers or texts for K logits."""
    try:
        given = np.asarray(classes).tolist() if hasattr(classes, "dtype") else list(classes)
        found = classes if getattr(classes, "dtype", np.dtype(object)).kind != "O" else np.array(given)
        fits = (found.ndim == 1 and found.dtype.kind in "biufU" and found.tolist() == given
                and len(set(given)) == len(given) and (found.dtype.kind != "f" or np.isfinite(found).all()))
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise ParameterError(f"expected classes={classes!r:.200} to be different numbers or texts, all of one kind")
    if output_shape != (len(given),):
        raise ParameterError(f"expected {prod(output_shape)} classes for outputs of shape {output_shape}, got {len(given)}")
    return found


def _bounds(bounds, output_shape):
    """(low, high) as floats. Raises ParameterError."""
    try:
        low, high = map(float, bounds)
        fits = low < high and isfinite(high - low) and not any(isinstance(each, (str, bool)) for each in bounds)
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise ParameterError(f"expected target_bounds={bounds!r:.200} to be finite numbers (low, high) with low < high")
    if output_shape != (1,):
        raise ParameterError(f"expected a network with one output for target_bounds, got outputs of shape {output_shape}")
    return low, high
