"""The release of a lot whose examples were computed on several ranks."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..arrays import namespace_of, synchronise, to_host
from ..grads.forms import Arrays, Key
from ..mechanism.noise import on_host
from ..streams import Draws


def release_over_ranks(
    ranks: Any,
    raw_sums: Sequence[Arrays],
    noise_stds: Mapping[Key, float],
    draws: Draws,
    scale: float,
    dtype: DTypeLike,
) -> Arrays:
    """{key: scale times the sum of all ranks' raw sums, with noise of the key's standard
    deviation}. Every rank must call it in every step, even if its part of the lot is empty.

    The numbers of all parameters are concatenated. Each rank gets the sum of one slice, adds the
    noise of that slice, by its places in the same stream, and sends the release to all. So every
    number gets noise once, as in one process. Sums are float64.
    """
    xp = namespace_of(*raw_sums[0].values())
    lib = xp if ranks.gpu_aware else np
    shapes = [raw_sums[0][key].shape for key in noise_stds]
    ends = list(accumulate(map(prod, shapes), initial=0))
    each = -(-ends[-1] // ranks.size)
    flat = lib.zeros(each * ranks.size)
    for raw_sum in raw_sums:
        parts = [raw_sum[key] if lib is xp else to_host(raw_sum[key]) for key in noise_stds]
        flat[: ends[-1]] += lib.concatenate([part.ravel() for part in parts])
    synchronise(xp)
    mine = to_host(ranks.scatter_sum(flat))
    noisy = np.zeros(each, dtype)
    begin = ranks.rank * each
    for noise_std, at, end in zip(noise_stds.values(), ends, ends[1:]):
        # of this parameter, in this slice; it may be nothing
        start, stop = (min(max(edge, at), end) for edge in (begin, begin + each))
        here = slice(start - begin, stop - begin)
        place = start - at, end - at
        noisy[here] = on_host([mine[here]], noise_std, draws, scale, dtype, place)
    whole = ranks.gather(lib.asarray(noisy))
    parts = [xp.asarray(whole[at:end]) for at, end in zip(ends, ends[1:])]
    return {key: part.reshape(shape) for key, part, shape in zip(noise_stds, parts, shapes)}
