"""The CUDA twins: each source compiles for GPUs, and run on the host gives what the definitions
give; mutants do not.
"""

from fractions import Fraction
from functools import partial
from unittest import mock

import numpy as np
import pytest

from minidp import device
from minidp.audit import checks
from minidp.backend import Backend, row_norms, to_host
from minidp.device import launching
from minidp.errors import DeviceUnavailableError
from minidp.exact.laws import Normals
from minidp.grads import Outer, OuterSum
from minidp.grads.sums import sum_of_squares
from minidp.kernels import TWINS, only
from minidp.mechanism import clip
from minidp.mechanism.noise import add_gaussian, add_integers, released
from minidp.nn import SoftmaxCrossEntropy
from minidp.nn.window import Window
from minidp.streams import Streams
from minidp.train import twins
from tests.support import shim
from tests.support.cancelling import SUMS, cancelling_sum
from tests.support.guarded import guarded_backend

place = guarded_backend()
needs_compiler = pytest.mark.skipif(
    not shim.COMPILER, reason="no C++ compiler: the CUDA sources were not executed"
)
SPECIAL = np.array([0.0, -0.0, 1e-45, -3e38, 88.8, -104.0, np.inf, -np.inf, np.nan], np.float32)


def both(compute, *arrays, tolerance=0.0):
    """What `compute` gives of a device's arrays by kernels and by definitions is equal, or off by
    `tolerance` of the largest.
    """
    given = [*map(place.asarray, arrays)]
    with np.errstate(all="ignore"):
        with only(place.xp, TWINS):
            found = twins._listed(compute(*given))
        with only(place.xp, ()):
            expected = twins._listed(compute(*given))
    assert len(found) == len(expected)
    assert all(map(partial(twins._agree, tolerance), found, expected))


def rows(rng, *shape):
    """float32 numbers; where there are enough rows, one is zero, one has NaN and one infinity."""
    x = rng.standard_normal(shape).astype(np.float32)
    if shape[0] > 4 and x.size:
        x[1], x.reshape(shape[0], -1)[2, 0], x.reshape(shape[0], -1)[3, -1] = 0, np.nan, np.inf
    return x


def coordinates(rng):
    for size in (0, 1, 517):
        x = np.concatenate([SPECIAL, rng.standard_normal(size).astype(np.float32) * 30])[:, None]
        both(twins._coordinates, x, rng.standard_normal(x.shape).astype(np.float32))


def losses(rng):
    for examples, classes, dtype in (
        (0, 3, int),
        (1, 1, int),
        (300, 10, np.int32),
        (7, 33, np.uint8),
    ):
        least = 0 if dtype is np.uint8 else -1
        target = rng.integers(least, classes + 2, examples).astype(dtype)
        both(SoftmaxCrossEntropy(), 20 * rows(rng, examples, classes), target)


def norms(rng):
    for examples, inputs, outputs in ((0, 3, 2), (1, 1, 1), (6, 67, 1), (9, 5, 70)):
        a, d = rows(rng, examples, inputs), rows(rng, examples, outputs)
        both(row_norms, a, tolerance=1e-14)
        both(twins._formed, a, d, tolerance=1e-13)
        both(twins._squares, a, d, tolerance=1e-13)


def positions(rng):
    for examples, places, inputs, outputs in (
        (0, 3, 2, 2),
        (1, 1, 1, 1),
        (6, 9, 5, 3),
        (5, 33, 2, 9),
    ):
        a, d = rows(rng, examples, places, inputs), rows(rng, examples, places, outputs)
        a[:1], d[:1], d[:1, 1::2], d[:1, 2 * (places // 2) :] = 1, 1, -1, 0  # a sum that is 0
        both(twins._gram_norms, a, d, tolerance=1e-11)


def upper_norms(rng):
    """Never below the truth, and hardly above: explicit ones are raised by what float32 may
    lose.
    """
    for label in (("grads.forms.Explicit", "N2"), ("grads.forms.OuterSum", "N3")):
        for check in checks.load()[label]:
            outcome = checks.run(check, place)
            assert outcome.passed, outcome
    a, d = rng.standard_normal((2, 60, 40)).astype("float32")
    upper = to_host(sum_of_squares([Outer(place.asarray(a), place.asarray(d)).form("explicit")]))
    a, d = ((x.astype(np.longdouble) ** 2).sum(axis=1) for x in (a, d))
    assert (upper >= a * d).all() and (upper < 1.0001 * a * d).all()
    for case in SUMS:
        a, d, exact = cancelling_sum(rng, *case)
        found = to_host(OuterSum(place.asarray(a), place.asarray(d)).sq_norms_upper())
        assert all(Fraction(float(upper)) >= truth for upper, truth in zip(found, exact))


def weights(rng):
    sq = np.concatenate(
        [SPECIAL.astype(float)[:3], [np.inf, np.nan, 1e-320, 1e300], rng.exponential(5, 300)]
    )
    for clip_norm in (1.5, 1e12, np.inf):
        both(partial(clip.clip_weights, clip_norm=clip_norm), sq)


def sums(rng):
    for examples, places, inputs, outputs in (
        (0, 2, 3, 4),
        (1, 1, 1, 1),
        (7, 3, 5, 2),
        (11, 4, 2, 9),
    ):
        w = rng.uniform(0.1, 1, examples)
        w[1:4] = 0  # those that are not finite, too
        a, d = rows(rng, examples, inputs), rows(rng, examples, outputs)
        if examples > 5:  # no product in float32 may have such a weight, nor such a norm
            w[4:6], a[4:6], d[4] = (2.0**-125, 2.0**-60), 0, 0
            a[4:6, 0], d[4, 0] = (2.0**59, 2.0**61), 2.0**59
        factors = a, d, rows(rng, examples, places, inputs), rows(rng, examples, places, outputs)
        for old, together in ((0, 2**28), (2, 1), (4, 20)):
            with (
                mock.patch("minidp.grads.forms.ROWS", 3),
                mock.patch.object(device, "TOGETHER", together),
            ):
                for most, tolerance in ((0, 1e-13), (2, 1e-6)):
                    summed = partial(twins._summed, rows=most, old=old)
                    both(summed, w, *factors, tolerance=tolerance)


def pairs(rng):
    for shape, axis in (
        ((3, 0, 2), 1),
        ((0, 3), 1),
        ((4, 1, 3), 1),
        ((5, 7), 1),
        ((3, 9, 10, 4), (1, 2)),
        ((2, 64), (1,)),
    ):
        both(partial(twins._pairs, axis=axis), rows(rng, *shape))


def images(rng):
    for shape, size, stride, padding in (
        ((2, 5, 6, 3), (3, 2), (1, 1), "same"),
        ((0, 5, 5, 1), (2, 2), (2, 2), "valid"),
        ((5, 7, 5, 2), (4, 3), (2, 2), "same"),
        ((3, 8, 8, 1), (2, 2), (3, 3), 1),
        ((6, 6, 4, 2), (3, 3), (1, 2), "valid"),
    ):
        window = Window(size, stride, padding)
        x = rng.integers(-3, 3, shape).astype(np.float32)  # ties
        if shape[0] > 4:
            x[1, 2, 3, 0], x[2, 0, 0, 0] = np.nan, np.inf
        counts = window.output("images", shape[1:])
        seen = rows(rng, shape[0], *counts, *size, shape[3])
        both(partial(twins._patches, window=window), x, seen)
        dy = rows(rng, shape[0], *counts, shape[3])
        both(partial(twins._maxima, window=window), x, dy)


def noise(rng):
    for dtype, sizes in (("float32", (1, 513, 0, 512)), ("float64", (700,))):
        raws, stds = [rng.standard_normal(size) * 100 for size in sizes], (3.0, 0.7, 2.0, 0.0)
        laws = [Normals(std) for std in stds[: len(sizes)]]
        host, there = Streams(5).noise(2**40), Streams(5).noise(2**40)
        # the low word of the next blocks' numbers carries
        host._block = there._block = 64 * (2**26 - 1)
        got = released([*map(place.asarray, raws)], laws, there, (), 0.25, dtype)
        for one, raw, std in zip(got, raws, stds):
            np.testing.assert_array_equal(
                to_host(one), add_gaussian(raw, std, host, (), 0.25, dtype)
            )
        for units in (2.0**28, 3e11):
            added = []
            for move, draws in ((place.asarray, there), (np.asarray, host)):
                raw, more = move(np.rint(raws[0])), (move(raws[0] * 0 + 7),)
                added.append(add_integers(raw, units, 2.0**-30, draws, more, 0.5, dtype))
            np.testing.assert_array_equal(to_host(added[0]), added[1])
        assert host._block == there._block


def descent(rng):
    both(twins._descended, rows(rng, 7, 300), rows(rng, 7, 300))


CASES = {
    "elementwise.cu": [coordinates],
    "loss.cu": [losses],
    "norms.cu": [norms, positions, upper_norms, weights],
    "sums.cu": [sums, pairs, descent],
    "images.cu": [images],
    "noise.cu": [noise],
}
MUTANTS = {  # what each source may not be changed to: the text, and what stands in its place
    "elementwise.cu": [
        ("x[i] <= 0 ? 0 : x[i]", "x[i] > 0 ? x[i] : 0"),
        ("y[i] > 0 ? dy", "y[i] >= 0 ? dy"),
        ("bits + 1022", "bits + 1021"),
        ("x < 0 ? -y : y", "y"),
        ("- k * LN2_LOW", "+ k * LN2_LOW"),
        ("x > 0 ? (double)x : NAN", "NAN"),
    ],
    "loss.cu": [
        ("k < n - half;", "k < n - half - 1;"),
        ("< (u64)classes", "<= (u64)classes"),
        ("sum[0] - (float)", "sum[0] + (float)"),
        (" - (row[", " + (row["),
    ],
    "norms.cu": [
        ("square * part.raise", "square"),
        ("p < size; p += blockDim.x) total", "p < size - 1; p += blockDim.x) total"),
        ("u <= t", "u < t"),
        ("? 2 * (A", "? (A"),
        ("+ lost", "- lost"),
        ("raised <= least ? least : ", ""),
        ("ratio <= 1 ? 1 : ", ""),
        ("(1 + margin)", "1"),
        ("isfinite(sq[b])", "true"),
        ("o >= outputs", "o > outputs"),
        ("i += down, o", "o"),
        ("total += (double)value * (double)value", "total += value"),
        ("value;\n    __syncthreads();", "value;"),
        ("+ half];\n        __syncthreads();", "+ half];"),
    ],
    "sums.cu": [
        (">= parts.part[k].size", "> parts.part[k].size"),
        ("w[b] != 0 ? part.g[b * part.size + p] : 0", "part.g[b * part.size + p]"),
        ("w[b] * (double)value", "(double)value"),
        ("b += turns", "b += 1"),
        ("sum;\n        __syncthreads();", "sum;"),
        (" && weight >= 1 / (large * large)", ""),
        ("f.a_norms[b] <= large && ", ""),
        ("left == (f.weigh_a != 0)", "true"),
        ("left ? q / rows % inputs", "left ? q % inputs"),
        ("part.total[p] + sum : sum", "sum : sum"),
        ("j < part.count", "j < part.count - 1"),
        ("-= parts.part[k].g", "+= parts.part[k].g"),
        ("(n - half) * width ? x", "half * width ? x"),
        ("while (half > 1) {\n        __syncthreads();", "while (half > 1) {"),
    ],
    "images.cu": [
        (" - v.above", ""),
        ("row < v.height &&", "row <= v.height &&"),
        ("turned ? q / positions", "turned ? q % positions"),
        ("k = down % v.down", "k = 0"),
        ("&& column < v.columns", ""),
        (" || largest != largest", ""),
        ("rest -= taken;", ""),
        ("place <= k", "place < k"),
    ],
    "noise.cu": [
        ("ROTATE(b ^ c, 7)", "ROTATE(b ^ c, 8)"),
        ("x[13] += (u32)(block >> 32)", "x[13] += 0"),
        ("x[j + 12] & 1", "x[j + 12] & 2"),
        ("value += part.std", "value -= part.std"),
        ("rint(value", "floor(value"),
        ("i >= part.n", "i >= part.n - 1"),
        ("fields[q] >>= bits + 1", "fields[q] >>= bits"),
        ("part.sets) * 64 + lane, x);\n        if", "1) * 64 + lane, x);\n        if"),
        ("* (i64)(u < thresholds[cell])", ""),
        ("value * part.scale", "value"),
    ],
}


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
    monkeypatch.setitem(globals(), "place", gpu)
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
