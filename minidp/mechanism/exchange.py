"""The release of a lot whose members were computed on several ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ..backend import namespace_of, synchronise, to_host
from ..grads.forms import Arrays
from ..streams import Draws

if TYPE_CHECKING:
    from .sanitizer import Sanitizer


def released_over(
    ranks: Any,
    sanitizer: Sanitizer,
    raw_sum: Arrays,
    draws: Draws,
    others: Sequence[Arrays],
    scale: float,
    dtype: DTypeLike,
) -> Arrays:
    """What `Sanitizer.release` gives for the sum of all ranks' raw sums. Every rank calls it in
    every step, with nothing to add too.

    The numbers of all parameters stand one behind the other, and each rank gets the sum of a slice
    of them, adds the noise of that slice, by its places in the same stream, and hands the release
    to all. So noise is added once to every number, as in one process. Sums are float64: exact
    arithmetic adds whole numbers below 2^53, whatever the order.
    """
    first = raw_sum[sanitizer.keys[0]]
    xp, lib = namespace_of(first), namespace_of(first) if ranks.gpu_aware else np
    total = sum(raw.size for raw in raw_sum.values())
    each = -(-total // ranks.size)
    flat, at = lib.empty(each * ranks.size), 0
    for key in sanitizer.keys:
        place = flat[at : at + raw_sum[key].size].reshape(raw_sum[key].shape)
        place[...], *rest = (
            raw[key] if lib is xp else to_host(raw[key]) for raw in (raw_sum, *others)
        )
        for raw in rest:
            place += raw
        at += place.size
    flat[at:] = 0
    synchronise(xp)
    mine = to_host(ranks.scatter_sum(flat))
    slice_, begin, at = np.zeros(each, dtype), ranks.rank * each, 0
    for group in sanitizer.groups:
        for key in group.keys:
            size = raw_sum[key].size
            # of this parameter, in this slice
            start, stop = (min(max(begin + end - at, 0), size) for end in (0, each))
            here = slice(at + start - begin, at + stop - begin) if start < stop else slice(0)
            slice_[here] = sanitizer.noisy(
                group, mine[here], draws.at(start, size), (), scale, slice_.dtype
            )
            at += size
    whole, at, released = ranks.gather(lib.asarray(slice_)), 0, {}
    for key in sanitizer.keys:
        released[key] = xp.asarray(whole[at : at + raw_sum[key].size]).reshape(raw_sum[key].shape)
        at += raw_sum[key].size
    return released
