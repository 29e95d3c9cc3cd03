"""What makes the host fast, and nothing else: its kernels, threads, allocator and caches.

from minidp import host
host.tune()          # before NumPy is imported; command lines do it, importing minidp never does
"""

from .tune import describe, tune

__all__ = ["describe", "tune"]
