"""The CUDA twins: each source compiles for GPUs, and run on the host gives what the definitions
give; mutants do not.
"""

import pytest

from minidp.backend import Backend
from minidp.device import launching
from minidp.errors import DeviceUnavailableError
from tests.device import cases
from tests.device.cases import CASES
from tests.support import shim

needs_compiler = pytest.mark.skipif(
    not shim.COMPILER, reason="no C++ compiler: the CUDA sources were not executed"
)
MUTANTS = {  # what each source may not be changed to: the text, and what stands in its place
    "elementwise.cu": [
        ("x[i] <= 0 ? 0 : x[i]", "x[i] > 0 ? x[i] : 0"),
        ("- k * LN2_LOW", "+ k * LN2_LOW"),
        ("x > 0 ? (double)x : NAN", "NAN"),
    ],
    "loss.cu": [
        ("k < n - half;", "k < n - half - 1;"),
        (" - (row[", " + (row["),
    ],
    "norms.cu": [
        ("square * part.raise", "square"),
        ("u <= t", "u < t"),
        ("+ lost", "- lost"),
        ("ratio <= 1 ? 1 : ", ""),
        ("isfinite(sq[b])", "true"),
        ("o >= outputs", "o > outputs"),
        ("+ half];\n        __syncthreads();", "+ half];"),
    ],
    "sums.cu": [
        (">= parts.part[k].size", "> parts.part[k].size"),
        ("w[b] != 0 ? part.g[b * part.size + p] : 0", "part.g[b * part.size + p]"),
        ("w[b] * (double)value", "(double)value"),
        (" && weight >= 1 / (large * large)", ""),
        ("left ? q / rows % inputs", "left ? q % inputs"),
        ("part.total[p] + sum : sum", "sum : sum"),
        ("sum += some, some = 0", "some = 0"),
        ("-= parts.part[k].g", "+= parts.part[k].g"),
        ("while (half > 1) {\n        __syncthreads();", "while (half > 1) {"),
    ],
    "images.cu": [
        (" - v.above", ""),
        ("turned ? q / positions", "turned ? q % positions"),
        (" || value != value", ""),
        ("place[at] ==", "place[at] >="),
    ],
    "noise.cu": [
        ("ROTATE(b ^ c, 7)", "ROTATE(b ^ c, 8)"),
        ("x[13] += (u32)(block >> 32)", "x[13] += 0"),
        ("rint(value", "floor(value"),
        ("fields[q] >>= bits + 1", "fields[q] >>= bits"),
        ("* (i64)(u < thresholds[cell])", ""),
        ("value * part.scale", "value"),
    ],
}


@pytest.fixture(autouse=True)
def _side_by_side(monkeypatch):
    monkeypatch.setattr(shim, "BARRIER", 4)


each_case = pytest.mark.parametrize("case", sum(CASES.values(), []), ids=lambda case: case.__name__)


@needs_compiler
@each_case
def test_the_twin_gives_what_the_definition_gives(case, rng):
    case(rng)


@each_case
def test_on_a_gpu_the_twin_gives_what_the_definition_gives(case, rng, monkeypatch):
    try:
        gpu = Backend.cupy()
    except DeviceUnavailableError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(cases, "place", gpu)
    case(rng)


@needs_compiler
@pytest.mark.parametrize(
    "name, text, other",
    [(name, *mutant) for name, mutants in MUTANTS.items() for mutant in mutants],
)
def test_a_mutant_gives_something_else(name, text, other, rng, monkeypatch):
    source = launching.source
    assert text in source(name)
    monkeypatch.setattr(
        launching,
        "source",
        lambda file: source(file).replace(text, other) if file == name else source(file),
    )
    monkeypatch.setattr(launching, "_kernel", launching._kernel.__wrapped__)
    with pytest.raises(AssertionError):
        for case in CASES[name]:
            case(rng)


@pytest.mark.cupy
@pytest.mark.parametrize("name", launching.FILES)
@pytest.mark.parametrize("architecture", [70, 80, 90])
def test_the_source_compiles_for_a_gpu(name, architecture):
    nvrtc = pytest.importorskip(
        "cupy", reason="CUPY MISSING: the CUDA sources were not compiled for a GPU"
    ).cuda.nvrtc
    program = nvrtc.createProgram(launching.source(name), name, (), ())
    nvrtc.compileProgram(
        program, (*launching.options(), f"--gpu-architecture=compute_{architecture}")
    )
    ptx = nvrtc.getPTX(program).decode()
    assert f".target sm_{architecture}" in ptx and "fma.rn" not in ptx  # nothing was contracted
