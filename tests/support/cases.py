"""One row for each layer and loss; the shared tests of tests/nn run over all of them."""
from dataclasses import dataclass

import numpy as np

from minidp import nn
from minidp.audit import reference


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


def _dense(bias):
    def make(rng, dtype):
        layer = nn.Dense(4, 3, rng=rng, bias=bias, dtype=dtype, name="dense")
        if bias:
            layer.params["b"][:] = rng.uniform(-1, 1, 3)
        return layer

    return make


def _plain(cls):
    return lambda rng, dtype: cls(name=cls.kind)


def _standardise(rng, dtype):
    return nn.Standardise(rng.uniform(-1, 1, (3,)).astype(dtype), rng.uniform(0.5, 2, (2, 1)).astype(dtype))


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
    return {name: np.asarray(array) for name, array in {**layer.params, **layer.constants}.items()}
