"""CUDA kernels: the twins of definitions on a GPU, where a start of a kernel takes longer than most
of them compute.

A step of array code starts 112 to 398 kernels; with these it starts 12 to 41. `train.device_trial`
compares each with its definition before it is used. The kernels of noise give the host's bits.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..host import chacha
from .launching import PARTS, as_value, blocks_for, launch, library, table

NOISE_THREADS = 64  # of a block
REALS = {"float32": "float", "float64": "double"}


def add_normals(state: NDArray[np.uint32], begin: int, std: float, grid: float, out: Any) -> None:
    """The twin of host.drawing.add_normals for a float64 array on a device."""
    first, end = begin // chacha.STRETCH, -(-(begin + out.size) // chacha.STRETCH)
    blocks = (end - first) * chacha.LANES if out.size else 0
    given = _state(state), int(begin), float(std), float(grid), out, out.size, blocks
    starts = -(-blocks // NOISE_THREADS)
    launch(out, "noise.cu add_normals", starts, *given, threads=NOISE_THREADS)


def release(
    state: NDArray[np.uint32],
    laws: Sequence[tuple[float, float, int, int]],
    raw: Any,
    g: Any,
    scale: float,
    theta: Any = None,
    rate: float = 0.0,
) -> None:
    """mechanism.flat.FlatSums.release of all stretches in one start, and with theta train.SGD.

    laws: of consecutive stretches, (std, grid, the first set of normal numbers, the stretch behind
    the last).
    """
    blocks = raw.size // chacha.STRETCH * chacha.LANES
    given = _state(state), table(laws), raw, g, 0 if theta is None else theta
    starts = -(-blocks // NOISE_THREADS)
    more = float(scale), float(rate), blocks
    real = REALS[g.dtype.name]
    launch(raw, "noise.cu release", starts, *given, *more, threads=NOISE_THREADS, real=real)


def _state(state):
    return as_value(state.astype("<u4").tobytes())


def relu(x: Any, y: Any) -> None:
    """nn.ReLU [F1]."""
    launch(x, "layers.cu relu", blocks_for(x.size), x, y, x.size)


def relu_gradient(dy: Any, y: Any, dx: Any) -> None:
    """nn.ReLU [B1]."""
    launch(dy, "layers.cu relu_gradient", blocks_for(dy.size), dy, y, dx, dy.size)


def softmax_cross_entropy(z: Any, target: Any, losses: Any, dz: Any) -> None:
    """nn.SoftmaxCrossEntropy."""
    given = z, target.astype("int64", copy=False), losses, dz, *z.shape
    launch(z, "layers.cu softmax_cross_entropy", blocks_for(len(z)), *given)


def add_bias(y: Any, bias: Any) -> None:
    """A layer's bias (width,) to each row of y, in place."""
    launch(y, "layers.cu add_bias", blocks_for(y.size), y, bias, bias.size, y.size)


def gather(x: Any, y: Any, lot: Any, xs: Any, ys: Any) -> None:
    """The rows `lot` of x (N, ...) and y (N,) int64 to xs and ys."""
    width = xs.size // max(len(xs), 1)
    launch(x, "layers.cu gather", blocks_for(xs.size), x, y, lot, xs, ys, width, xs.size)


def _view(images, window):
    return as_value(struct.pack("11I", *images.shape[1:], *window))


def patches(x: Any, y: Any, window: Sequence[int], turned: bool) -> None:
    """nn.window.Patches.cut to y (B, T, p), or (B, p, T) if `turned`; window: sizes, strides,
    padding above and on the left, counts.
    """
    launch(x, "images.cu patches", blocks_for(y.size), x, y, _view(x, window), int(turned), y.size)


def fold_image(patches: Any, dx: Any, window: Sequence[int]) -> None:
    """nn.window.Window.fold of patches (B, H', W', kh, kw, C); window: sizes, strides, padding
    above and on the left.
    """
    view = _view(dx, (*window, *patches.shape[1:3]))
    launch(dx, "images.cu fold", blocks_for(dx.size), patches, dx, view, dx.size)


def pool(x: Any, y: Any, place: Any, window: Sequence[int]) -> None:
    """nn.window.Window.maxima of padded images; window: sizes and strides."""
    view = _view(x, (*window, 0, 0, *y.shape[1:3]))
    launch(x, "images.cu pool", blocks_for(y.size), x, y, place, view, y.size)


def pool_gradient_image(dy: Any, place: Any, dx: Any, window: Sequence[int]) -> None:
    """nn.window.Window.spread; window: as in `fold_image`."""
    view = _view(dx, (*window, *dy.shape[1:3]))
    launch(dy, "images.cu pool_gradient", blocks_for(dx.size), dy, place, dx, view, dx.size)


def row_norms(x: Any, norms: Any) -> None:
    """arrays.row_norms."""
    launch(x, "sums.cu row_norms", x.shape[0], x, norms, x.shape[1])


def weigh(
    parts: Sequence[tuple],
    clip_norms: Sequence[float],
    own: Any,
    examples: int,
    limits: tuple[float, float, float],
) -> tuple[Any, Any]:
    """(squared norms, weights), (groups, B) each, of the gradients of all clip groups; it writes
    the weighted factors, too.

    parts: rows of `Gradient` of sums.cu, in the order of the groups. own: the examples' weights, or
    None. limits: the norm above which a factor counts as not finite, the margin of norms, and the
    norm over C from which on a weight is 0.
    """
    like = next(each for each in parts[0][:3] if each is not None)
    xp, shape = library(like), (len(clip_norms), examples)
    sq, weights = xp.empty(shape), xp.empty(shape)
    clip = as_value(struct.pack(f"{PARTS}d", *clip_norms, *[0.0] * (PARTS - len(clip_norms))))
    rows = [part[3].shape[0] * part[3].shape[2] for part in parts if part[4] is not None]
    given = table(parts), clip, len(clip_norms), 0 if own is None else own, examples
    launch(like, "sums.cu weigh", max([examples, *rows]), *given, *limits, sq, weights)
    return sq, weights


def add_weighted(total: Any, w: Any, g: Any) -> None:
    """arrays.add_weighted."""
    g = library(g).ascontiguousarray(g)
    add_all([(g, w, total, total.size, len(g), 1)])


def add_all(parts: Sequence[tuple]) -> None:
    """total = or += sum_j w_j g_j for each row (g, w or None, total, its size, count of j, add)."""
    places = sum(part[3] for part in parts)
    launch(parts[0][0], "sums.cu add_weighted", blocks_for(places), table(parts), places)
