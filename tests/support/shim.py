"""CUDA sources run on the host: CuPy's RawModule for guarded arrays, and NVRTC, which compiles for a GPU without one.

The same source is compiled as C++. Blocks run one after the other. The threads of a block are a loop, or where the source
waits for them, as many of std::thread as BARRIER says, with a std::barrier for __syncthreads. Shared memory is static.
"""
import atexit
import ctypes
import hashlib
import importlib.util
import re
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from tests.support import launches

COMPILER = shutil.which("g++") or shutil.which("clang++")
FLAGS = ("-std=c++20", "-O1", "-ffp-contract=off", "-fPIC", "-pthread", "-w")
BARRIER = 4  # threads of a block that really run side by side; kernels take any power of two
SHIM = """
#include <barrier>
#include <cmath>
#include <cstdint>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>
using namespace std;
#define __device__
#define __global__
#define __shared__ static
struct Three { unsigned x; };
static thread_local Three blockIdx, threadIdx;
static Three blockDim, gridDim;
static barrier<>* together;
#define __syncthreads() together->arrive_and_wait()
template <class... A, size_t... I> static void call(void (*kernel)(A...), void** arguments, index_sequence<I...>) {
    kernel(*(decay_t<A>*)arguments[I]...);
}
template <class... A> static void run(void (*kernel)(A...), unsigned blocks, unsigned size, unsigned side_by_side, void** arguments) {
    auto once = [&] { call(kernel, arguments, index_sequence_for<A...>()); };
    blockDim.x = side_by_side ? side_by_side : size, gridDim.x = blocks;
    if (!side_by_side) {
        for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < size; threadIdx.x++) once();
        return;
    }
    barrier<> all(side_by_side);
    together = &all;
    vector<thread> threads;
    for (unsigned t = 0; t < side_by_side; t++) threads.emplace_back([&, t] {
        threadIdx.x = t;
        for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
            if (blocks <= 16 && t) this_thread::sleep_for(chrono::microseconds(50 * t));  // who does not wait reads what is not there
            once(), all.arrive_and_wait();
        }
    });
    for (auto& one : threads) one.join();
}
"""


@lru_cache(maxsize=1)
def _header():
    """The shim, compiled once: its headers take longer than any kernel."""
    folder = tempfile.mkdtemp(prefix="minidp-shim-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    header = Path(folder, "shim.hpp")
    header.write_text(SHIM)
    subprocess.run([COMPILER, *FLAGS, "-x", "c++-header", header], check=True)
    return header


@lru_cache(maxsize=None)
def _library(code, options):
    """The source as a shared library, compiled once."""
    names = re.findall(r"__global__ void (\w+)\(", code)
    launches = "".join(f'extern "C" void launch_{name}(unsigned b, unsigned n, unsigned s, void** a) {{ run({name}, b, n, s, a); }}\n'
                       for name in names)
    stem = _header().parent / hashlib.sha256(repr((code, options)).encode()).hexdigest()[:16]
    stem.with_suffix(".cpp").write_text(code + launches)
    subprocess.run([COMPILER, *FLAGS, "-shared", *(option for option in options if option.startswith("-D")), "-include", _header(),
                    "-o", stem.with_suffix(".so"), stem.with_suffix(".cpp")], check=True)
    return ctypes.CDLL(str(stem.with_suffix(".so")))


class RawModule:
    """CuPy's class of this name, for guarded arrays: a kernel is one launch."""

    def __init__(self, code, options=()):
        self.code, self.options = code, options
        launches.counts().calls.setdefault("RawModule", set()).add((0, "code", "options"))

    def get_function(self, name):
        """The kernel, which is called with its grid, its block and its arguments."""
        def kernel(grid, block, arguments):
            values = [_value(each) for each in arguments]
            pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
            side_by_side = min(block[0], BARRIER) if "__syncthreads" in self.code else 0
            getattr(_library(self.code, self.options), f"launch_{name}")(grid[0], block[0], side_by_side, pointers)
            launches.counts().launch(name, *([array._host for array, to in self._arrays(name, arguments) if to == written]
                                             for written in (False, True)))

        return kernel

    def _arrays(self, name, arguments):
        """(array, whether it is written) of a call: what the source does not declare const is."""
        declared = re.search(rf"void {name}\((.*?)\)", self.code, re.S)[1].split(",")
        for declaration, argument in zip(declared, arguments, strict=True):
            each, written = [argument], ["const" not in declaration]
            if struct := re.search(r"Parts<(\w+)>", declaration):
                fields = re.search(rf"struct {struct[1]} {{(.*?)}};", re.sub("//.*", "", self.code), re.S)[1].split(";")[:-1]
                written = ["const" not in field for field in fields for _ in field.split(",")]
                each = argument.entries
            yield from ((array, to) for array, to in zip(each, written * (len(each) // len(written)), strict=True) if hasattr(array, "_host"))


def _value(argument):
    """What CuPy passes to a kernel, as a host array of size one."""
    if argument is None:
        return np.zeros(1, np.int64)
    if isinstance(argument, np.ndarray):
        assert argument.size == 1
        return argument
    if isinstance(argument, (int, float)):
        return np.array([argument], np.float64 if isinstance(argument, float) else np.int64)
    assert argument.flags.c_contiguous
    return np.array([argument.data.ptr], np.uint64)


def nvrtc():
    """The library of the wheel nvidia-cuda-nvrtc-cu12, or None."""
    found = importlib.util.find_spec("nvidia.cuda_nvrtc") if importlib.util.find_spec("nvidia") else None
    libraries = [path for place in (found.submodule_search_locations if found else ()) for path in Path(place).glob("lib/libnvrtc.so.*")]
    return ctypes.CDLL(str(libraries[0])) if libraries else None


def compile_for(architecture, code, options):
    """PTX of CUDA source for an architecture such as sm_80, by NVRTC. Raises AssertionError with its log."""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    encoded = [option.encode() for option in (*options, f"--gpu-architecture={architecture.replace('sm', 'compute')}")]
    assert library.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"kernel.cu", 0, None, None) == 0
    status = library.nvrtcCompileProgram(program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    assert status == 0, log.value.decode()
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, ptx)
    return ptx.value.decode()
