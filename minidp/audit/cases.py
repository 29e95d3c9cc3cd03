"""One row for each layer and loss; the checks of their equations and the shared tests of tests/nn
run over all rows.
"""

from dataclasses import dataclass
from statistics import fmean

from .. import nn
from ..backend import to_host
from . import reference


@dataclass(frozen=True)
class LayerCase:
    """make(rng, dtype) gives a layer for inputs of `shape`; `reference(x, params)` is its slow
    forward.

    wrong_shape: of an example, which the layer has to refuse; None if it takes any.
    """

    name: str
    make: object
    shape: tuple
    reference: object
    wrong_shape: tuple = None

    def input(self, rng, batch, dtype="float64"):
        """x (batch, *shape)."""
        return rng.uniform(-1, 1, (batch, *self.shape)).astype(dtype)


def _drawn(cls, *args, **options):
    """A make whose layer's parameters are drawn anew, biases and scales included."""

    def make(rng, dtype):
        draws = {"rng": rng} if cls in (nn.Dense, nn.Conv2D) else {}
        layer = cls(*args, **options, **draws, dtype=dtype, name=cls.kind)
        for array in layer.params.values():
            array[...] = rng.uniform(-1.5, 1.5, array.shape)
        return layer

    return make


def _plain(cls, *args):
    return lambda rng, dtype: cls(*args, name=cls.kind)


def _standardise(rng, dtype):
    return nn.Standardise(
        rng.uniform(-1, 1, (3,)).astype(dtype), rng.uniform(0.5, 2, (2, 1)).astype(dtype)
    )


LAYERS = [
    LayerCase(*row)
    for row in (
        ("dense", _drawn(nn.Dense, 4, 3), (4,), reference.dense, (5,)),
        ("dense without bias", _drawn(nn.Dense, 4, 3, bias=False), (4,), reference.dense, (2, 2)),
        ("relu", _plain(nn.ReLU), (2, 3), reference.relu),
        ("clamp", _plain(nn.Clamp, 0.5), (2, 3), reference.clamp),
        ("tanh", _plain(nn.Tanh), (2, 3), reference.tanh),
        ("sigmoid", _plain(nn.Sigmoid), (2, 3), reference.sigmoid),
        ("softmax", _plain(nn.Softmax), (2, 3), reference.softmax),
        ("flatten", _plain(nn.Flatten), (2, 3, 2), reference.flatten),
        ("standardise", _standardise, (2, 3), reference.standardise, (3, 2)),
        (
            "project",
            lambda rng, dtype: nn.Project(rng.uniform(-1, 1, (4, 2)).astype(dtype)),
            (4,),
            reference.project,
            (5,),
        ),
        ("conv", _drawn(nn.Conv2D, 2, 3, 3), (4, 5, 2), reference.conv2d(1, "same"), (4, 5, 3)),
        (
            "conv stride 2",
            _drawn(nn.Conv2D, 2, 3, 4, stride=2),
            (5, 6, 2),
            reference.conv2d(2, "same"),
            (4, 2),
        ),
        (
            "conv even kernel",
            _drawn(nn.Conv2D, 2, 3, 2),
            (3, 4, 2),
            reference.conv2d(1, "same"),
            (3, 4, 1),
        ),
        (
            "conv valid without bias",
            _drawn(nn.Conv2D, 2, 3, (2, 3), bias=False, padding="valid"),
            (4, 5, 2),
            reference.conv2d(1, "valid"),
            (4, 2, 2),
        ),
        (
            "conv padding 1",
            _drawn(nn.Conv2D, 2, 3, 2, stride=3, padding=1),
            (5, 5, 2),
            reference.conv2d(3, 1),
            (5, 5, 1),
        ),
        (
            "conv padding (1, 0)",
            _drawn(nn.Conv2D, 2, 3, 2, padding=(1, 0)),
            (3, 4, 2),
            reference.conv2d(1, (1, 0)),
            (3, 4, 1),
        ),
        (
            "max pool padding 1",
            _plain(nn.MaxPool2D, 3, 2, 1),
            (4, 5, 2),
            reference.pool2d(max, 3, 2, 1),
            (4, 5),
        ),
        (
            "average pool padding (1, 0)",
            _plain(nn.AvgPool2D, 2, 2, (1, 0)),
            (4, 5, 2),
            reference.pool2d(fmean, 2, 2, (1, 0)),
            (4, 5),
        ),
        (
            "max pool",
            _plain(nn.MaxPool2D, 2),
            (4, 5, 2),
            reference.pool2d(max, 2, 2, "valid"),
            (1, 5, 2),
        ),
        (
            "max pool overlapping",
            _plain(nn.MaxPool2D, 3, 2, "same"),
            (4, 5, 2),
            reference.pool2d(max, 3, 2, "same"),
            (4, 5),
        ),
        (
            "average pool",
            _plain(nn.AvgPool2D, 2),
            (4, 5, 2),
            reference.pool2d(fmean, 2, 2, "valid"),
            (1, 5, 2),
        ),
        (
            "average pool overlapping",
            _plain(nn.AvgPool2D, 3, 2, "same"),
            (4, 5, 2),
            reference.pool2d(fmean, 3, 2, "same"),
            (4, 5),
        ),
        (
            "group norm",
            _drawn(nn.GroupNorm, 4, 2),
            (2, 3, 4),
            reference.normalised(reference.channel_groups(2)),
            (2, 3, 5),
        ),
        (
            "layer norm",
            _drawn(nn.LayerNorm, 4),
            (3, 4),
            reference.normalised(reference.last_axes(1)),
            (4, 3),
        ),
        (
            "layer norm of two axes",
            _drawn(nn.LayerNorm, (2, 3)),
            (2, 2, 3),
            reference.normalised(reference.last_axes(2)),
            (3,),
        ),
        ("unit norm", _plain(nn.UnitNorm), (2, 3), reference.unit_norm),
        ("dropout in evaluation", _plain(nn.Dropout, 0.5), (2, 3), reference.identity),
    )
]


@dataclass(frozen=True)
class LossCase:
    """loss, its slow forward, and target(rng, batch, classes)."""

    name: str
    loss: object
    reference: object
    target: object


LOSSES = [
    LossCase(
        "cross-entropy",
        nn.SoftmaxCrossEntropy(),
        reference.cross_entropy,
        lambda rng, batch, classes: rng.integers(0, classes, batch),
    ),
    LossCase(
        "squared error",
        nn.SquaredError(),
        reference.squared_error,
        lambda rng, batch, classes: rng.uniform(-1, 1, (batch, classes)),
    ),
]


def to_backend(layer, backend):
    """The layer with its arrays on a backend."""
    for store in (layer.params, layer.constants):
        for name, array in store.items():
            store[name] = backend.asarray(array)
    return layer


def everything(layer):
    """All arrays of a layer on the host, for its reference."""
    return {
        name: to_host(array).copy() for name, array in {**layer.params, **layer.constants}.items()
    }
