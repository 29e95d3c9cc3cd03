"""Chunk sizes for the host, as shares of the last-level cache, which several cores use."""

import math
import os


def _sysconf(name):
    """A number that the system reports; 0 if it does not."""
    try:
        return os.sysconf(name)
    except (AttributeError, OSError, ValueError):
        return 0


def physical() -> float:
    """Bytes of the host's memory; infinity if the system does not report it."""
    size = _sysconf("SC_PHYS_PAGES") * _sysconf("SC_PAGE_SIZE")
    return size if size > 0 else math.inf


def _last_cache():
    """Bytes of the host's last-level cache, limited to 8 to 32 MiB; 32 MiB if the system does not
    report them.
    """
    size = _sysconf("SC_LEVEL3_CACHE_SIZE")
    return min(max(size, 2**23), 2**25) if size > 0 else 2**25


# Measured: times hardly depend on these shares.
# materialised gradients: a few examples of the widest layers
EXPLICIT_BYTES = _last_cache() * 3 // 16
# inputs and outputs of layers; a batch takes three times as much in all
BATCH_BYTES = _last_cache() // 10
# a convolution's patches: they fit a core's cache, and products have hundreds of rows
PATCH_BYTES = 2 * 2**20
