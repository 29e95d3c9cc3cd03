"""The CUDA twins: each source compiles for GPUs, and run on the host gives what the definitions
give; mutants do not.
"""

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from minidp import device
from minidp.arrays import to_host
from minidp.audit import checks
from minidp.device import launching
from minidp.exact.integers import Integers
from minidp.exact.laws import Normals
from minidp.grads import Outer, OuterSum
from minidp.grads.sums import sum_of_squares
from minidp.kernels import TWINS, only
from minidp.mechanism.noise import released
from minidp.streams import Streams
from minidp.train import twins
from tests.conftest import BACKENDS
from tests.support import shim
from tests.support.cancelling import SUMS, cancelling_sum
from tests.support.guarded import guarded_backend

NO_COMPILER = "no C++ compiler: the CUDA sources were not executed"
MUTANTS = {  # what each source may not be changed to: the text, and what stands in its place
    "elementwise.cu": [
        ("x[i] <= 0 ? 0 : x[i]", "x[i] > 0 ? x[i] : 0"),
        ("- k * LN2_LOW", "+ k * LN2_LOW"),
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
        ("+ half];\n        __syncthreads();", "+ half];"),
    ],
    "sums.cu": [
        ("w[b] != 0 ? part.g[b * part.size + p] : 0", "part.g[b * part.size + p]"),
        ("w[b] * (double)value", "(double)value"),
        (" && weight >= 1 / (large * large)", ""),
        ("part.total[p] + sum : sum", "sum : sum"),
        ("sum += some, some = 0", "some = 0"),
        ("-= parts.part[k].g", "+= parts.part[k].g"),
        ("while (half > 1) {\n        __syncthreads();", "while (half > 1) {"),
    ],
    "images.cu": [
        (" - v.above", ""),
        (" || value != value", ""),
        ("place[at] ==", "place[at] >="),
    ],
    "noise.cu": [
        ("ROTATE(b ^ c, 7)", "ROTATE(b ^ c, 8)"),
        ("x[13] += (u32)(block >> 32)", "x[13] += 0"),
        ("rint(value", "floor(value"),
        ("* (i64)(u < thresholds[cell])", ""),
    ],
}


def rows(rng, *shape):
    """float32 numbers; where there are enough rows, one is zero, one has NaN and one infinity."""
    x = rng.standard_normal(shape).astype(np.float32)
    if shape[0] > 4:
        x[1], x.reshape(shape[0], -1)[2, 0], x.reshape(shape[0], -1)[3, -1] = 0, np.nan, np.inf
    return x


def upper_norms(rng, place):
    """Never below the truth, and hardly above: explicit ones are raised by what float32 may
    lose.
    """
    a, d = rng.standard_normal((2, 60, 40)).astype("float32")
    upper = to_host(sum_of_squares([Outer(place.asarray(a), place.asarray(d)).form("explicit")]))
    a, d = ((x.astype(np.longdouble) ** 2).sum(axis=1) for x in (a, d))
    yield (upper >= a * d).all() and (upper < 1.0001 * a * d).all()
    for case in SUMS:
        a, d, exact = cancelling_sum(rng, *case)
        found = to_host(OuterSum(place.asarray(a), place.asarray(d)).sq_norms_upper())
        yield all(Fraction(float(upper)) >= truth for upper, truth in zip(found, exact))


def sums(rng, place):
    """Added to others, in several turns, of more blocks than are added to each other, and with
    weights and norms that no product in float32 may have.
    """
    w, a, d = rng.uniform(0.1, 1, 11), rows(rng, 11, 2), rows(rng, 11, 9)
    w[1:4] = 0  # those that are not finite, too
    w[4:6], a[4:6], d[4] = (2.0**-125, 2.0**-60), 0, 0
    a[4:6, 0], d[4, 0] = (2.0**59, 2.0**61), 2.0**59
    column = rows(rng, 4200, 1)
    many = rng.uniform(size=4200), column, column, column[:, None], column[:, None]
    for arrays in ((w, a, d, rows(rng, 11, 4, 2), rows(rng, 11, 4, 9)), many):
        for old, together in ((0, 2**28), (2, 1), (4, 20)):
            with (
                mock.patch("minidp.grads.forms.LEAST_ROWS", 3),
                mock.patch.object(device, "TOGETHER", together),
            ):
                found = twins._summed(*map(place.asarray, arrays), rows=2, old=old)
                with only(place.xp, ()):
                    expected = twins._summed(*map(place.asarray, arrays), rows=2, old=old)
            for got, wanted in zip(map(to_host, found), map(to_host, expected), strict=True):
                yield twins._agree(1e-6, got, wanted)


def noise(rng, place):
    """Where the low word of the blocks' numbers carries."""
    found = []
    for move in (np.asarray, place.asarray):
        draws = Streams(5).noise(2**40)
        draws._block = 64 * (2**26 - 1)
        raws = [move(np.full(size, 100.0)) for size in (1, 513, 0, 700)]
        laws = [Normals(3.0), Normals(0.7), Normals(0.0), Integers(3e11, 2.0**-30)]
        noisy = released(raws, laws, draws, [[raw] for raw in raws], 0.25, "float32")
        found.append(np.concatenate([to_host(each) for each in noisy]))
    yield np.array_equal(*found)


# of each source: the cards whose checks its kernels compute, and more cases
USERS = {
    "elementwise.cu": ("exact.elementwise.exp", "exact.elementwise.log", "exact.elementwise.tanh"),
    "loss.cu": ("nn.loss.SoftmaxCrossEntropy",),
    "norms.cu": ("grads.forms.Outer", "grads.forms.Explicit", "mechanism.clip.clip_weights"),
    "sums.cu": ("grads.forms.Outer", "grads.forms.OuterSum", "arrays.in_pairs"),
    "images.cu": ("nn.pool.MaxPool2D",),
    "noise.cu": ("mechanism.noise.add_gaussian", "mechanism.noise.add_integers"),
}
CASES = {"norms.cu": [upper_norms], "sums.cu": [sums], "noise.cu": [noise]}


def faults(name, rng, place):
    """What checks of a source's users, the trials before training, and more cases find, one by
    one.
    """
    found = [own for (card, _), own in checks.load().items() if card in USERS[name]]
    for check in dict.fromkeys(sum(found, [])):
        outcome = checks.run(check, place)
        if not outcome.passed:
            yield str(outcome)
    for names, trial in twins.TRIALS.items():
        if fault := twins._fault(place.xp, names.split(), *trial):
            yield f"{names}: {fault}"
    for case in CASES.get(name, ()):
        with np.errstate(all="ignore"):
            if not all(case(rng, place)):
                yield case.__name__


@pytest.fixture(autouse=True)
def _side_by_side(monkeypatch):
    monkeypatch.setattr(shim, "BARRIER", 4)


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("place", [name for name in BACKENDS if name != "numpy"])
def test_the_twins_give_what_the_definitions_give(name, place, rng):
    if place == "guarded" and not shim.COMPILER:
        pytest.skip(NO_COMPILER)
    backend = BACKENDS[place]()
    with only(backend.xp, TWINS):
        assert [*faults(name, rng, backend)] == []


@pytest.mark.skipif(not shim.COMPILER, reason=NO_COMPILER)
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
    assert next(faults(name, rng, guarded_backend()), None)


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
