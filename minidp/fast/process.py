"""The one call that changes the process: it selects kernels of matrix products, and an allocator
that keeps freed pages.

OpenBLAS selects its kernels when NumPy loads it, from a table of processors. A processor that is
too new for the table gets AVX2 kernels, which on a processor with AVX-512 run at little more than
half the speed. All kernels give the same results to rounding.

glibc returns large arrays to the system, and getting them again costs a page fault for every 4 KiB,
which is more than half of a small step's time. With higher thresholds a step reuses the pages of
the step before; the process never shrinks.

MINIDP_KERNELS=default in the environment lets OpenBLAS choose, and MINIDP_MALLOC=default leaves the
allocator unchanged. OpenBLAS's own variable OPENBLAS_CORETYPE always wins.
"""

import ctypes
import os
import sys
from pathlib import Path

from ..host import blas, threads

# what the SKYLAKEX kernels use
AVX512 = {
    "avx512f",
    "avx512cd",
    "avx512bw",
    "avx512dq",
    "avx512vl",
}
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h

_pages_kept = False


def tune():
    """Choose the kernels of matrix products, if NumPy is not loaded yet, and let the allocator keep
    freed pages.

    It sets OPENBLAS_CORETYPE in this process's environment, which child processes inherit, and
    glibc's malloc options.
    """
    global _pages_kept
    _choose_kernels()
    _pages_kept = _keep_freed_pages() or _pages_kept


def describe():
    """{"openblas_kernels", "threads", "allocator"} of this process, for its results."""
    return {
        "openblas_kernels": blas.kernels(),
        "threads": threads.limit(),
        "allocator": "glibc, freed pages kept" if _pages_kept else "default",
    }


def kernels_for(cpuinfo):
    """The kernels for the first processor of a Linux /proc/cpuinfo; None leaves the choice to
    OpenBLAS.
    """
    fields = {}
    for line in cpuinfo.split("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    if not AVX512 <= set(fields.get("flags", "").split()):
        return None
    return "SKYLAKEX" if fields.get("vendor_id") in ("AuthenticAMD", "GenuineIntel") else None


def _choose_kernels():
    if (
        "numpy" in sys.modules
        or "OPENBLAS_CORETYPE" in os.environ
        or os.environ.get("MINIDP_KERNELS") == "default"
    ):
        return
    try:
        kernels = kernels_for(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:  # not Linux
        return
    if kernels:
        os.environ["OPENBLAS_CORETYPE"] = kernels


def _keep_freed_pages():
    """Let glibc keep freed memory; True if it agreed. Other C libraries are not changed."""
    if os.environ.get("MINIDP_MALLOC") == "default" or not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return False
    mallopt(_M_MMAP_THRESHOLD, 2**30)
    mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
    # the other arenas, of other threads, give back whatever the thresholds say
    mallopt(_M_ARENA_MAX, 1)
    return True
