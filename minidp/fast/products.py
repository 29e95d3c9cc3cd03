"""Sums of outer products in few large steps: the twin of `arrays.add_products`."""

from typing import Any

import numpy as np

from ..arrays import namespace_of
from ..compiled import kernel

# blocks of products, and their numbers, that stay in the cache until they are added
TOGETHER = 4
PARTS = 2**20
BATCHED = 2**26  # numbers of products that a device makes in one kernel


def add_products(total: Any, a: Any, d: Any, rows: int) -> Any:
    """As `arrays.add_products`, in products of about `rows` rows each."""
    (examples, inputs), outputs = a.shape, d.shape[1]
    blocks, add_blocks = -(-examples // rows), kernel("add_blocks", a, d)
    few = total is None and add_blocks is not None and 0 < blocks <= TOGETHER
    if few:
        total = np.empty((inputs, outputs), np.float32)
    elif total is None:
        total = namespace_of(a).zeros((inputs, outputs))
    rows = max(-(-examples // max(blocks, 1)), 1)  # the blocks are about as large as each other
    if add_blocks is None or not total.flags.c_contiguous:
        return _batched(total, a, d, rows)
    together = max(min(blocks - few, TOGETHER), 1)
    # rows of the sum, in tiles about as large as each other
    tile = -(-inputs // max(-(-inputs * outputs * together // PARTS), 1))
    parts = np.empty((together, tile, outputs), np.float32)
    for at in range(0, inputs, tile):
        sums, left = total[at : at + tile], a[:, at : at + tile].T
        if few:
            np.matmul(left[:, :rows], d[:rows], out=sums)
        for start in range(few * rows, examples, together * rows):
            places = range(start, min(start + together * rows, examples), rows)
            for part, place in zip(parts, places):
                here = slice(place, place + rows)
                np.matmul(left[:, here], d[here], out=part[: len(sums)])
            add_blocks(sums, parts[: len(places), : len(sums)])
    return total


def _batched(total, a, d, rows):
    """The same, many products at a time."""
    examples = len(a)
    whole, at_once = examples // rows, max(BATCHED // max(total.size, 1), 1)
    for at in range(0, whole, at_once):
        here = slice(at * rows, min(at + at_once, whole) * rows)
        left, right = (each[here].reshape((-1, rows, each.shape[1])) for each in (a, d))
        total += (left.transpose(0, 2, 1) @ right).sum(axis=0, dtype=np.float64)
    if rest := examples - whole * rows:
        total += a[-rest:].T @ d[-rest:]
    return total
