"""A model: a network with the meaning of its inputs and outputs. Runs release models; models
predict.
"""

import warnings
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import nn
from ..backend import namespace_of, to_host
from ..data.labels import as_target_bounds
from ..data.schema import Schema
from ..data.tables import numbers_of, table_of
from ..errors import DtypeError, ParameterError, RowsError, ShapeError
from ..util.atomic import StrPath
from ..util.text import listed
from ..util.validate import shown

BATCH_BYTES, MOST_ROWS = 2**26, 4096


class Model:
    """A network with the meaning of its outputs: classes, or targets within public bounds.

    network        nn.Sequential
    classes        (K,) labels, numbers or text, of the network's K logits
    target_bounds  (low, high) of a regression; its network gives (B, 1), where -1 means low and 1
                   means high
    about          a dictionary of facts on how the model was made; "schema" is the JSON of the
                   schema that encodes tables for the model
    ledger_sha256  hash of the ledger that training was charged to, None if unknown
    image_shape    shape of the training images, whose pixels were divided by 255; None for other
                   training data

    Without classes and bounds `predict` returns the network's outputs. A model with an image_shape
    takes images of that shape, or their pixels in the network's input shape. Pixels are integers
    from 0 to 255, or other numbers from 0 to 1.

    Raises
        ParameterError   classes, bounds or image_shape do not fit the network; both classes and
                         bounds are given
    """

    def __init__(
        self,
        network: nn.Sequential,
        classes: ArrayLike | None = None,
        target_bounds: tuple[float, float] | None = None,
        about: dict[str, Any] | None = None,
        ledger_sha256: str | None = None,
        image_shape: tuple[int, ...] | None = None,
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
        schema = self.about.get("schema")
        self.schema = None if schema is None else Schema.of(dict(schema))
        self.image_shape = None if image_shape is None else tuple(image_shape)
        if self.image_shape is not None:
            if prod(self.image_shape) != prod(network.input_shape):
                raise ParameterError(
                    f"image_shape={self.image_shape}: expected as many pixels as the network's "
                    f"input of shape {network.input_shape} has numbers"
                )

    def predict(self, x: Any) -> NDArray:
        """(B,) labels, or targets within the bounds, for x (B, *input_shape): numbers of any kind,
        in memory or in a file.

        Warns if rows hold a number that is not finite; their label is None, their target NaN. Also
        warns of columns of a table in which most values do not fit the schema. Raises ShapeError
        and DtypeError, and RowsError for pixels outside their range.
        """
        z = self.outputs(x)
        if self.classes is not None:
            found, refused = self.classes[z.argmax(axis=1)], np.isnan(z).any(axis=1)
            if refused.any():
                found = found.astype(object)
                found[refused] = None
            return found
        if self.target_bounds is None:
            return z
        low, high = self.target_bounds
        return np.clip(low + (z[:, 0] + 1) / 2 * (high - low), low, high)

    def predict_proba(self, x: Any) -> NDArray[np.float64]:
        """(B, K) float64: the softmax of the logits, in the order of `classes`. Raises
        ParameterError for a model without classes.
        """
        if self.classes is None:
            raise ParameterError(
                "predict_proba: expected a model with classes; this one gives numbers: call "
                "predict, or, if they are the logits of classes, make "
                "Model(model.network, classes=[...])"
            )
        z = self.outputs(x)
        with np.errstate(all="ignore"):
            y = np.exp(z - z.max(axis=1, keepdims=True))
            return y / y.sum(axis=1, keepdims=True)

    def export(self, path: StrPath) -> None:
        """Write the model as an ONNX file, which many programs can run (`run.export`). Needs the
        extra `onnx`.
        """
        from .export import export  # imported here because it needs the extra

        export(self, path)

    def outputs(self, x: Any) -> NDArray[np.float64]:
        """(B, *output_shape) the network's outputs: logits of classes, or for a regression a number
        that is -1 at the lower bound and 1 at the upper. Warns and raises as `predict` does.
        """
        x = self._rows(x)
        arrays = list(self.network.state().values()) or [np.zeros(0, "float32")]
        xp, dtype, total = namespace_of(*arrays), arrays[0].dtype, x.shape[0]
        if xp is np and len(self.network.input_shape) == 1:
            # so that a row's digits do not depend on its place among others
            dtype = np.dtype("float64")
        rows = min(
            max(BATCH_BYTES // (dtype.itemsize * max(self.network.example_numbers, 1)), 1),
            MOST_ROWS,
        )
        z, odd, lost = np.empty((total, *self.network.output_shape)), 0, 0
        with np.errstate(all="ignore"):
            for start in range(0, total, rows):
                part = x[start : start + rows]
                part = self._converted(to_host(part) if xp is np else xp.asarray(part), dtype)
                finite = to_host(xp.isfinite(part).all(axis=tuple(range(1, part.ndim))))
                odd += len(finite) - int(finite.sum())
                found = z[start : start + rows] = to_host(self.network.forward(part)[0])
                answered = np.isfinite(found).all(axis=tuple(range(1, found.ndim)))
                lost += int((finite & ~answered).sum())
        if lost:
            warnings.warn(
                f"{lost} of {total} rows of finite numbers get no finite output, because they or "
                "the model's weights are too large: their predictions mean nothing",
                stacklevel=3,
            )
        if odd:
            held = "hold a number that is not finite (NaN, inf)"
            if self.schema is not None:
                held = f"have cells that the schema refuses ({listed(self.schema.refused(x))})"
            warnings.warn(
                f"{odd} of {total} rows {held}: their predictions mean nothing",
                stacklevel=3,
            )
        return z

    def _rows(self, x):
        """x as an array of rows. Raises ShapeError unless rows have the shape of the network's
        inputs or images.
        """
        table = table_of(x)
        x = x if table is None else table
        if self.schema is None:
            x = numbers_of(x, self.about.get("columns"))
        else:
            if fell := self.schema.fell_out(table or {}):
                warnings.warn("; ".join(fell), stacklevel=4)
            x = self.schema.encode(x)
        wanted = self.network.input_shape
        takes = f"this model takes x of shape {_with_batch(wanted)}"
        if self.image_shape is not None:
            takes += f", or images of shape {_with_batch(self.image_shape)}"
        try:
            x = x if hasattr(x, "dtype") or hasattr(x, "xp") else np.asarray(x)  # a list, a table
        except ValueError as error:
            raise ShapeError(f"{takes}, got rows of different lengths") from error
        shape, taken = tuple(x.shape), {wanted, self.image_shape or wanted}
        if not shape or shape[1:] not in taken:
            one = "; give one example as x[None]" if shape in taken else ""
            raise ShapeError(f"{takes}, got {shape}{one}")
        return x

    def _converted(self, part, dtype):
        """A batch in the network's dtype and input shape, pixels scaled to [0, 1]."""
        kind = part.dtype.kind
        if kind not in "biuf":
            raise DtypeError(f"this model takes x of numbers, got dtype {part.dtype}")
        part = part.astype(dtype, copy=False)
        if self.image_shape is None:
            return part
        if kind in "iu":
            part = part / dtype.type(255)
        if to_host((part < 0) | (part > 1)).any():
            raise RowsError(
                "this model takes pixels as integers from 0 to 255, or as other numbers from 0 to "
                "1, and x holds numbers outside that range; if they are pixels from 0 to 255, "
                'give x.astype("uint8")'
            )
        return part.reshape((len(part), *self.network.input_shape))

    def __repr__(self):
        gives, network = f"outputs {self.network.output_shape}", self.network
        if self.classes is not None:
            gives = f"{len(self.classes)} classes ({listed(self.classes)})"
        elif self.target_bounds is not None:
            gives = "numbers from {:g} to {:g}".format(*self.target_bounds)
        images = self.image_shape and f" or images {_with_batch(self.image_shape)}"
        return (
            f"<Model: x {_with_batch(network.input_shape)}{images or ''} to {gives}; "
            f"{', '.join(layer.name for layer in network.layers)}; "
            f"{sum(array.size for array in network.state().values()):,} parameters>"
        )


def as_model(network: nn.Sequential | Model, loss: object, y: Any = None) -> Model:
    """The given Model; or a new Model of a network, which has the classes 0, 1, ..., K-1 if y are
    labels.

    y are labels if they are whole numbers (N,), or if the loss is SoftmaxCrossEntropy. Raises
    ParameterError for labels if the network has a single output.
    """
    if isinstance(network, Model):
        return network
    labels = y is not None and y.ndim == 1 and y.dtype.kind in "biu"
    labels = labels or isinstance(loss, nn.SoftmaxCrossEntropy)
    if not labels or len(network.output_shape) != 1:
        return Model(network)
    if network.output_shape == (1,):
        raise ParameterError(
            "y: expected as many outputs of the network as there are classes, got labels (whole "
            "numbers) and one output: end with Dense(..., K), give targets as floating point "
            "numbers, or, if the output means something else, Run.train(..., model=Model(network))"
        )
    return Model(network, np.arange(network.output_shape[0]))


def _with_batch(shape):
    """The shape with B before it, as text: (B, 28, 28) for (28, 28)."""
    return f"({', '.join(map(str, ('B', *shape)))})"


def _labels(classes, output_shape):
    """The classes as an array. Raises ParameterError unless they are K different numbers or texts
    for K logits.
    """
    try:
        given = np.asarray(classes, object).tolist()
        found = np.array(given)
        "".join(map(str, given)).encode()  # statement and predictions are UTF-8 files
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
