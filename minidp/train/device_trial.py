"""Compare each kernel of a GPU with its definition before anything is charged.

A kernel that does not compile, or gives other numbers than its definition on the host, is left out:
the definition computes in its place, slower but right. The inputs are fixed numbers, which have
nothing to do with the data.
"""

import math
from functools import cache, partial
from typing import Any

import numpy as np

from .. import device
from ..arrays import row_norms, to_host
from ..compiled import ON_A_DEVICE, allow, only
from ..data.examples import LabelledExamples
from ..grads.forms import Explicit, Outer, PositionSums
from ..host.chacha import STRETCH
from ..mechanism import Sanitizer, per_layer_groups
from ..mechanism.clip import flat_group
from ..mechanism.flat import FlatSums, Layout
from ..mechanism.noise import noise_grid
from ..mechanism.rounding import products
from ..nn.activation import ReLU
from ..nn.conv import Conv2D
from ..nn.loss import SoftmaxCrossEntropy
from ..nn.window import Window
from ..ranks import current
from ..streams import Streams
from ..util.notices import say

SETS = (0, 2**40)  # the first set of normal numbers; block numbers need one word, or two
GRIDS = (0.0, 2.0**-19)


def _coordinates(x, dy):
    y, kept = ReLU().compute_y(x, None)
    return y, ReLU().compute_dx(dy, kept)


def _gathered(x, y):
    (batch,) = LabelledExamples(x, y).batches(np.array([7, 0, 31, 7]), 9)
    return batch.x, batch.y


def _biased(x):
    layer = Conv2D(3, 4, 2, rng=np.random.default_rng(0), padding="same")
    layer.params["b"][:] = 1, 2, 3, 4
    xp = device.library(x) if type(x) is not np.ndarray else np
    for name, array in layer.params.items():
        layer.params[name] = xp.asarray(array)
    return (layer.compute_y(x, None)[0],)


def _patches(x, y, window=Window((3, 2), (1, 2), "same")):
    patches = window.patches(x)
    whole = slice(None)
    return patches.cut(whole), patches.cut(whole, turned=True), window.fold(y, x.shape)


def _maxima(x, dy, window=Window((3, 2), (1, 2), "same")):
    padded = window.pad(x, -math.inf)
    y, place = window.maxima(padded, dy.shape[1:3])
    return y, place.astype("int64"), window.spread(dy, place, x.shape)


def _weighted(a, d, g, own):
    """Of two batches, clipped by parameter and all together."""
    found = []
    for layout in (per_layer_groups, flat_group):
        grads = {("a", "W"): Outer(a, d), ("a", "b"): Explicit(d), ("c", "W"): Explicit(g)}
        grads["d", "W"], grads["d", "b"] = Outer(d, a), PositionSums(g.reshape((len(g), 6, 5)))
        sanitizer, rule = Sanitizer(layout(grads, 1.5, 1.0)), products(600, "auto")._replace(rows=3)
        total: dict = {}
        for _ in range(2):
            sanitizer.add_clipped(grads, total, own, rule)
        found += [total[key].astype("float64") for key in grads]
    return found


def _noise(x):
    """Noise of a fixed seed, added to fixed numbers."""
    draws, found = Streams(0).noise(0), []
    for first in SETS:
        for grid in GRIDS:
            out = x.copy()
            if type(x) is np.ndarray:
                draws.add_normals(out, 3.0, grid, place=(first, 0))
            else:
                device.add_normals(draws.state(), first * STRETCH, 3.0, grid, out)
            found.append(out)
    return found


def _released(raw):
    """Two parameters, of whom one has no noise, and plain descent."""
    sizes, stds = {("a", "W"): 1300, ("b", "W"): 700, ("c", "W"): 40}, (3.0, 0.0, 0.5)
    draws, scale, rate = Streams(0).noise(0), 0.25, 0.3
    layout = Layout.of({key: np.empty(size) for key, size in sizes.items()}, [*sizes])
    by_key = dict(zip(sizes, stds))
    if type(raw) is np.ndarray:
        g = np.zeros(layout.size, "float32")
        sums = {key: view.copy() for key, view in layout.views(raw).items()}
        for key, view in layout.views(g).items():
            if std := by_key[key]:
                draws.add_normals(sums[key], std, noise_grid(std))
            view[...] = (sums[key] * scale).astype("float32")
        theta = -(g * np.float32(rate))
    else:
        xp = device.library(raw)
        g, theta = xp.zeros(layout.size, "float32"), xp.zeros(layout.size, "float32")
        flat = FlatSums(layout, raw.copy(), g)
        flat.release(layout.views(flat.raw), by_key, draws, scale, theta, rate)
    return [*layout.views(g).values(), *layout.views(theta).values()]


def _numbers(*shape):
    x = np.round(9 * np.sin(np.arange(math.prod(shape)) ** 2), 3).astype(np.float32)
    x[5:8], x[11:13] = (0, np.nan, np.inf), 2
    return x.reshape(shape)


X, A, D, G = _numbers(40, 13), _numbers(8, 13), _numbers(8, 5), _numbers(8, 30)
for _each in (A, D, G):
    _each[4] *= 1e-3  # an example that is not clipped
OWN = np.array([0, 0, 1, 0.5, 0.3, 1, 1e-3, 1])
IMAGES = np.rint(_numbers(2, 6, 5, 3) / 3)  # with ties
CLASSES = np.arange(40) % 15 - 1
TRIALS: dict[str, tuple] = {  # kernels: how far off they may be, what computes with them, of what
    "relu relu_gradient": (0.0, _coordinates, [X, X[::-1]]),
    "softmax_cross_entropy": (1e-6, SoftmaxCrossEntropy(), [X, CLASSES]),
    "gather": (0.0, _gathered, [X, CLASSES]),
    "add_bias": (1e-6, _biased, [IMAGES]),
    "patches fold_image": (0.0, _patches, [IMAGES, _numbers(2, 6, 3, 3, 2, 3)]),
    "pool pool_gradient_image": (0.0, _maxima, [IMAGES, _numbers(2, 6, 3, 3)]),
    "row_norms": (1e-14, row_norms, [X]),
    "weigh add_all add_weighted": (1e-6, _weighted, [A, D, G, OWN]),
    "add_normals": (0.0, _noise, [np.linspace(-1, 1, 20_001)]),
    "release": (0.0, _released, [np.linspace(-1, 1, 6 * STRETCH)]),
}


def try_twins(xp: Any) -> None:
    """Try a device's kernels once for each device, and use those that are right from then on.

    If kernels are left out, rank 0 prints one line on stderr with their names and the reason.
    Without this call a device computes by definitions alone.
    """
    if hasattr(xp, "RawModule"):
        allow(xp, _right(xp, xp.cuda.runtime.getDevice()))


@cache
def _right(xp, number):
    """Names of the kernels of a device that give what their definitions give."""
    faults = {names: _fault(xp, names.split(), *trial) for names, trial in TRIALS.items()}
    wrong = [f"{names.replace(' ', ', ')} ({why})" for names, why in faults.items() if why]
    if wrong and current().rank == 0:
        say(
            f"NOTICE: GPU {number} computes without these compiled kernels, slower but right: "
            + "; ".join(wrong)
        )
    right = {name for names, why in faults.items() if not why for name in names.split()}
    return right & set(ON_A_DEVICE)


def _fault(xp, names, tolerance, compute, arrays):
    """Why these kernels are not used; "" if they agree with their definitions."""
    with np.errstate(all="ignore"), only(np, ()):
        expected = compute(*arrays)
        try:
            with only(xp, names):
                found = compute(*map(xp.asarray, arrays))
            same = all(map(partial(_agree, tolerance), _listed(found), _listed(expected)))
        except Exception as error:  # a compiler or a driver may raise anything
            return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    return "" if same else "other numbers than its definition"


def _listed(found):
    """Host arrays of one array or of several."""
    return [to_host(found)] if hasattr(found, "dtype") else [*map(to_host, found)]


def _agree(tolerance, got, expected):
    """True for equal arrays, NaN with NaN, or off by `tolerance` of the largest finite number."""
    margin = tolerance * np.max(np.abs(expected[np.isfinite(expected)]), initial=0)
    alike = got.dtype == expected.dtype and got.shape == expected.shape
    return alike and np.allclose(got, expected, 0, margin, equal_nan=True)
