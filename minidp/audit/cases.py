"""One row for each layer and loss; the checks of their equations and the shared tests of tests/nn
run over all rows.
"""

from dataclasses import dataclass
from inspect import signature

import numpy as np

from .. import nn


@dataclass(frozen=True)
class LayerCase:
    """make(rng, dtype) gives a layer for inputs of `shape`.

    wrong_shape: of an example, which the layer has to refuse; None if it takes any. largest: of
    the inputs that it is tried at.
    """

    name: str
    make: object
    shape: tuple
    wrong_shape: tuple | None = None
    largest: float = 1

    def input(self, rng, batch, dtype="float64"):
        """x (batch, *shape)."""
        return rng.uniform(-self.largest, self.largest, (batch, *self.shape)).astype(dtype)


def _drawn(layer, rng):
    """The layer with parameters drawn anew."""
    for array in layer.params.values():
        array[...] = rng.uniform(-1.5, 1.5, array.shape)
    return layer


def _case(name, cls, args, shape, wrong_shape=None, largest=1, **settings):
    """A row; the layer's parameters are drawn anew, biases and scales included."""

    def make(rng, dtype):
        given = {"rng": rng, "dtype": dtype, "name": cls.kind}
        named = {key: given[key] for key in given if key in signature(cls).parameters}
        layer = cls(*args, **settings, **named)
        return _drawn(layer, rng)

    return LayerCase(name, make, shape, wrong_shape, largest)


def _standardise(rng, dtype):
    mean, scale = rng.uniform(-1, 1, (3,)), rng.uniform(0.5, 2, (2, 1))
    return nn.Standardise(mean.astype(dtype), scale.astype(dtype))


def _project(rng, dtype):
    return nn.Project(rng.uniform(-1, 1, (4, 2)).astype(dtype))


def _residual(rng, dtype):
    given = {"rng": rng, "dtype": dtype}
    inner = nn.Residual([nn.Dense(3, 3, **given)])
    return _drawn(nn.Residual([nn.LayerNorm(3, dtype=dtype), inner, nn.Tanh()]), rng)


def _tied(rng, dtype):
    given = {"rng": rng, "dtype": dtype}
    return _drawn(nn.Tied([nn.Embedding(4, 3, **given), nn.Dense(3, 3, **given), nn.Tanh()]), rng)


IMAGE = (4, 5, 2)
LAYERS = [
    _case("dense", nn.Dense, (4, 3), (4,), (5,)),
    _case("dense over positions", nn.Dense, (4, 3), (2, 4), (2, 3, 4)),
    _case("embedding", nn.Embedding, (4, 3), (3,), (3, 2), largest=5),
    _case("lstm", nn.LSTM, (2, 2), (3, 2), (3, 3)),
    _case("last state of an lstm", nn.LSTM, (1, 2), (2, 1), (1,), states="last"),
    _case("causal attention", nn.CausalAttention, (4, 2), (3, 4), (3, 3)),
    _case("positions", nn.Positions, (3, 2), (3, 2), (2, 2)),
    LayerCase("residual", _residual, (2, 3), (2, 4)),
    LayerCase("tied", _tied, (3,), (3, 2), 5),
    _case("dense without bias", nn.Dense, (4, 3), (4,), (2, 2), bias=False),
    _case("relu", nn.ReLU, (), (2, 3)),
    _case("clamp", nn.Clamp, (), (2, 3), limit=0.5),
    _case("tanh", nn.Tanh, (), (2, 3)),
    _case("sigmoid", nn.Sigmoid, (), (2, 3)),
    _case("softmax", nn.Softmax, (), (2, 3)),
    _case("flatten", nn.Flatten, (), (2, 3, 2)),
    LayerCase("standardise", _standardise, (2, 3), (3, 2)),
    LayerCase("project", _project, (4,), (5,)),
    _case("conv padding (1, 0)", nn.Conv2D, (2, 3, 2), (3, 4, 2), (3, 4, 1), padding=(1, 0)),
    _case("conv", nn.Conv2D, (2, 3, 3), IMAGE, (4, 5, 3)),
    _case("conv stride 2", nn.Conv2D, (2, 3, 4), (5, 6, 2), (4, 2), stride=2),
    _case(
        "conv valid without bias",
        nn.Conv2D,
        (2, 3, (2, 3)),
        IMAGE,
        (4, 2, 2),
        bias=False,
        padding="valid",
    ),
    _case("conv padding 1", nn.Conv2D, (2, 3, 2), (5, 5, 2), (5, 5, 1), stride=3, padding=1),
    _case("max pool padding 1", nn.MaxPool2D, (), IMAGE, (4, 5), window=3, stride=2, padding=1),
    _case("max pool", nn.MaxPool2D, (), IMAGE, (1, 5, 2), window=2),
    _case(
        "max pool overlapping", nn.MaxPool2D, (), IMAGE, (4, 5), window=3, stride=2, padding="same"
    ),
    _case("average pool", nn.AvgPool2D, (), IMAGE, (1, 5, 2), window=2),
    _case(
        "average pool overlapping",
        nn.AvgPool2D,
        (),
        IMAGE,
        (4, 5),
        window=3,
        stride=2,
        padding="same",
    ),
    _case("group norm", nn.GroupNorm, (4,), (2, 3, 4), (2, 3, 5), groups=2),
    _case("layer norm", nn.LayerNorm, (4,), (3, 4), (4, 3)),
    _case("layer norm of two axes", nn.LayerNorm, ((2, 3),), (2, 2, 3), (3,)),
    _case("unit norm", nn.UnitNorm, (), (2, 3)),
    _case("dropout in evaluation", nn.Dropout, (), (2, 3), rate=0.5),
]


@dataclass(frozen=True)
class LossCase:
    """A loss, and target(rng, batch, shape of one example's z)."""

    name: str
    loss: object
    target: object
    shape: tuple = (4,)


LOSSES = [
    LossCase(
        "cross-entropy",
        nn.SoftmaxCrossEntropy(),
        lambda rng, batch, shape: rng.integers(0, shape[-1], batch),
    ),
    LossCase(
        "cross-entropy of sequences",
        nn.SequenceCrossEntropy(),
        lambda rng, batch, shape: np.resize(
            rng.permutation(np.arange(-1, shape[-1] + 1)), (batch, shape[0])
        ),
        (2, 4),
    ),
    LossCase(
        "squared error",
        nn.SquaredError(),
        lambda rng, batch, shape: rng.uniform(-1, 1, (batch, *shape)),
    ),
]


def to_backend(layer, backend):
    """The layer with its arrays on a backend."""
    for store in (layer.params, layer.constants):
        for name, array in store.items():
            store[name] = backend.asarray(array)
    return layer
