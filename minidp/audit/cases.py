"""One row for each layer and loss; the checks of their equations and the shared tests of tests/nn run over all rows."""
from dataclasses import dataclass

from .. import nn
from ..backend import to_host
from . import reference


@dataclass(frozen=True)
class LayerCase:
    """make(rng, dtype) gives a layer for inputs of `shape`; `reference(x, params)` is its slow forward.

    analytic: the forward pass takes complex numbers, so that the complex step applies.
    wrong_shape: of an example, which the layer has to refuse; None if it takes any.
    """

    name: str
    make: object
    shape: tuple
    reference: object
    analytic: bool = True
    wrong_shape: tuple = None

    def input(self, rng, batch, dtype="float64"):
        """x (batch, *shape)."""
        return rng.uniform(-1, 1, (batch, *self.shape)).astype(dtype)


def _filled(build):
    """A make whose layer's parameters are drawn anew, biases and scales included."""
    def make(rng, dtype):
        layer = build(rng, dtype)
        for array in layer.params.values():
            array[...] = rng.uniform(-1.5, 1.5, array.shape)
        return layer

    return make


def _dense(bias):
    return _filled(lambda rng, dtype: nn.Dense(4, 3, rng=rng, bias=bias, dtype=dtype, name="dense"))


def _plain(cls):
    return lambda rng, dtype: cls(name=cls.kind)


def _standardise(rng, dtype):
    return nn.Standardise(rng.uniform(-1, 1, (3,)).astype(dtype), rng.uniform(0.5, 2, (2, 1)).astype(dtype))


def _conv(kernel, **options):
    return _filled(lambda rng, dtype: nn.Conv2D(2, 3, kernel, rng=rng, dtype=dtype, name="conv", **options))


def _norm(cls, *shape):
    return _filled(lambda rng, dtype: cls(*shape, dtype=dtype, name=cls.kind))


def _mean(values):
    return sum(values) / len(values)


LAYERS = [
    LayerCase("dense", _dense(True), (4,), reference.dense, wrong_shape=(5,)),
    LayerCase("dense without bias", _dense(False), (4,), reference.dense, wrong_shape=(2, 2)),
    LayerCase("relu", _plain(nn.ReLU), (2, 3), reference.relu),
    LayerCase("tanh", _plain(nn.Tanh), (2, 3), reference.tanh),
    LayerCase("sigmoid", _plain(nn.Sigmoid), (2, 3), reference.sigmoid),
    LayerCase("softmax", _plain(nn.Softmax), (2, 3), reference.softmax),
    LayerCase("flatten", _plain(nn.Flatten), (2, 3, 2), reference.flatten),
    LayerCase("standardise", _standardise, (2, 3), reference.standardise, wrong_shape=(3, 2)),
    LayerCase("project", lambda rng, dtype: nn.Project(rng.uniform(-1, 1, (4, 2)).astype(dtype)), (4,),
              reference.project, wrong_shape=(5,)),
    LayerCase("conv", _conv(3), (4, 5, 2), reference.conv2d(1, "same"), wrong_shape=(4, 5, 3)),
    LayerCase("conv stride 2", _conv(4, stride=2), (5, 6, 2), reference.conv2d(2, "same"), wrong_shape=(4, 2)),
    LayerCase("conv even kernel", _conv(2), (3, 4, 2), reference.conv2d(1, "same"), wrong_shape=(3, 4, 1)),
    LayerCase("conv valid without bias", _conv((2, 3), bias=False, padding="valid"), (4, 5, 2),
              reference.conv2d(1, "valid"), wrong_shape=(4, 2, 2)),
    LayerCase("conv padding 1", _conv(2, stride=3, padding=1), (5, 5, 2), reference.conv2d(3, 1),
              wrong_shape=(5, 5, 1)),
    LayerCase("max pool", lambda rng, dtype: nn.MaxPool2D(2), (4, 5, 2), reference.pool2d(max, 2, 2, "valid"),
              analytic=False, wrong_shape=(1, 5, 2)),
    LayerCase("max pool overlapping", lambda rng, dtype: nn.MaxPool2D(3, 2, "same"), (4, 5, 2),
              reference.pool2d(max, 3, 2, "same"), analytic=False, wrong_shape=(4, 5)),
    LayerCase("average pool", lambda rng, dtype: nn.AvgPool2D(2), (4, 5, 2),
              reference.pool2d(_mean, 2, 2, "valid"), wrong_shape=(1, 5, 2)),
    LayerCase("average pool overlapping", lambda rng, dtype: nn.AvgPool2D(3, 2, "same"), (4, 5, 2),
              reference.pool2d(_mean, 3, 2, "same"), wrong_shape=(4, 5)),
    LayerCase("group norm", _norm(nn.GroupNorm, 4, 2), (2, 3, 4),
              reference.normalised(reference.channel_groups(2)), wrong_shape=(2, 3, 5)),
    LayerCase("layer norm", _norm(nn.LayerNorm, 4), (3, 4), reference.normalised(reference.last_axes(1)),
              wrong_shape=(4, 3)),
    LayerCase("layer norm of two axes", _norm(nn.LayerNorm, (2, 3)), (2, 2, 3),
              reference.normalised(reference.last_axes(2)), wrong_shape=(3,)),
    LayerCase("dropout in evaluation", lambda rng, dtype: nn.Dropout(0.5), (2, 3), reference.identity),
]


@dataclass(frozen=True)
class LossCase:
    """loss, its slow forward, and target(rng, batch, classes)."""

    name: str
    loss: object
    reference: object
    target: object


LOSSES = [
    LossCase("cross-entropy", nn.SoftmaxCrossEntropy(), reference.cross_entropy,
             lambda rng, batch, classes: rng.integers(0, classes, batch)),
    LossCase("squared error", nn.SquaredError(), reference.squared_error,
             lambda rng, batch, classes: rng.uniform(-1, 1, (batch, classes))),
]


def to_backend(layer, backend):
    """The layer with its arrays on a backend."""
    for store in (layer.params, layer.constants):
        for name, array in store.items():
            store[name] = backend.asarray(array)
    return layer


def everything(layer):
    """All arrays of a layer on the host, for its reference."""
    return {name: to_host(array).copy() for name, array in {**layer.params, **layer.constants}.items()}
