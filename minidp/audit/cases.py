"""A table of cases for layers and losses; the checks of their equations and the tests of tests/nn
run over all rows of the table.
"""

from dataclasses import dataclass
from functools import partial
from inspect import signature

import numpy as np

from .. import nn
from .trial import COMPLEX_STEP, LayerTrial, LossTrial


@dataclass(frozen=True)
class LayerCase:
    """A layer for inputs of `shape`.

    of: its class, or a function; it is given rng and dtype if it takes them. wrong_shape: of an
    example, which the layer has to refuse; None if it takes any. largest: of the inputs that it is
    tried at.
    """

    name: str
    of: object
    shape: tuple
    wrong_shape: tuple | None = None
    largest: float = 1

    def make(self, rng, dtype):
        """The layer with new random parameters, including biases and scales."""
        given = {"rng": rng, "dtype": dtype}
        taken = given.keys() & signature(self.of).parameters
        layer = self.of(**{key: given[key] for key in taken})
        for array in layer.params.values():
            array[...] = rng.uniform(-1.5, 1.5, array.shape)
        return layer

    def input(self, rng, batch, dtype="float64"):
        """x (batch, *shape)."""
        return rng.uniform(-self.largest, self.largest, (batch, *self.shape)).astype(dtype)

    def trial(self, bench):
        """A trial with two examples, by complex steps."""
        layer = to_backend(self.make(bench.rng, "float64"), bench.backend)
        x = self.input(bench.rng, 2)
        return LayerTrial(layer, x, bench.rng, how=COMPLEX_STEP, asarray=bench.asarray)


def _standardise(rng, dtype):
    mean, scale = rng.uniform(-1, 1, (3,)), rng.uniform(0.5, 2, (2, 1))
    return nn.Standardise(mean.astype(dtype), scale.astype(dtype))


def _pieces(rng, dtype):
    knots = np.sort(rng.uniform(-1, 1, (2, 4)), axis=1)
    return nn.Pieces([2, 0], knots.astype(dtype), 0.5)


def _project(rng, dtype):
    return nn.Project(rng.uniform(-1, 1, (4, 2)).astype(dtype))


IMAGE = (4, 5, 2)
# beside those that classes give
ROWS = [
    LayerCase("dense over positions", partial(nn.Dense, 4, 3), (2, 4), (2, 3, 4)),
    LayerCase("embedding", partial(nn.Embedding, 4, 3), (3,), (3, 2), 5),
    LayerCase("lstm", partial(nn.LSTM, 2, 2), (3, 2), (3, 3)),
    LayerCase("last state of an lstm", partial(nn.LSTM, 1, 2, states="last"), (2, 1), (1,)),
    LayerCase("dense without bias", partial(nn.Dense, 4, 3, bias=False), (4,), (2, 2)),
    LayerCase("standardise", _standardise, (2, 3), (3, 2)),
    LayerCase("project", _project, (4,), (5,)),
    LayerCase("pieces", _pieces, (3,), (2, 3)),
    LayerCase(
        "conv padding (1, 0)", partial(nn.Conv2D, 2, 3, 2, padding=(1, 0)), (3, 4, 2), (3, 4, 1)
    ),
    LayerCase("conv", partial(nn.Conv2D, 2, 3, 3), IMAGE, (4, 5, 3)),
    LayerCase("conv stride 2", partial(nn.Conv2D, 2, 3, 4, stride=2), (5, 6, 2), (4, 2)),
    LayerCase(
        "conv valid without bias",
        partial(nn.Conv2D, 2, 3, (2, 3), bias=False, padding="valid"),
        IMAGE,
        (4, 2, 2),
    ),
    LayerCase(
        "conv padding 1", partial(nn.Conv2D, 2, 3, 2, stride=3, padding=1), (5, 5, 2), (5, 5, 1)
    ),
    LayerCase("max pool padding 1", partial(nn.MaxPool2D, 3, 2, 1), IMAGE, (4, 5)),
    LayerCase("max pool", partial(nn.MaxPool2D, 2), IMAGE, (1, 5, 2)),
    LayerCase("max pool overlapping", partial(nn.MaxPool2D, 3, 2, "same"), IMAGE, (4, 5)),
    LayerCase("average pool", partial(nn.AvgPool2D, 2), IMAGE, (1, 5, 2)),
    LayerCase("average pool overlapping", partial(nn.AvgPool2D, 3, 2, "same"), IMAGE, (4, 5)),
    LayerCase("group norm", partial(nn.GroupNorm, 4, 2), (2, 3, 4), (2, 3, 5)),
    LayerCase("layer norm", partial(nn.LayerNorm, 4), (3, 4), (4, 3)),
    LayerCase("layer norm of two axes", partial(nn.LayerNorm, (2, 3)), (2, 2, 3), (3,)),
    LayerCase("unit norm", nn.UnitNorm, (2, 3)),
    LayerCase("dropout in evaluation", partial(nn.Dropout, 0.5), (2, 3)),
]


def _examples(name):
    """The rows that a class gives by itself, if minidp.nn calls a layer so."""
    cls = getattr(nn, name)
    for arguments, *shapes in getattr(cls, "examples", ()):
        yield LayerCase(cls.kind, partial(cls, *arguments), *shapes)


LAYERS = [*(case for name in nn.__all__ for case in _examples(name)), *ROWS]


@dataclass(frozen=True)
class LossCase:
    """A loss, and target(rng, batch, shape of one example's z)."""

    name: str
    loss: object
    target: object
    shape: tuple = (4,)

    def trial(self, bench):
        """A trial with three examples, by complex steps."""
        z = bench.rng.uniform(-3, 3, (3, *self.shape))
        target = self.target(bench.rng, 3, self.shape)
        return LossTrial(self.loss, z, target, bench.rng, bench.asarray, COMPLEX_STEP)


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
