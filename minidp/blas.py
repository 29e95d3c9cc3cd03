"""The OpenBLAS that NumPy multiplies matrices with: which of its kernels run, and on how many threads.

OpenBLAS picks its kernels when NumPy loads it, by a table of processors that is older than some of them: one
that it does not know gets kernels of AVX2, at little more than half the speed where there is AVX-512.
`choose_kernels`, which importing minidp before NumPy calls, picks those of AVX-512 (SKYLAKEX) on every processor
of AMD's or Intel's that has it. Whatever kernels run, results are the same to rounding. MINIDP_KERNELS=default in
the environment leaves the choice to OpenBLAS, and OPENBLAS_CORETYPE, its own switch, is never overruled.
"""
import ctypes
import os
import sys
from functools import cache
from pathlib import Path

AVX512 = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}  # what the SKYLAKEX kernels use


def choose_kernels():
    """Set OPENBLAS_CORETYPE where that helps; NumPy must not have been loaded yet, or nothing is done."""
    if "numpy" in sys.modules or "OPENBLAS_CORETYPE" in os.environ or os.environ.get("MINIDP_KERNELS") == "default":
        return
    try:
        kernels = kernels_for(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:  # another system
        return
    if kernels:
        os.environ["OPENBLAS_CORETYPE"] = kernels


def kernels_for(cpuinfo):
    """The kernels for the first processor of a Linux /proc/cpuinfo, None where OpenBLAS is to choose."""
    fields = {}
    for line in cpuinfo.split("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    if not AVX512 <= set(fields.get("flags", "").split()):
        return None
    return "SKYLAKEX" if fields.get("vendor_id") in ("AuthenticAMD", "GenuineIntel") else None


def kernels():
    """The name of the kernels that run, "SkylakeX" for example; None without an OpenBLAS."""
    function = _function("get_corename")
    if function is None:
        return None
    function.restype = ctypes.c_char_p
    return function().decode()


@cache
def thread_functions():
    """(get, set) of the number of threads of products, or None without an OpenBLAS."""
    get, set_ = _function("get_num_threads"), _function("set_num_threads")
    if get is None or set_ is None:
        return None
    get.restype, set_.argtypes, set_.restype = ctypes.c_int, [ctypes.c_int], None
    return get, set_


def _function(name):
    """OpenBLAS's function of this name in the library that NumPy is linked to, or None."""
    try:
        from numpy._core import _multiarray_umath

        library = ctypes.CDLL(_multiarray_umath.__file__)  # loaded already; finds the names of what it is linked to
    except (ImportError, OSError):
        return None
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", ""):
            found = getattr(library, f"{prefix}_{name}{suffix}", None)
            if found is not None:
                return found
    return None
