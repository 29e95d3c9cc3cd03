"""Values for the names in the cards of layers."""

import math
from itertools import product

import numpy as np

from .. import nn
from ..backend import to_host
from .equation import Case
from .trial import LossTrial


def case_of(trial, computed=True):
    """The Case of a trial of a layer or loss; without `computed`, values that the code computes are
    left out.
    """
    if isinstance(trial, LossTrial):
        *_, classes = trial.x.shape
        given = {"z": trial.x, "target": trial.target, "dy": trial.dy}
        if computed:
            given["loss"], given["dz"] = trial.results().values()
        return Case({**given, "T": trial.x.shape[1], "K": classes})
    layer, x, dy = trial.layer, trial.asarray(trial.x), trial.asarray(trial.dy)
    found = {"x": x, "dy": dy}
    if computed:
        found["y"], cache = layer.forward(x)
        found["dx"] = layer.backward(dy, cache)
        if isinstance(layer, (nn.GroupNorm, nn.LayerNorm)):
            found["n"] = cache.kept[0]
        for name, grad in layer.param_grads(dy, cache).items():
            found[f"d{name}"] = grad.materialise()
    return stated(layer, **found)


def stated(layer, **arrays):
    """The Case of the equations in a layer's card: its arrays and settings under the names and in
    the shapes that the card has.

    arrays: x and what was computed from it, such as y, dy, dx, and dW of each example.
    """
    given = {**layer.params, **layer.constants, **arrays}
    given = {name: to_host(array) for name, array in given.items()}
    if "W" in given:
        given.setdefault("b", np.zeros(given["W"].shape[-1]))
    SEEN.get(type(layer), _numbers)(layer, given)
    ranges = {index: range(size) for index, size in given.pop("ranges", {}).items()}
    return Case(given, ranges=ranges)


def _numbers(layer, given):
    """The numbers that a layer keeps, under their own names and those of `symbols`."""
    for name, number in vars(layer).items():
        if isinstance(number, (int, float)):
            given.setdefault(name, number)
    given |= {symbol: getattr(layer, name) for symbol, name in layer.symbols.items()}


def _reshape(given, names, *shape):
    for name in names.split():
        if name in given:
            given[name] = given[name].reshape(shape)


def windows(size, stride, padding, image):
    """For each window over an image (height, width) its pixels in reading order: (row, column) of
    each place, -1 outside the image.
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
    """(T, P): the number of the pixel at each place of a window, or -1."""
    image, how = given["x"].shape[1:3], layer.window
    found = windows(how.size, how.stride, how.padding, image)
    pixels = [
        [row * image[1] + column if min(row, column) >= 0 else -1 for row, column in places]
        for places in found
    ]
    return np.array(pixels)


def _pools(layer, given):
    """Images as (B, pixels, C); w_t, the pixels of window t in reading order, and their number."""
    seen, (b, _, _, c) = _seen(layer, given), given["x"].shape
    given["w"] = np.empty(len(seen), object)
    given["w"][:] = [[int(pixel) for pixel in pixels if pixel >= 0] for pixels in seen]
    given["n"] = np.array([float(len(pixels)) for pixels in given["w"]])
    _reshape(given, "x dx", b, -1, c)
    _reshape(given, "y dy", b, len(seen), c)


def _patches(layer, given):
    """An image's numbers in one axis; s_tp, the one that place p of window t sees, or -1."""
    seen, (b, _, _, c) = _seen(layer, given)[:, :, None], given["x"].shape
    s = np.where(seen < 0, -1, seen * c + np.arange(c)).reshape((len(seen), -1))
    given["s"], outputs = s, given["W"].shape[-1]
    _reshape(given, "x dx", b, -1)
    _reshape(given, "y dy", b, len(s), outputs)
    _reshape(given, "W", s.shape[1], outputs)
    _reshape(given, "dW", b, s.shape[1], outputs)


def _groups(layer, given):
    """(B, T, G, M): positions, groups and the members of one; S, the axes averaged over."""
    groups, given["S"] = (layer.groups, (1, 3)) if isinstance(layer, nn.GroupNorm) else (1, (3,))
    given["epsilon"] = layer.epsilon
    own = groups, given["scale"].size // groups
    _reshape(given, "x y dy dx", len(given["x"]), -1, *own)
    _reshape(given, "scale shift", *own)
    _reshape(given, "dscale dshift", -1, *own)


def _merged(layer, given):
    """All axes of an example but the last in one."""
    given["L"] = given["x"].shape[-1]
    _reshape(given, "x dx", len(given["x"]), -1, given["L"])


def _pieces(layer, given):
    """For each number of y its column, its knot, the neighbours and the ends; -1 where it is one of
    x.
    """
    knots, numbers = given.pop("knots"), given["x"].shape[1]
    around = np.pad(knots, ((0, 0), (1, 1)))
    around[:, 0], around[:, -1] = knots[:, 0] - 1, knots[:, -1] + 1
    ends = np.broadcast_to(knots[:, :1], knots.shape), np.broadcast_to(knots[:, -1:], knots.shape)
    values = {"l": around[:, :-2], "m": knots, "u": around[:, 2:], "f": ends[0], "g": ends[1]}
    for name, of_knots in values.items():
        given[name] = np.concatenate([np.full(numbers, -1.0), of_knots.ravel()])
    columns = np.repeat(layer.columns, knots.shape[1])
    given["c"] = np.concatenate([np.full(numbers, -1), columns])
    given |= {"I": numbers, "w": layer.weight, "ranges": {"i": numbers, "o": len(given["c"])}}


def _positions(layer, given):
    """(B, T, ...), T = 1 where an example has no positions."""
    b, width = len(given["x"]), given["W"].shape[1]
    _reshape(given, "x dx", b, -1, layer.inputs)
    _reshape(given, "y dy", b, -1, width)


def _table(layer, given):
    """The range of the indices of a table, which no array has where it is not given."""
    given["ranges"] = {"v": layer.vocabulary, "j": layer.width}


def _recurrent(layer, given):
    """(B, S, H) of the last S states, and the sizes and ranges of the card."""
    (b, positions, inputs), hidden = given["x"].shape, layer.hidden
    states = positions if layer.states == "all" else 1
    _reshape(given, "y dy", b, states, hidden)
    given |= {"T": positions, "I": inputs, "H": hidden, "r": positions - states}
    ranges = {"s": states, "h": hidden, "j": hidden, "n": inputs + hidden, "k": 4 * hidden}
    given["ranges"] = {**ranges, "t": positions}


def _evaluated(layer, given):
    """Nothing is dropped, as with a rate of 0."""
    given |= {"u": np.ones(given["x"].shape[1:]), "rate": 0}


def _rows(layer, given):
    """The last axis is normalised, separately at each place before it."""
    _reshape(given, "x y dy dx", -1, given["x"].shape[-1])


SEEN = {
    nn.Dense: _positions,
    nn.Dropout: _evaluated,
    nn.Embedding: _table,
    nn.LSTM: _recurrent,
    nn.Softmax: _rows,
    nn.Conv2D: _patches,
    nn.MaxPool2D: _pools,
    nn.AvgPool2D: _pools,
    nn.GroupNorm: _groups,
    nn.LayerNorm: _groups,
    nn.Flatten: _merged,
    nn.Pieces: _pieces,
}
