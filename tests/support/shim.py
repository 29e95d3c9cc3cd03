"""CUDA sources run on the host: CuPy's RawModule for guarded arrays.

The same source is compiled as C++. Blocks run one after the other. The threads of a block are a
loop, or where the source waits for them, as many of std::thread as BARRIER says, with a
std::barrier for __syncthreads. Shared memory is static.
"""

import atexit
import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from tests.support import counting

COMPILER = shutil.which("g++") or shutil.which("clang++")
FLAGS = ("-std=c++20", "-O1", "-ffp-contract=off", "-fPIC", "-pthread", "-w")
BARRIER = 2  # threads of a block that really run side by side; tests of kernels have 4


@lru_cache(maxsize=1)
def _header():
    """shim.hpp, compiled once: its headers take longer than any kernel."""
    folder = tempfile.mkdtemp(prefix="minidp-shim-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    header = shutil.copy(Path(__file__).with_name("shim.hpp"), folder)
    subprocess.run([COMPILER, *FLAGS, "-x", "c++-header", header], check=True)
    return Path(header)


@lru_cache(maxsize=None)
def _library(code, options):
    """The source as a shared library, compiled once."""
    names = re.findall(r"__global__ void (\w+)\(", code)
    launches = "".join(
        f'extern "C" void launch_{name}(unsigned b, unsigned n, unsigned s, void** a) {{ '
        f"run({name}, b, n, s, a); }}\n"
        for name in names
    )
    stem = _header().parent / hashlib.sha256(repr((code, options)).encode()).hexdigest()[:16]
    stem.with_suffix(".cpp").write_text(code + launches)
    subprocess.run(
        [
            COMPILER,
            *FLAGS,
            "-shared",
            *(option for option in options if option.startswith("-D")),
            "-include",
            _header(),
            "-o",
            stem.with_suffix(".so"),
            stem.with_suffix(".cpp"),
        ],
        check=True,
    )
    return ctypes.CDLL(str(stem.with_suffix(".so")))


class RawModule:
    """CuPy's class of this name, for guarded arrays: a kernel is one launch."""

    def __init__(self, code, options=()):
        self.code, self.options = code, options

    def get_function(self, name):
        """The kernel, which is called with its grid, its block and its arguments."""

        def kernel(grid, block, arguments):
            values = [_value(each) for each in arguments]
            pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
            side_by_side = min(block[0], BARRIER) if "__syncthreads" in self.code else 0
            getattr(_library(self.code, self.options), f"launch_{name}")(
                grid[0], block[0], side_by_side, pointers
            )
            counting.counts().launches += 1

        return kernel


def _value(argument):
    """What CuPy passes to a kernel, as a host array of size one."""
    if argument is None:
        raise TypeError(
            "CuPy passes no null pointer for None, but what happens to be there: pass 0"
        )
    if isinstance(argument, np.ndarray):
        assert argument.size == 1
        return argument
    if isinstance(argument, (int, float)):
        return np.array([argument], np.float64 if isinstance(argument, float) else np.int64)
    return np.array([argument.data.ptr], np.uint64)
