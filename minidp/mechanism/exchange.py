"""The release of a lot whose members were computed on several ranks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..backend import namespace_of, synchronise, to_host
from ..grads.forms import Arrays, Key
from ..streams import Draws
from .noise import Law, on_host, released


def release(
    ranks: Any,
    raw_sums: Sequence[Arrays],
    laws: Mapping[Key, Law],
    draws: Draws,
    scale: float,
    dtype: DTypeLike,
) -> Arrays:
    """{key: scale times the sum of all ranks' raw sums, with the noise of the key's law}. Every
    rank calls it in every step, with nothing to add too.
    """
    if ranks.size > 1:
        return _over_ranks(ranks, raw_sums, laws, draws, scale, dtype)
    first, *others = raw_sums
    raws = [first[key] for key in laws]
    rest = [[other[key] for other in others] for key in laws]
    return dict(zip(laws, released(raws, [*laws.values()], draws, rest, scale, dtype)))


def _over_ranks(ranks, raw_sums, laws, draws, scale, dtype):
    """The numbers of all parameters stand one behind the other, and each rank gets the sum of a
    slice of them, adds the noise of that slice, by its places in the same stream, and hands the
    release to all. So noise is added once to every number, as in one process. Sums are float64:
    exact arithmetic adds whole numbers below 2^53, whatever the order.
    """
    shapes = {key: raw_sums[0][key].shape for key in laws}
    xp = namespace_of(*raw_sums[0].values())
    lib = xp if ranks.gpu_aware else np
    ends = np.cumsum([0, *(raw_sums[0][key].size for key in laws)])
    places = dict(zip(laws, zip(ends.tolist(), ends[1:].tolist())))
    each = -(-int(ends[-1]) // ranks.size)
    flat = lib.zeros(each * ranks.size)
    for key, (at, end) in places.items():
        place = flat[at:end].reshape(shapes[key])
        for raw_sum in raw_sums:
            place += raw_sum[key] if lib is xp else to_host(raw_sum[key])
    synchronise(xp)
    mine = to_host(ranks.scatter_sum(flat))
    noisy = np.zeros(each, dtype)
    begin = ranks.rank * each
    for key, (at, end) in places.items():
        # of this parameter, in this slice; it may be nothing
        start = min(max(at, begin), end)
        stop = max(min(end, begin + each), start)
        here = slice(start - begin, stop - begin) if start < stop else slice(0)
        place = start - at, end - at
        noisy[here] = on_host([mine[here]], laws[key], draws, scale, dtype, place)
    whole = ranks.gather(lib.asarray(noisy))
    return {
        key: xp.asarray(whole[at:end]).reshape(shapes[key]) for key, (at, end) in places.items()
    }
