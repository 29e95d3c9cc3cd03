"""A model file that knows itself: the network's layers, its parameters, and what its outputs stand
for; no pickle.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import nn
from ..backend import namespace_of, to_host
from ..data.arrays import as_target_bounds
from ..errors import CheckpointError, DtypeError, ParameterError, ShapeError
from ..util.atomic import StrPath
from ..util.validate import shown
from .architecture import build, describe, one_line
from .checkpoint import open_arrays, restore, save_arrays

BATCH_BYTES, MOST_ROWS = 2**26, 4096


class Model:
    """A network with what its outputs stand for: classes, or targets within public bounds.

    network        nn.Sequential
    classes        (K,) labels, numbers or text, of the network's K logits
    target_bounds  (low, high) of a regression, whose network gives (B, 1) in units where low is -1
                   and high is 1
    about          a dictionary of facts on how it was made
    ledger_sha256  of the ledger that its training was charged to, None if unknown

    Without classes and bounds `predict` gives the network's outputs as they are.

    Raises
        ParameterError   classes or bounds do not fit the network; both are given
    """

    def __init__(
        self,
        network: nn.Sequential,
        classes: ArrayLike | None = None,
        target_bounds: tuple[float, float] | None = None,
        about: dict[str, Any] | None = None,
        ledger_sha256: str | None = None,
    ):
        if classes is not None and target_bounds is not None:
            raise ParameterError("expected classes or target_bounds, got both")
        self.network, self.about, self.ledger_sha256 = network, about or {}, ledger_sha256
        self.classes = None if classes is None else _labels(classes, network.output_shape)
        self.target_bounds: tuple[float, float] | None = None
        if target_bounds is not None:
            self.target_bounds = as_target_bounds(target_bounds)
            if network.output_shape != (1,):
                raise ParameterError(
                    f"target_bounds: expected one output, got a network with {network.output_shape}"
                )

    def predict(self, x: Any) -> NDArray:
        """(B,) labels, or targets within the bounds, of x (B, *input_shape): numbers of any kind,
        in memory or not.

        Rows that are not finite give what their arithmetic gives. Raises ShapeError and DtypeError.
        """
        z = self._outputs(x)
        if self.classes is not None:
            return self.classes[z.argmax(axis=1)]
        if self.target_bounds is None:
            return z
        low, high = self.target_bounds
        return np.clip(low + (z[:, 0] + 1) / 2 * (high - low), low, high)

    def predict_proba(self, x: Any) -> NDArray[np.float64]:
        """(B, K) float64: the softmax of the logits, in the order of `classes`, without which
        ParameterError.
        """
        if self.classes is None:
            raise ParameterError(
                "predict_proba: expected a model with classes; this one gives numbers: call predict"
            )
        z = self._outputs(x)
        with np.errstate(all="ignore"):
            y = np.exp(z - z.max(axis=1, keepdims=True))
            return y / y.sum(axis=1, keepdims=True)

    def _outputs(self, x):
        """(B, *output_shape) float64 on the host; x is converted to the network's dtype batch by
        batch.
        """
        wanted = self.network.input_shape
        takes = f"this model takes x of shape ({', '.join(map(str, ('B', *wanted)))})"
        learned = self.about.get("columns")
        if hasattr(x, "columns") and isinstance(learned, list):
            names = list(map(str, x.columns))
            if missing := [name for name in learned if name not in names]:
                raise ShapeError(
                    f"this model takes a table with the columns {learned}; missing: {missing}"
                )
            x = x.to_numpy()[:, [names.index(name) for name in learned]]
        try:
            x = x if hasattr(x, "dtype") or hasattr(x, "xp") else np.asarray(x)  # a list, a table
        except ValueError as error:
            raise ShapeError(f"{takes}, got rows of different lengths") from error
        shape = tuple(x.shape)
        if len(shape) != len(wanted) + 1 or shape[1:] != wanted:
            raise ShapeError(
                f"{takes}, got {shape}{'; give one example as x[None]' if shape == wanted else ''}"
            )
        arrays = list(self.network.state().values()) or [np.zeros(0, "float32")]
        xp, dtype = namespace_of(*arrays), arrays[0].dtype
        rows = min(
            max(BATCH_BYTES // (dtype.itemsize * max(self.network.example_numbers, 1)), 1),
            MOST_ROWS,
        )
        z = np.empty((shape[0], *self.network.output_shape))
        with np.errstate(all="ignore"):
            for start in range(0, shape[0], rows):
                part = x[start : start + rows]
                part = to_host(part) if xp is np else xp.asarray(part)
                if part.dtype.kind not in "biuf":
                    raise DtypeError(f"this model takes x of numbers, got dtype {part.dtype}")
                z[start : start + rows] = to_host(
                    self.network.forward(part.astype(dtype, copy=False))[0]
                )
        return z

    def __repr__(self):
        gives, network = f"outputs {self.network.output_shape}", self.network
        if self.classes is not None:
            some = (
                [*self.classes[:3], "...", self.classes[-1]]
                if len(self.classes) > 5
                else self.classes
            )
            gives = f"{len(self.classes)} classes ({', '.join(map(str, some))})"
        elif self.target_bounds is not None:
            gives = "numbers from {:g} to {:g}".format(*self.target_bounds)
        return (
            f"<Model: x ({', '.join(map(str, ('B', *network.input_shape)))}) to {gives}; "
            f"{', '.join(layer.name for layer in network.layers)}; "
            f"{sum(array.size for array in network.state().values()):,} parameters>"
        )


def save_model(
    path: StrPath,
    network: nn.Sequential,
    about: dict[str, Any] | None = None,
    classes: ArrayLike | None = None,
    target_bounds: tuple[float, float] | None = None,
    ledger_sha256: str | None = None,
) -> None:
    """Write a network that `load_model` reads without being told its layers; the arguments are
    those of `Model`.

    Raises ParameterError, naming the layer and what to add to its class, where a layer cannot be
    written.
    """
    model = Model(network, classes, target_bounds, about, ledger_sha256)
    save_arrays(
        path,
        network.state(),
        {
            "kind": "model",
            "about": model.about,
            "ledger_sha256": ledger_sha256,
            "target_bounds": model.target_bounds,
            "classes": None if model.classes is None else model.classes.tolist(),
            "architecture": describe(network),
        },
    )


def load_model(path: StrPath, layers: dict[str, type[nn.Layer]] | None = None) -> Model:
    """The Model in a file that `save_model` or a run wrote; layers: {class name: class} of the
    layers of one's own.

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
    CheckpointError, one line, for whatever else the file holds.
    """
    try:
        with open_arrays(path, "model") as (stored, header):
            network = build(path, header["architecture"], stored, layers or {})
        about, digest = header.get("about"), header.get("ledger_sha256")
        if not isinstance(about, dict) or not isinstance(digest, (str, type(None))):
            raise TypeError("about or ledger_sha256 is of another type")
        return Model(network, header.get("classes"), header.get("target_bounds"), about, digest)
    except CheckpointError:
        raise
    except Exception as error:  # what a crafted header makes of the constructors is without end
        raise CheckpointError(
            f"{path}: damaged, or of another version ({one_line(error)})"
        ) from error


def load_weights(path: StrPath, network: nn.Sequential) -> dict[str, Any]:
    """Read the parameters of a model file into a network of the same layers; returns `about`.

    Raises CheckpointError for an array that is missing, extra, of another shape or of more
    precision.
    """
    with open_arrays(path, "model") as (stored, header):
        restore(path, stored, network.state())
    return header.get("about") or {}


def as_model(network: nn.Sequential | Model, loss: object) -> Model:
    """A Model as it is; of a network trained with SoftmaxCrossEntropy one whose classes are 0, 1,
    ..., K-1.
    """
    if isinstance(network, Model):
        return network
    classified = isinstance(loss, nn.SoftmaxCrossEntropy) and len(network.output_shape) == 1
    return Model(network, np.arange(network.output_shape[0]) if classified else None)


def _labels(classes, output_shape):
    """The classes as an array. Raises ParameterError unless they are K different numbers or texts
    for K logits.
    """
    try:
        given = np.asarray(classes).tolist() if hasattr(classes, "dtype") else list(classes)
        found = (
            classes if getattr(classes, "dtype", np.dtype(object)).kind != "O" else np.array(given)
        )
        for each in given:
            str(each).encode()  # the statement and the predictions are files of UTF-8
        fits = (
            found.ndim == 1
            and found.dtype.kind in "biufU"
            and found.tolist() == given
            and len(set(given)) == len(given)
            and (found.dtype.kind != "f" or np.isfinite(found).all())
        )
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise ParameterError(
            f"expected classes={shown(classes)} to be different numbers, or texts that UTF-8 can "
            "hold, all of one kind"
        )
    if output_shape != found.shape:
        raise ParameterError(
            f"expected one class for each of the outputs, of shape {output_shape}, got {len(given)}"
        )
    return found
