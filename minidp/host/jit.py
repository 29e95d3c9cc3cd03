"""Numba's `njit`, and a line on stderr before the first kernel is compiled; later runs find it in
the cache.
"""

from numba import njit
from numba.core import event as events

from ..util.notices import say

__all__ = ["compiled", "njit"]


class _Once(events.Listener):
    """Notified of each compilation, but not of kernels from the cache."""

    told = False

    def on_start(self, event):
        if not self.told:
            say("compiling kernels, once per machine: up to a minute")
        self.told = True

    def on_end(self, event):
        pass


once = _Once()
events.register("numba:compile", once)
# the interpreter's lock is released; without fastmath no product and sum become one operation
compiled = njit(cache=True, nogil=True, error_model="numpy")
