"""Facts that a measurement depends on: versions, threads, vector instructions, the library of
matrix products.
"""

import os
import platform
import re
import sys
from pathlib import Path

LIBRARIES = ("minidp", "numpy", "cupy", "torch", "opacus", "jax", "jaxlib")
VECTOR_FLAGS = re.compile(r"^(sse4_2|avx\w*|fma|amx\w*|asimd\w*|sve\w*)$")


def versions():
    """{library: version} of those that this process has loaded."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        if name in sys.modules:
            found[name] = sys.modules[name].__version__
    return found


def vector_flags():
    """The processor's vector instructions; empty if the system does not report them."""
    return [flag for flag in _told("flags|Features").split() if VECTOR_FLAGS.match(flag)]


def processor():
    """The processor's name, as far as the system reports it."""
    return _told("model name").strip() or platform.processor()


def _told(names):
    """Linux's entry for the first processor under one of these names, or ""."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""
    line = re.search(rf"^(?:{names})\s*:(.*)$", text, re.M)
    return line[1] if line else ""


def products():
    """What multiplies matrices in this process, and the processor that it takes itself to run
    on.
    """
    torch = sys.modules.get("torch")
    if torch:
        return {
            "library": "MKL" if torch.backends.mkl.is_available() else "another BLAS",
            "core": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
        }
    if "jax" in sys.modules:
        return {"library": "XLA"}
    from minidp.host import blas

    threads = blas.thread_functions()
    return (
        {"library": "OpenBLAS", "core": blas.kernels(), "threads": threads[0]()}
        if threads
        else None
    )


def available_cores():
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
