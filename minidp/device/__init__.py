"""CUDA twins of definitions elsewhere, for float32 arrays on a device.

A twin of `host.kernels` or `host.elementwise` has its name and arguments. `launching` says how the
sources are compiled and launched.
"""

import struct

from ..host import chacha
from .launching import PARTS, TYPES, as_value, blocks_for, launch, library, table

TOGETHER = 2**28  # numbers of products that are held until they are added: 1 or 2 GiB
_tables: dict = {}  # of integer noise, on the device


def _in_tables(rows, most=PARTS):
    """The rows, at most so many at a time."""
    return [rows[at : at + most] for at in range(0, len(rows), most)]


def _over_parts(xp, name, rows, size, *arguments, threads=1):
    """Launch a kernel of sums.cu for a table of rows, at most PARTS at a time: so many threads for
    each of row[size] places.
    """
    for some in _in_tables(rows):
        places = sum(row[size] for row in some)
        launch(xp, "sums.cu", name, blocks_for(places * threads), table(some), *arguments, places)


def _each(file, name, written, *arguments):
    """Launch a kernel with a thread for each number of an array that it writes."""
    n = written.size
    launch(library(written), file, name, blocks_for(n), *arguments, n)


def _coordinates(name):
    def twin(*arrays):
        _each("elementwise.cu", name, arrays[-1], *arrays)

    return twin


exp, log, tanh, relu, relu_gradient = map(
    _coordinates, ("exp_of", "log_of", "tanh_of", "relu", "relu_gradient")
)


def softmax_cross_entropy(z, target, losses, dz):
    """nn.SoftmaxCrossEntropy."""
    launch(
        xp := library(z),
        "loss.cu",
        "softmax_cross_entropy",
        blocks_for(len(z)),
        z,
        target,
        losses,
        dz,
        xp.empty(z.shape, z.dtype),
        *z.shape,
        types=("float", TYPES[target.dtype.name]),
    )


def row_norms(x, norms):
    """arrays.row_norms."""
    launch(library(x), "norms.cu", "row_norms", x.shape[0], x, norms, x.shape[1])


def form_outer(a, d, g, sq):
    """arrays.outer_products."""
    launch(library(a), "norms.cu", "form_outer", a.shape[0], a, d, g, sq, a.shape[1], d.shape[1])


def clip_weights(sq, clip_norm, margin):
    """mechanism.clip.clip_weights."""
    weights = library(sq).empty(sq.shape)
    _each("norms.cu", "clip_weights", weights, sq, float(clip_norm), margin, weights)
    return weights


def sum_of_squares(parts, huge, examples):
    """grads.sums.sum_of_squares of parts (a, d, known, norms of a, norms of d, 1 + lost).

    Returns (B,), and writes the norms.
    """
    xp, sq = library(next(each for each in parts[0] if each is not None)), None
    for some in _in_tables(parts, PARTS - 1):
        rows = [] if sq is None else [(None, None, sq, None, None, 1, 1, 1.0)]
        for a, d, known, *norms, raised in some:
            widths = [1 if factor is None else factor.shape[1] for factor in (a, d)]
            rows.append((a, d, known, *norms, *widths, raised))
        sq = xp.empty(examples)
        launch(xp, "norms.cu", "sum_of_squares", examples, table(rows), huge, sq)
    return sq


def gram_norms(a, d, lost, cancelling):
    """grads.forms.OuterSum.sq_norms_upper of a (B, T, I) and d (B, T, O)."""
    (examples, positions, inputs), outputs, xp = a.shape, d.shape[2], library(a)
    a, d = (xp.ascontiguousarray(factor.transpose(0, 2, 1)) for factor in (a, d))
    upper = xp.empty(examples)
    launch(
        xp,
        "norms.cu",
        "gram_norms",
        examples,
        a,
        d,
        upper,
        positions,
        inputs,
        outputs,
        float(lost),
        float(cancelling),
        threads=128,
    )
    return upper


def add_weighted_each(totals, gs, add, w):
    """arrays.add_weighted for several totals (P,) and g (B, P); add: False for totals that are
    written, not added to.
    """
    rows = [(g, total, total.size, int(more)) for total, g, more in zip(totals, gs, add)]
    _over_parts(library(w), "add_weighted", rows, 2, w, w.size, threads=8)


def add_weighted_products(jobs, w, large):
    """total = or += sum_bt (w_b a_bit) d_bto for each job (total, add, a (B, I, T), d (B, T, O),
    norms, rows, wide).

    rows: of each product, in float32, or float64 if `wide`; products are added in float64. norms:
    None, or those of a and of d (B,), where an example counts only if both are at most `large` and
    w_b at least large^-2.
    """
    xp, factors, sums = library(w), [], []
    for total, add, a, d, norms, most, wide in jobs:
        (examples, inputs, positions), outputs = a.shape, d.shape[2]
        blocks = -(-examples * positions // most)
        # the blocks are about as large as each other
        length = -(-examples * positions // max(blocks, 1))
        dtype = "float64" if wide else "float32"
        A = xp.empty((blocks, inputs, length), dtype)
        D = xp.empty((blocks, length, outputs), dtype)
        factors.append(
            (
                a,
                d,
                *(norms or (None, None)),
                A,
                D,
                inputs,
                outputs,
                positions,
                length,
                A.size + D.size,
                int(wide),
                int(inputs <= outputs),
            )
        )
        sums.append((A, D, total, max(1, TOGETHER // max(total.size, 1)), int(wide), add))
    _over_parts(xp, "weighted_factors", factors, 10, w, large, w.size)
    for turn in range(
        max(-(-len(A) // most) for A, _, _, most, *_ in sums) or 1
    ):  # blocks that fit into memory, usually all
        rows = []
        for A, D, total, most, wide, add in sums:
            some = slice(turn * most, (turn + 1) * most)
            blocks = len(A[some])
            if blocks or turn == 0:
                summed = xp.matmul(A[some], D[some]) if blocks else None
                rows.append((summed, total, blocks, total.size, wide, int(add or turn > 0)))
        _over_parts(xp, "add_blocks", rows, 3)


def descend(params, grads, rate):
    """train.SGD [F1] for several parameters."""
    _over_parts(
        library(params[0]),
        "descend",
        [(theta, g, theta.size) for theta, g in zip(params, grads)],
        2,
        float(rate),
    )


def pairs(x, width, total):
    """arrays.in_pairs of x (B, n width), n at least 1, to total (B, width)."""
    xp, n = library(x), x.shape[1] // width
    launch(
        xp,
        "sums.cu",
        "in_pairs",
        x.shape[0],
        x,
        xp.empty((x.shape[0], (n + 1) // 2 * width), x.dtype),
        total,
        n,
        width,
        types=(TYPES[x.dtype.name],),
    )


def _view(images, window):
    return as_value(struct.pack("11I", *images.shape[1:], *window))


def patches(x, y, window, turned):
    """nn.window.Window.patches to y (B, T, p), or (B, p, T) if `turned`; window: sizes,
    strides, padding before, counts.
    """
    _each("images.cu", "patches", y, x, y, _view(x, window), int(turned))


def fold(y, dx, window):
    """nn.window.Window.fold."""
    _each("images.cu", "fold", dx, y, dx, _view(dx, window))


def pool(x, y, place, window):
    """nn.window.Window.maxima of x that is padded already."""
    _each("images.cu", "pool", y, x, y, place, _view(x, window))


def pool_gradient(dy, place, dx, window):
    """nn.window.Window.spread to dx that is padded."""
    _each("images.cu", "pool_gradient", dx, dy, place, dx, _view(dx, window))


def release(sums, state, noise_table=None):
    """Raw sums with noise, on the device: `out` = scale (raw + std z), rounded to the grid unless
    that is 0.

    sums: of (raw (n,) float64, out (n,), first, sets, std, grid, scale), as the struct `Sum` of
    noise.cu has them state: (16,) uint32 of the draws     noise_table: a `host.discrete.Table` for
    integer noise
    """
    xp = library(sums[0][0])
    drawn = (0, 0, 0, 0)  # of None CuPy makes another address than 0
    if noise_table is not None:
        place = id(noise_table), xp.cuda.runtime.getDevice()
        if place not in _tables:  # the table is kept, so that no other one gets its place
            _tables[place] = noise_table, *map(xp.asarray, noise_table[2:])
        bits = noise_table.thresholds.size.bit_length() - 1
        drawn = (noise_table.scale, bits, *_tables[place][1:])
    rows = []
    for raw, out, first, sets, std, grid, scale in sums:
        lanes = -(-raw.size // chacha.STRETCH) * chacha.LANES
        law = map(float, (std, grid, scale))
        rows.append((raw, out, raw.size, int(first), sets, lanes, *law))
    for some in _in_tables(rows):
        threads = sum(row[5] for row in some)
        given = table(some), as_value(state.astype("<u4").tobytes()), *drawn, threads
        types = (TYPES[some[0][1].dtype.name],)
        launch(xp, "noise.cu", "release", -(-threads // 64), *given, threads=64, types=types)
