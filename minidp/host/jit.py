"""Numba's `njit`, and a line on stderr before the first kernel is compiled.

Numba keeps compiled kernels in a folder. If it finds no folder that it can write to (no home, a
read-only installation), each process compiles the kernels that it needs.
"""

from numba import config, njit
from numba.core import event as events

from ..util.notices import say

__all__ = ["CACHED", "OFF", "compiled", "njit"]

# NUMBA_DISABLE_JIT=1: definitions are then faster than uncompiled kernels
OFF = bool(getattr(config, "DISABLE_JIT", 0))


def _finds_folder():
    """True if Numba finds a folder for the kernels of this package."""
    try:
        njit(cache=True)(_finds_folder)
    except RuntimeError:
        return False
    return True


CACHED = _finds_folder()


class _Once(events.Listener):
    """Prints one line when the first kernel is compiled; kernels from the cache do not count."""

    told = False

    def on_start(self, event):
        if not self.told:
            self.told = True
            line = "compiling kernels, once per machine: up to a minute"
            if not CACHED:
                line = (
                    "compiling kernels for this process, up to a minute; to keep them, set "
                    "NUMBA_CACHE_DIR to a folder that can be written"
                )
            say(line)

    def on_end(self, event):
        pass


once = _Once()
events.register("numba:compile", once)
# the interpreter's lock is released; without fastmath no product and sum become one operation
compiled = njit(cache=CACHED, nogil=True, error_model="numpy")
