"""The noise kernel: it compiles for GPUs, and run on the host gives the host's bits; mutants do
not.
"""

import re
import subprocess
from importlib import metadata

import numpy as np
import pytest

from minidp import device
from minidp.arrays import to_host
from minidp.compiled import ON_A_DEVICE, only
from minidp.host.chacha import STRETCH
from minidp.mechanism.noise import add_gaussian
from minidp.streams import Streams
from tests.conftest import BACKENDS
from tests.support import shim
from tests.support.guarded import guarded_backend

NO_COMPILER = "no C++ compiler: the CUDA source was not executed"
MUTANTS = [  # what the source may not be changed to: the text, and what stands in its place
    ("ROTATE(b ^ c, 7)", "ROTATE(b ^ c, 8)"),
    ("x[13] += (u32)(block >> 32)", "x[13] += 0"),
    ("c * polynomial", "polynomial"),
    ("- begin;", ";"),
    ("i >= size", "i > size"),
    ("rint(value", "floor(value"),
]
ARCHITECTURES = (70, 80, 90)
CASES = [  # number of the first one drawn, how many, std, grid
    (0, 1, 3.0, 0.0),
    (0, 513, 0.7, 2.0**-21),
    (700, 3000, 3.0, 2.0**-19),
    (511, 2, 1e-3, 2.0**-30),
    (2**32 * 8 - 512, 2000, 3.0, 2.0**-19),  # where the low word of the blocks' numbers carries
    (40, 0, 1.0, 0.0),
]


def same_bits(place):
    """The kernel beside Draws.add_normals, case by case; what lies behind `out` stays."""
    draws = Streams(5).noise(2**40)
    for begin, size, std, grid in CASES:
        first, at = divmod(begin, STRETCH)
        here, there = np.full(size, 100.0), place.asarray(np.full(size + 8, 100.0))
        draws.add_normals(here, std, grid, place=(first, at))
        device.add_normals(draws.state(), begin, std, grid, there[:size])
        yield to_host(there).tobytes() == here.tobytes() + np.full(8, 100.0).tobytes()


@pytest.mark.parametrize("place", [name for name in BACKENDS if name != "numpy"])
def test_the_kernel_gives_the_hosts_bits(place):
    if place == "guarded" and not shim.COMPILER:
        pytest.skip(NO_COMPILER)
    assert all(same_bits(BACKENDS[place]()))


@pytest.mark.parametrize("place", [name for name in BACKENDS if name != "numpy"])
@pytest.mark.parametrize("names", [ON_A_DEVICE, ()], ids=["kernel", "host"])
def test_a_release_on_a_device_has_the_hosts_bits(place, names, rng):
    """Of sums in any order and dtype, one after another from the same draws."""
    backend, raw = BACKENDS[place](), rng.standard_normal((40, 30)).astype("float32")
    found = []
    for move in (np.asarray, backend.asarray):
        draws = Streams(5).noise(0)
        with only(backend.xp, names):
            released = [
                add_gaussian(move(raw).T, 3.0, draws, [move(raw).T], 0.25, "float32"),
                add_gaussian(move(raw), 0.0, draws),
                add_gaussian(move(raw[:0]), 3.0, draws),
                add_gaussian(move(raw.astype("float64")), 0.7, draws),
            ]
        assert all(type(each) is type(move(raw)) for each in released)
        found.append([to_host(each) for each in released])
    for host, there in zip(*found, strict=True):
        assert host.dtype == there.dtype
        np.testing.assert_array_equal(there, host)


@pytest.mark.skipif(not shim.COMPILER, reason=NO_COMPILER)
@pytest.mark.parametrize("text, other", MUTANTS)
def test_a_mutant_gives_something_else(text, other, monkeypatch):
    changed = device.source().replace(text, other)
    assert changed != device.source()
    monkeypatch.setattr(device, "source", lambda: changed)
    monkeypatch.setattr(device, "_kernel", device._kernel.__wrapped__)
    assert not all(same_bits(guarded_backend()))


def ptx_for(architecture):
    """The source as NVRTC compiles it for GPUs of a compute capability."""
    nvrtc = pytest.importorskip(
        "cupy", reason="CUPY MISSING: the CUDA source was not compiled for a GPU"
    ).cuda.nvrtc
    if nvrtc.getVersion() >= (13,) and architecture < 75:
        pytest.skip("CUDA 13 compiles for compute capability 7.5 and newer")
    program = nvrtc.createProgram(device.source(), "noise.cu", (), ())
    nvrtc.compileProgram(program, (*device.options(), f"--gpu-architecture=compute_{architecture}"))
    return nvrtc.getPTX(program).decode()


@pytest.mark.cupy
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_source_compiles_for_a_gpu(architecture):
    ptx = ptx_for(architecture)
    assert f".target sm_{architecture}" in ptx
    # nothing was contracted, and the assembler may contract nothing that is rounded by itself
    assert not re.search(r"\bfma\b|\b(add|sub|mul)\.f64", ptx)


def parameter_bytes(ptx):
    """Bytes of the parameters that an entry of PTX text takes, without gaps between them."""
    entry = ptx[ptx.index(".entry") :]
    found = re.findall(r"\.(b|u|s|f)(\d+) \w+_param_\d+(?:\[(\d+)\])?", entry[: entry.index(")")])
    return sum(int(bits) // 8 * int(count or 1) for _, bits, count in found)


@pytest.mark.cupy
@pytest.mark.ptxas
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_assembler_takes_it_without_spills(architecture, tmp_path):
    try:
        wheel = metadata.files("nvidia-cuda-nvcc-cu12") or ()
    except metadata.PackageNotFoundError:
        pytest.skip("PTXAS MISSING: the noise kernel was not assembled for a GPU")
    (ptxas,) = (file.locate() for file in wheel if file.name == "ptxas")
    ptx = ptx_for(architecture)
    (tmp_path / "noise.ptx").write_text(ptx)
    done = subprocess.run(
        [ptxas, "--verbose", f"--gpu-name=sm_{architecture}", "noise.ptx", "-o", "noise.cubin"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in done.stderr
    assert (tmp_path / "noise.cubin").stat().st_size > 0
    assert 64 + 6 * 8 == parameter_bytes(ptx) < 4096
