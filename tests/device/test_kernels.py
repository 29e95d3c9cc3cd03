"""CUDA kernels: each gives what its definition gives of random numbers, a changed one does not, and
all compile for GPUs.
"""

import re
import subprocess
from importlib import metadata

import numpy as np
import pytest

from minidp.arrays import to_host
from minidp.backend import Backend
from minidp.compiled import kernel
from minidp.fast import device_trial
from minidp.fast.device import launching
from minidp.fast.twins import KERNELS
from minidp.grads import Explicit, Outer
from minidp.grads.forms import LARGE, PositionSums
from minidp.mechanism import Sanitizer, flat_group, per_layer_groups
from minidp.mechanism.rounding import products
from minidp.mechanism.sanitizer import Watcher
from tests.support import counting, shim
from tests.support.guarded import guarded_backend, guarded_xp

PLACE = guarded_backend()
NO_COMPILER = "no C++ compiler: the CUDA source was not executed"
executed = pytest.mark.skipif(not shim.COMPILER, reason=NO_COMPILER)
ARCHITECTURES = (70, 80, 90)
MUTANTS = {  # kernels: of their text, what it may not be changed to
    "noise.cu add_normals": [
        ("ROTATE(b ^ c, 7)", "ROTATE(b ^ c, 8)"),
        ("x[13] += (u32)(block >> 32)", "x[13] += 0"),
        ("c * polynomial", "polynomial"),
        ("- begin;", ";"),
        ("rint(value / grid)", "floor(value / grid)"),
    ],
    "noise.cu release": [
        ("laws.part[k].end", "laws.part[0].end"),
        ("law.first + stretch - start", "law.first + stretch"),
        ("value + law.std * z[q]", "value + z[q]"),
        ("rint(value / law.grid)", "floor(value / law.grid)"),
        ("value * scale", "value"),
        ("theta[i] -= released", "theta[i] += released"),
        ("if (theta) theta", "if (!theta) theta"),
    ],
    "layers.cu relu": [("x[i] <= 0", "x[i] < 1"), ("x[i] <= 0 ? 0 : x[i]", "x[i] > 0 ? x[i] : 0")],
    "layers.cu relu_gradient": [("y[i] > 0", "y[i] >= 0")],
    "layers.cu softmax_cross_entropy": [
        ("target[b] < classes", "target[b] <= classes"),
        ("target[b] >= 0", "target[b] >= -1"),
        ("row[target[b]] - largest", "row[target[b]]"),
        ("known ? out[k]", "true ? out[k]"),
    ],
    "layers.cu add_bias": [("bias[i % width]", "bias[0]")],
    "layers.cu gather": [("row * width + i % width", "i"), ("ys[i / width] = y[row]", "ys[0] = 1")],
    "images.cu patches": [
        ("- v.above;", ";"),
        ("turned ? q % positions", "turned ? q / inputs"),
        ("column < v.width", "column <= v.width"),
    ],
    "images.cu fold": [("v.tall + k) * v.wide + l", "v.tall + l) * v.wide + k")],
    "images.cu pool": [("value > largest ||", "value >= largest ||"), ("|| value != value", "")],
    "images.cu pool_gradient": [("place[at] == k * v.wide + l", "place[at] == k + l")],
    "sums.cu row_norms": [("sqrt(block_sum(total))", "block_sum(total)")],
    "sums.cu weigh": [
        ("if (!isfinite(sq)) return 0;", ""),
        ("1 / (ratio <= 1 ? 1 : ratio)", "1 / ratio"),
        ("if (part.group != g) continue;", ""),
        ("square * part.raise", "square * 1.1"),
        ("clip.clip_norm[g], margin, most) * mine", "clip.clip_norm[g], margin, most)"),
        ("left ? weight * value : value", "value"),
        ("left ? value : weight * value", "weight * value"),
        ("weight == 0 ? 0 : part.a", "part.a"),
        ("found[part.group] : 0", "found[0] : 0"),
        ("* part.rows + row]", "* part.rows]"),
    ],
    "sums.cu add_weighted": [
        ("weight != 0 ? part.g", "true ? part.g"),
        ("part.add ? part.total[p] + sum : sum", "sum"),
        ("part.w ? part.w[j] : 1", "1"),
    ],
}
CHANGES = [(where, *change) for where, changes in MUTANTS.items() for change in changes]


class Kept(Watcher):
    """Keeps the norms that it is shown."""

    def __init__(self):
        self.seen = []

    def take_norms(self, group, sq_norms, example_weight):
        self.seen.append(to_host(sq_norms))


def make_case(rng):
    """(gradients of {key: form of host arrays}, sanitizer's settings, own weights or None)."""
    examples = int(rng.integers(1, 40))
    size = 10.0 ** rng.integers(-2, 3)

    def numbers(*shape):
        x = (rng.standard_normal(shape) * size).astype("float32")
        if rng.random() < 0.2 and x.size:
            x.ravel()[rng.integers(x.size)] = rng.choice([np.nan, np.inf, 1e30, 0])
        return x if rng.random() < 0.8 else np.asfortranarray(x)

    forms = {}
    for layer in range(int(rng.integers(1, 5))):
        inputs, outputs, positions = map(int, rng.integers(1, 9, 3))
        kind = rng.integers(3)
        arrays = [numbers(examples, inputs), numbers(examples, outputs)]
        if kind:
            arrays = [numbers(*(examples, positions, outputs)[:: 1 if kind == 2 else 2])]
        forms[f"layer{layer}", "W"] = (Outer, Explicit, PositionSums)[kind], arrays
    own = None
    if rng.random() < 0.6:
        own = np.where(rng.random(examples) < 0.3, 0.0, rng.random(examples))
    layout = (flat_group, per_layer_groups)[rng.integers(2)]
    return forms, (layout, float(rng.choice([0.1, 1.0, 50.0])), int(rng.integers(1, 9))), own


def summed(place, forms, settings, own):
    """({key: the clipped sum of two batches}, the squared norms)."""
    layout, clip_norm, rows = settings
    grads = {key: form(*map(place.asarray, arrays)) for key, (form, arrays) in forms.items()}
    sanitizer = Sanitizer(layout(grads, clip_norm, 1.0), watcher=Kept())
    rule, total = products(600, "auto")._replace(rows=rows), {}
    for _ in range(2):
        weight = None if own is None else place.asarray(own)
        sanitizer.add_clipped(grads, total, weight, rule)
    seen = sanitizer.watcher.seen[: len(sanitizer.groups)]
    return {key: to_host(array).astype(float) for key, array in total.items()}, seen


@executed
@pytest.mark.parametrize("seed", range(150))
def test_sums_of_random_gradients_are_those_of_the_definitions(seed):
    """Forms of all kinds in one start, beside one by one on the host."""
    case = make_case(np.random.default_rng(seed))
    with np.errstate(all="ignore"), counting.counting() as counted:
        found, seen = summed(PLACE, *case)
    with np.errstate(all="ignore"):
        expected, norms = summed(Backend.numpy(), *case)
    clip_norm, examples = case[1][1], len(next(iter(case[0].values()))[1][0])
    for key, array in expected.items():
        assert np.abs(found[key] - array).max() <= 1e-5 * clip_norm * examples
    for one, other in zip(seen, norms, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    outers = sum(form is Outer for form, _ in case[0].values())
    copies = sum(not array.flags.c_contiguous for _, arrays in case[0].values() for array in arrays)
    weighing = 5 * (case[2] is not None)  # which own weights are in [0, 1]
    assert counted.launches <= 2 * (3 + outers + copies + weighing)


@executed
def test_a_factor_too_long_for_float32_counts_as_not_finite():
    a = np.array([[LARGE * 1.01], [1.0]], "float32")
    forms = {("a", "W"): (Outer, [a, np.ones((2, 1), "float32") * 1e-6])}
    found, _ = summed(PLACE, forms, (flat_group, 1e6, 30), None)
    expected, _ = summed(Backend.numpy(), forms, (flat_group, 1e6, 30), None)
    np.testing.assert_allclose(found["a", "W"], expected["a", "W"])
    assert found["a", "W"] < 3e-6


@executed
@pytest.mark.parametrize("where, text, other", CHANGES)
def test_a_changed_kernel_is_left_out_by_the_trial(where, text, other, monkeypatch, capsys):
    """It, or what shares its text, and nothing is used that is not right."""
    file, name = where.split()
    source = launching.source

    def changed(which):
        found = source(which)
        if which != file:
            return found
        begin = 0 if name == "add_normals" else found.index(f"__global__ void {name}(")
        if found.find(text, begin) < 0 or name == "weigh":
            begin = 0
        assert text in found[begin:]
        return found[:begin] + found[begin:].replace(text, other, 1 if begin else -1)

    monkeypatch.setattr(launching, "source", changed)
    monkeypatch.setattr(launching, "_kernel", launching._kernel.__wrapped__)
    right = device_trial.right_on.__wrapped__(guarded_xp, 0)
    assert set(right) < set(KERNELS)
    assert capsys.readouterr().err.startswith("NOTICE: GPU 0 computes without these compiled")


@executed
def test_every_kernel_is_tried_and_taken():
    kernels = set()
    for file in launching.FILES:
        kernels |= set(re.findall(r"__global__ void (\w+)\(", launching.source(file)))
    assert kernels == {where.split()[1] for where in MUTANTS}
    tried = {name for names in device_trial.TRIALS for name in names.split()}
    assert tried == set(KERNELS) == device_trial.right_on(guarded_xp, 0)
    x = PLACE.asarray(np.ones(3))
    assert kernel("relu", x) is None and kernel("release", x.astype("float32")) is None


def ptx_for(architecture, file):
    """A source as NVRTC compiles it for GPUs of a compute capability."""
    nvrtc = pytest.importorskip(
        "cupy", reason="CUPY MISSING: the CUDA source was not compiled for a GPU"
    ).cuda.nvrtc
    if nvrtc.getVersion() >= (13,) and architecture < 75:
        pytest.skip("CUDA 13 compiles for compute capability 7.5 and newer")
    program = nvrtc.createProgram(launching.source(file), file, (), ())
    options = *launching.options(), f"--gpu-architecture=compute_{architecture}"
    nvrtc.compileProgram(program, options)
    return nvrtc.getPTX(program).decode()


@pytest.mark.cupy
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("file", launching.FILES)
def test_the_sources_compile_for_a_gpu(architecture, file):
    ptx = ptx_for(architecture, file)
    assert f".target sm_{architecture}" in ptx
    if file == "noise.cu":
        # nothing was contracted, and the assembler may contract nothing that is rounded by itself
        assert not re.search(r"\bfma\b|\b(add|sub|mul)\.f64", ptx)


def parameter_bytes(ptx):
    """The largest number of bytes of parameters that an entry of PTX text takes."""
    found = []
    for entry in ptx.split(".entry")[1:]:
        given = re.findall(r"\.(b|u|s|f)(\d+) \w+_param_\d+(?:\[(\d+)\])?", entry.split(")")[0])
        found.append(sum(int(bits) // 8 * int(count or 1) for _, bits, count in given))
    return max(found)


@pytest.mark.cupy
@pytest.mark.ptxas
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("file", launching.FILES)
def test_the_assembler_takes_them_without_spills(architecture, file, tmp_path):
    try:
        wheel = metadata.files("nvidia-cuda-nvcc-cu12") or ()
    except metadata.PackageNotFoundError:
        pytest.skip("PTXAS MISSING: the kernels were not assembled for a GPU")
    (ptxas,) = (each.locate() for each in wheel if each.name == "ptxas")
    ptx = ptx_for(architecture, file)
    (tmp_path / "source.ptx").write_text(ptx)
    done = subprocess.run(
        [ptxas, "--verbose", f"--gpu-name=sm_{architecture}", "source.ptx", "-o", "out.cubin"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    spilled = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    assert spilled and set(spilled) == {("0", "0")}
    assert 0 < parameter_bytes(ptx) < 4096
