"""One row for each layer and loss; the checks of their equations and the shared tests of tests/nn
run over all rows.
"""

import math
from dataclasses import dataclass
from inspect import signature
from itertools import product

import numpy as np

from .. import nn
from ..backend import to_host
from .equation import Case


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
        lambda rng, batch, shape: rng.integers(-1, shape[-1] + 1, (batch, shape[0])),
        (3, 4),
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


def computed(layer, x, dy):
    """The Case of what a layer computes from x and dy; dy is a function of the output's shape."""
    y, cache = layer.forward(x)
    dy = dy(y.shape)
    found = {"x": x, "y": y, "dy": dy, "dx": layer.backward(dy, cache), "kept": cache.kept}
    grads = layer.param_grads(dy, cache).items()
    return stated(layer, **found, **{f"d{name}": grad.materialise() for name, grad in grads})


def stated(layer, **arrays):
    """The Case of the equations in a layer's card: its arrays and settings under the names and in
    the shapes that the card has.

    arrays: x and what was computed from it, such as y, dy, dx, and dW of each example.
    """
    kept = arrays.pop("kept", None)
    if isinstance(layer, (nn.GroupNorm, nn.LayerNorm)) and kept:
        arrays["n"] = kept[0]
    given = {**layer.params, **layer.constants, **arrays}
    given = {name: to_host(array) for name, array in given.items()}
    if "W" in given:
        given.setdefault("b", np.zeros(given["W"].shape[-1]))
    settings = vars(layer).items()
    given |= {name: number for name, number in settings if isinstance(number, (int, float))}
    seen = SEEN.get(type(layer))
    given = seen(layer, given) if seen else given
    ranges = {index: range(size) for index, size in given.pop("ranges", {}).items()}
    return Case(given, ranges=ranges)


def _reshaped(given, **shapes):
    return {
        **given,
        **{name: given[name].reshape(shape) for name, shape in shapes.items() if name in given},
    }


def windows(size, stride, padding, image):
    """For each window over an image (height, width), what it sees in reading order: (row, column)
    of each place, -1 where that is outside.
    """
    axes = []
    for axis, n in enumerate(image):
        k, step = size[axis], stride[axis]
        before = padding[axis] if isinstance(padding, tuple) else padding
        if padding == "same":
            count = math.ceil(n / step)
            before = max((count - 1) * step + k - n, 0) // 2
        else:
            before = 0 if padding == "valid" else before
            count = (n + 2 * before - k) // step + 1
        seen = [[w * step - before + i for i in range(k)] for w in range(count)]
        axes.append([[at if 0 <= at < n else -1 for at in each] for each in seen])
    return [list(product(rows, columns)) for rows, columns in product(*axes)]


def _seen(layer, given):
    """(T, P): the pixel that each place of a window sees, or -1."""
    image, how = given["x"].shape[1:3], layer.window
    found = windows(how.size, how.stride, how.padding, image)
    pixels = [[row * image[1] + column for row, column in place] for place in found]
    inside = [[min(place) >= 0 for place in places] for places in found]
    return np.where(inside, pixels, -1)


def _pools(layer, given):
    """Images as (B, pixels, C); w_t, the pixels of window t in reading order, and their number."""
    seen, c = _seen(layer, given), given["x"].shape[-1]
    w = np.empty(len(seen), object)
    w[:] = [[int(pixel) for pixel in pixels if pixel >= 0] for pixels in seen]
    n = np.array([float(len(pixels)) for pixels in w])
    pixels, outputs = (len(given["x"]), -1, c), (len(given["x"]), len(seen), c)
    return {**_reshaped(given, x=pixels, dx=pixels, y=outputs, dy=outputs), "w": w, "n": n}


def _patches(layer, given):
    """An image's numbers in one axis; s_tp, the one that place p of window t sees, or -1."""
    seen, (b, _, _, c) = _seen(layer, given)[:, :, None], given["x"].shape
    s = np.where(seen < 0, -1, seen * c + np.arange(c)).reshape((len(seen), -1))
    matrix, y = (s.shape[1], given["W"].shape[-1]), (b, len(s), given["W"].shape[-1])
    shapes = {"x": (b, -1), "dx": (b, -1), "W": matrix, "dW": (b, *matrix), "y": y, "dy": y}
    return {**_reshaped(given, **shapes), "s": s}


def _groups(layer, given):
    """(B, T, G, M): positions, groups and the members of one; S, the axes averaged over."""
    groups, axes = (layer.groups, (1, 3)) if isinstance(layer, nn.GroupNorm) else (1, (3,))
    own = (groups, given["scale"].size // groups)
    x, each = (len(given["x"]), -1, *own), (-1, *own)
    shapes = {"x": x, "y": x, "dy": x, "dx": x, "scale": own, "shift": own}
    return {**_reshaped(given, **shapes, dscale=each, dshift=each), "S": axes}


def _merged(layer, given):
    """All axes of an example but the last in one."""
    last = given["x"].shape[-1]
    shape = (len(given["x"]), -1, last)
    return {**_reshaped(given, x=shape, dx=shape), "L": last}


def _positions(layer, given):
    """(B, T, ...), T = 1 where an example has no positions."""
    x, width = given["x"], given["W"].shape[1]
    inputs = (len(x), -1, layer.inputs)
    outputs = (len(x), -1, width)
    return _reshaped(given, x=inputs, dx=inputs, y=outputs, dy=outputs)


def _table(layer, given):
    """The range of the indices of a table, which no array has where it is not given."""
    return {**given, "ranges": {"v": layer.vocabulary, "j": layer.width}}


def _recurrent(layer, given):
    """(B, S, H) of the last S states, and the sizes and ranges of the card."""
    (b, positions, inputs), hidden = given["x"].shape, layer.hidden
    states = positions if layer.states == "all" else 1
    shape = (b, states, hidden)
    sizes = {"T": positions, "I": inputs, "H": hidden, "r": positions - states}
    ranges = {"s": states, "h": hidden, "j": hidden, "n": inputs + hidden, "k": 4 * hidden}
    return {**_reshaped(given, y=shape, dy=shape), **sizes, "ranges": {**ranges, "t": positions}}


def _attending(layer, given):
    """The sizes and ranges of the card."""
    positions, width = given["x"].shape[1:]
    ranges = {"m": width, "n": width, "o": width, "i": width, "k": 3 * width}
    ranges |= {index: positions for index in "tur"}
    return {**given, "M": width, "D": width // layer.heads, "ranges": ranges}


def _rows(layer, given):
    """The last axis is normalised, each place before it by itself."""
    shape = (-1, given["x"].shape[-1])
    return _reshaped(given, x=shape, y=shape, dy=shape, dx=shape)


SEEN = {
    nn.CausalAttention: _attending,
    nn.Dense: _positions,
    nn.Embedding: _table,
    nn.LSTM: _recurrent,
    nn.Softmax: _rows,
    nn.Conv2D: _patches,
    nn.MaxPool2D: _pools,
    nn.AvgPool2D: _pools,
    nn.GroupNorm: _groups,
    nn.LayerNorm: _groups,
    nn.Flatten: _merged,
}
