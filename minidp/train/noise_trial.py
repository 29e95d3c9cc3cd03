"""Compare the noise that a GPU draws with the host's before anything is charged."""

from functools import cache
from typing import Any

import numpy as np

from .. import device
from ..arrays import to_host
from ..compiled import ON_A_DEVICE, allow
from ..host.chacha import STRETCH
from ..ranks import current
from ..streams import Streams
from ..util.notices import say

SIZE = 20_001  # numbers: the last set of 512 is not full
SETS = (0, 2**40)  # the first set of numbers; block numbers need one word, or two
GRIDS = (0.0, 2.0**-19)


def try_noise(xp: Any) -> None:
    """Use a device's noise kernel from now on if it gives the host's bits.

    Otherwise rank 0 prints one line on stderr with the reason, and noise is drawn on the host and
    copied to the device: the same numbers. Without this call, noise is drawn on the host.
    """
    if hasattr(xp, "RawModule"):
        right = _gives_the_hosts_bits(xp, xp.cuda.runtime.getDevice())
        allow(xp, ON_A_DEVICE if right else ())


@cache
def _gives_the_hosts_bits(xp, number):
    try:
        why = "" if _same_bits(xp) else "its numbers are not the host's"
    except Exception as error:  # a compiler or a driver may raise anything
        why = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    if why and current().rank == 0:
        say(
            f"NOTICE: noise is drawn on the CPU and copied to GPU {number}, slower but the same: "
            f"the GPU's own kernel cannot be used ({why})"
        )
    return not why


def _same_bits(xp):
    """Noise of a fixed seed, added to fixed numbers."""
    draws = Streams(0).noise(0)
    for first in SETS:
        for grid in GRIDS:
            here = np.linspace(-1, 1, SIZE)
            there = xp.asarray(here)
            draws.add_normals(here, 3.0, grid, place=(first, 0))
            device.add_normals(draws.state(), first * STRETCH, 3.0, grid, there)
            if to_host(there).tobytes() != here.tobytes():
                return False
    return True
