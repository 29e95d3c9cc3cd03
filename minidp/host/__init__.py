"""Speed on the host, without any change of results: kernels, threads, allocator and caches.

from minidp import host
host.tune()          # before NumPy is imported; command lines do it, importing minidp never does
"""

from .fast_process import describe, tune

__all__ = ["describe", "tune"]
