"""Checks of the compiled kernels: layers, losses and sums in float32, and noise, compared with the
definitions.

On a GPU, where noise alone has a kernel, CuPy's array code is compared with NumPy's.
"""

from functools import partial

import numpy as np

from ...compiled import only
from ...grads.forms import Explicit, Outer, OuterSum
from ...grads.sums import add_weighted_sums
from ...streams import Streams
from ..card import labels_of
from ..cases import LAYERS, LOSSES, to_backend
from ..names import card_of
from . import COMPILED, measures, worst

EXAMPLES, ROUNDED = 70, 1e-5


def _apart(bench, compute, *arrays, layer=None):
    """How far what compute(*arrays) lists with kernels is from what it lists by definitions."""
    with only(np, ()):
        expected = compute(*arrays)
    if layer:
        to_backend(layer, bench.backend)
    found = compute(*map(bench.asarray, arrays))
    for got, wanted in zip(found, expected, strict=True):
        yield worst(got, wanted)


def _of_a_layer(bench, case):
    """The output, its gradient, and norms and sums of those of the parameters."""
    layer, x = case.make(bench.rng, "float32"), case.input(bench.rng, EXAMPLES, "float32")

    def compute(x, w):
        y, cache = layer.forward(x)
        grads = layer.param_grads(y, cache).values()
        sums = [each for g in grads for each in (g.sq_norms_upper(), g.weighted_sum(w))]
        return [y, layer.backward(y, cache), *sums]

    return _apart(bench, compute, x, bench.rng.uniform(0, 1, EXAMPLES), layer=layer)


def _of_a_loss(bench, case):
    z = bench.rng.normal(0, 5, (EXAMPLES, *case.shape)).astype("float32")
    target = case.target(bench.rng, EXAMPLES, case.shape)
    target = target.astype("float32") if target.dtype.kind == "f" else target
    return _apart(bench, case.loss, z, target)


def _register(case, kind, measure):
    card = card_of(kind)
    label = next(iter(labels_of(card)))
    measures(card, label, COMPILED, ROUNDED, case, f"kernels of {case.name}")(measure)


for _loss in LOSSES:
    _register(_loss, type(_loss.loss), _of_a_loss)

for _layer in LAYERS:
    _register(_layer, type(_layer.make(np.random.default_rng(0), "float32")), _of_a_layer)


@measures("grads.forms.Explicit", "P1", COMPILED, ROUNDED)
@measures("grads.forms.Outer", "P1", COMPILED, ROUNDED)
@measures("grads.forms.OuterSum", "P1", COMPILED, ROUNDED)
def sums_of_several(bench):
    """In products of 32 rows; those without weight are not numbers."""

    def compute(w, a, d):
        grads = {"a": Outer(a[:, 0], d[:, 0]), "b": Explicit(d), "c": OuterSum(a, d)}
        total = {}
        add_weighted_sums(grads, w, total, 32)
        return [total[key] for key in grads]

    w = bench.rng.choice([0, 0.5, 1], EXAMPLES)
    a, d = (bench.rng.standard_normal((EXAMPLES, 3, n)).astype("float32") for n in (130, 9))
    a[w == 0] = np.nan
    return _apart(bench, compute, w, a, d)


@measures("host.chacha.chacha", "F1", COMPILED, 0.0)
@measures("host.chacha.normals", "F3", COMPILED, 0.0)
def words_and_noise(bench):
    """Words, and the part from some place on of a release's noise."""

    def compute(size, start):
        draws = Streams(7).noise(2)
        normals = [np.ones(size, dtype) for dtype in ("f4", "f8")]
        words = draws.words(size)
        for normal in normals:
            draws.add_normals(normal, 4.0, 2.0**-18, place=(20, start))
        return [words, *normals]

    for start, size in ((0, 1), (511, 2), (700, 3000), (40, 0)):
        yield from _apart(bench, partial(compute, size, start))
