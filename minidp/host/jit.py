"""Numba's `njit`, and a line on stderr before the first kernel is compiled; later runs find it in
the cache.
"""

from numba import njit
from numba.core import event as events

from .. import given
from . import series

__all__ = ["exp_parts", "horner", "log_of", "njit"]


class _Once(events.Listener):
    """Notified of each compilation, but not of kernels from the cache."""

    told = False

    def on_start(self, event):
        if not self.told:
            given.say("compiling kernels, once per machine: up to a minute")
        self.told = True

    def on_end(self, event):
        pass


once = _Once()
events.register("numba:compile", once)


@njit(inline="always")
def horner(coefficients, x):
    """`series.polynomial` in a kernel, of a constant tuple."""
    y = coefficients[-1]
    for n in range(len(coefficients) - 2, -1, -1):
        y = y * x + coefficients[n]
    return y


exp_parts = njit(inline="always")(series.exp_parts)
log_of = njit(inline="always")(series.log_of)
