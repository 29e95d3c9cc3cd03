"""Facts that a measurement depends on: versions, threads, the processor, the library of matrix
products.
"""

import os
import platform
import re
import sys
from pathlib import Path

from minidp import host
from minidp.backend import Backend

LIBRARIES = ("minidp", "numpy", "cupy", "torch", "opacus", "jax", "jaxlib")
VECTOR_FLAGS = re.compile(r"\b(?:sse4_2|avx\w*|fma|amx\w*|asimd\w*|sve\w*)\b")


def versions():
    """{library: version} of those that this process has loaded."""
    loaded = {name: sys.modules[name].__version__ for name in LIBRARIES if name in sys.modules}
    return {"python": platform.python_version(), **loaded}


def processor():
    """The processor's name, as far as the system reports it."""
    return _told("model name") or platform.processor()


def gpu(device):
    """{"GPU": its name and compute capability} of a GPU in use, {} for the CPU."""
    if device == "cpu":
        return {}
    runtime = Backend.pick(device).xp.cuda.runtime
    about = runtime.getDeviceProperties(runtime.getDevice())
    return {"GPU": f"{about['name'].decode()}, {about['major']}.{about['minor']}"}


def vector_flags():
    """The processor's vector instructions; empty if the system does not report them."""
    return VECTOR_FLAGS.findall(_told("(?:flags|Features)"))


def _told(name):
    """Linux's entry for the first processor under this name, or ""."""
    try:
        found = re.search(rf"^{name}\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        return ""
    return found[1] if found else ""


def products():
    """What multiplies matrices in this process."""
    torch = sys.modules.get("torch")
    if torch:
        return {
            "library": "MKL" if torch.backends.mkl.is_available() else "another BLAS",
            "core": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
        }
    return {"library": "XLA"} if "jax" in sys.modules else host.describe()


def available_cores():
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
