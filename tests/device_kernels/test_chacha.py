"""The CUDA twin of the noise: its source compiles for a GPU, and gives the definition's bits where it is run."""
import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from minidp import device_kernels
from minidp.host import chacha

SHIM = """
#include <cmath>
#define __device__
#define __global__
struct Three { unsigned long long x; } blockIdx, blockDim, threadIdx;
"""
LAUNCH = """
extern "C" void launch(long long threads, const unsigned* state, long long begin, double std, double grid, REAL* out, long long n) {
    blockDim.x = 64;
    for (blockIdx.x = 0; blockIdx.x < threads / 64; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < 64; threadIdx.x++) NAME(state, begin, std, grid, out, n);
}
"""


@pytest.mark.parametrize("real", ["float", "double"])
def test_the_source_gives_the_bits_of_the_definition_on_the_host(tmp_path, real):
    """Threads as loops of a C++ program."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler: the CUDA source was not executed")
    source, library = tmp_path / "chacha.cpp", tmp_path / "chacha.so"
    source.write_text(SHIM + device_kernels.source("chacha.cu") + LAUNCH)
    defined = [option for option in device_kernels.chacha_options(real) if option.startswith("-D")]
    subprocess.run([compiler, "-O1", "-ffp-contract=off", "-shared", "-fPIC", *defined, "-o", library, source], check=True)
    launch = ctypes.CDLL(str(library)).launch
    launch.argtypes = [ctypes.c_longlong, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_double, ctypes.c_double,
                       ctypes.c_void_p, ctypes.c_longlong]
    key, blocks = np.arange(1, 9, dtype=np.uint32), np.arange(2**32 - 192, 2**32 + 192, dtype=np.uint64)  # the low word carries
    z = chacha.normals(chacha.chacha(key, chacha.places(3, 5, blocks)))
    first = int(blocks[0]) * 8
    state = np.concatenate([chacha.CONSTANTS, key, chacha.places(3, 5, np.zeros(1, np.uint64))[:, 0]])
    raw = np.random.default_rng(0).standard_normal(2000).astype(np.float32 if real == "float" else np.float64)
    for begin, grid in ((0, 0.0), (100, 2.0**-18), (511, 2.0**-18)):
        out, stretches = raw.copy(), -(-(begin + raw.size) // 512)
        launch(64 * stretches, state.ctypes.data, first + begin, 4.0, grid, out.ctypes.data, out.size)
        expected = chacha.rounded(raw + 4.0 * z[begin : begin + raw.size], grid).astype(raw.dtype)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("real", ["float", "double"])
def test_the_source_compiles_for_a_gpu(real):
    found = importlib.util.find_spec("nvidia.cuda_nvrtc") if importlib.util.find_spec("nvidia") else None
    libraries = [path for place in (found.submodule_search_locations if found else ())
                 for path in Path(place).glob("lib/libnvrtc.so.*")]
    if not libraries:
        pytest.skip("nvidia-cuda-nvrtc-cu12 is not installed: the CUDA source was not compiled for a GPU")
    nvrtc, program, size = ctypes.CDLL(str(libraries[0])), ctypes.c_void_p(), ctypes.c_size_t()
    source = device_kernels.source("chacha.cu").encode()
    options = [option.encode() for option in device_kernels.chacha_options(real)]
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"chacha.cu", 0, None, None) == 0
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert status == 0, log.value.decode()
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    assert f"add_normals_{real}".encode() in ptx.value and b"fma.rn.f64" not in ptx.value  # nothing was contracted
