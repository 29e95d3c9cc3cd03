"""Checks of clipping, noise and the sanitizer."""

import math
from fractions import Fraction
from itertools import product
from unittest import mock

import numpy as np

from ... import mechanism
from ...backend import to_host
from ...grads.forms import Explicit, Outer, OuterSum
from ...host import memory
from ...mechanism import ClipGroup, Sanitizer, noise
from ...mechanism.rounding import in_blocks, products
from ...mechanism.sanitizer import Watcher
from ...streams import Streams
from ..equation import Case
from . import holds, measures, slack, states
from .exact_values import sq_norms

EXACT, SANITIZER = 1e-12, "mechanism.sanitizer.Sanitizer"
KEYS = [[(f"layer{n}", name) for name in "Wb"] for n in range(3)]  # of group l, parameter k
C, SIGMA = np.array([5.0, 2.0, 0.5]), np.array([1.5, 0.4, 3.0])


def _sanitizer(clip_norms, sigmas=np.zeros(3), **settings):
    groups = [ClipGroup(keys[0][0], keys, *each) for keys, *each in zip(KEYS, clip_norms, sigmas)]
    return Sanitizer(groups, **settings)


def _by_key(array_of):
    return {key: array_of(n, k) for n, keys in enumerate(KEYS) for k, key in enumerate(keys)}


def _stacked(arrays):
    return np.array([[to_host(arrays[key]) for key in keys] for keys in KEYS])


@measures("mechanism.clip.clip_weights", "N1", "excess over C in exact fractions, float32", 0.0)
def clipped_norms_stay_within_the_bound(bench):
    """The exact norm of w g as float32 products, with norms rounded up as in training and with
    norms rounded to nearest.

    Infinity if gradients are clipped far too much.
    """
    for trial in range(200):
        clip_norm, scale = 10.0 ** bench.rng.uniform(-3, 3, 2)
        g = bench.rng.standard_normal((1, int(bench.rng.integers(1, 40)))) * scale
        g = g.astype("float32")
        norm = np.linalg.norm(g.astype("float64"))
        nearest = bench.asarray(np.array([norm**2], "float32"))
        squares = nearest if trial % 2 else Explicit(bench.asarray(g)).sq_norms_upper()
        w = to_host(mechanism.clip_weights(squares, clip_norm))
        (clipped,) = sq_norms(w[:, None] * g)
        yield holds(not (math.sqrt(clipped) < min(norm, clip_norm) * (1 - 1e-4)))
        yield clipped / Fraction(clip_norm) ** 2 - 1


@states("mechanism.clip.clip_weights", "N1 N2")
def weights_and_norms(bench):
    """The norm is C divided by the weight, if C is far below it."""
    squares = np.array([0.0, *10.0 ** bench.rng.uniform(-2, 2, 50)])
    norms = 1e-15 / to_host(mechanism.clip_weights(bench.asarray(squares), 1e-15))
    for clip_norm in (2.5, 1e-15, math.inf):
        w = to_host(mechanism.clip_weights(bench.asarray(squares), clip_norm))
        yield Case({"sq": squares, "norm": norms, "w": w, "C": clip_norm})


@states("mechanism.clip.clip_weights", "N3", 0.0)
def weights_of_no_number(bench):
    squares = np.array([4.0, np.nan, np.inf, -np.inf])
    w = to_host(mechanism.clip_weights(bench.asarray(squares), 2.5))
    yield Case({"sq": squares, "w": w})


@states("mechanism.clip.clip_weights", "N4", 0.0)
def weights_of_very_long_gradients(bench):
    for clip_norm in (2.5, 1e-12):
        squares = (clip_norm * 2.0 ** np.array([119.9, 120.0, 120.1, 400.0])) ** 2
        w = to_host(mechanism.clip_weights(bench.asarray(squares), clip_norm))
        yield Case({"sq": squares, "w": w, "C": clip_norm})


@states("mechanism.clip.ClipGroup", "F1")
def noise_of_a_group(bench):
    for each in ({"C": 3.0, "sigma": 0.7}, {"C": math.inf, "sigma": 0.0}):
        yield Case({"noise_std": ClipGroup("g", KEYS[0], *each.values()).noise_std, **each})


@states("mechanism.noise.noise_grid", "F1", 0.0)
def grids_of_noise(bench):
    for std in (0.0, 1e-300, 1e-30, 0.5, 1 - 2.0**-53, 1.0, 3.7, 4.0, 1e30):
        yield Case({"noise_std": std, "g": noise.noise_grid(std)})


@states("mechanism.noise.add_gaussian", "F1 F2")
def noise_is_std_times_normal(bench):
    """Float32 holds all bits of such small multiples of the grid."""
    for dtype in ("float64", "float32"):
        raw = bench.rng.uniform(-1, 1, (5, 4)).astype(dtype)
        for array in (raw, raw.T):
            got = noise.add_gaussian(bench.asarray(array.copy("K")), 3.0, Streams(7).noise(2))
            z = Streams(7).noise(2).standard_normal(array.shape)
            given = {"raw": array, "released": to_host(got), "noise_std": 3.0, "z": z}
            yield Case({**given, "g": noise.noise_grid(3.0)})


class _Norms(Watcher):
    """Keeps the squared norms of each group."""

    def __init__(self):
        self.seen = {}

    def take_norms(self, group, sq_norms, example_weight):
        self.seen.setdefault(group, []).append(to_host(sq_norms))


@states(SANITIZER, "F1 N1")
@states(SANITIZER, "F3", case=np.array([1, 0.25, 0, 1.5, -1, np.nan, 0.5]))
def sums_of_clipped_gradients(bench, case=None):
    """For a lot of seven examples with or without weights, in three groups of two parameters, in
    every form of the gradients, at once and in batches.
    """
    a, d = (bench.rng.standard_normal((7, 3, 2, 4, n)) for n in (3, 5))
    g = np.einsum("blkti,blkto->blkio", a, d)
    single = a[..., 0, :], d[..., 0, :]
    outer = np.einsum("blki,blko->blkio", *single)
    yield _sums(bench, case, OuterSum, (a, d), g)
    yield _sums(bench, case, OuterSum, (a, d), g, "factored", bounds=(0, 4, 4, 7), size=9.0)
    yield _sums(bench, case, Outer, single, outer, "factored")
    yield _sums(bench, case, Outer, single, outer, "explicit", bounds=(0, 2, 7), size=math.inf)
    yield _sums(bench, case, Explicit, (g,), g)
    with mock.patch.object(memory, "EXPLICIT_BYTES", 240):  # two rows of one parameter
        yield _sums(bench, case, Outer, single, outer, "explicit", second=Explicit)


def _sums(bench, weights, kind, factors, g, strategy="auto", bounds=(0, 7), size=1.0, second=None):
    """The Case of a lot's gradients g, which a kind has as factors, clipped to `size` times C in
    batches between the bounds; second: the kind of each group's second parameter, if it has g.
    """
    watcher, total = _Norms(), None
    sanitizer = _sanitizer(size * C, strategy=strategy, watcher=watcher)
    for part in map(slice, bounds, bounds[1:]):

        def grad(n, k):
            if second and k:
                return second(bench.asarray(g[part, n, k].copy()))
            return kind(*(bench.asarray(factor[part, n, k].copy()) for factor in factors))

        weight = None if weights is None else bench.asarray(weights[part])
        total = sanitizer.add_clipped(_by_key(grad), total, weight)
    norms = np.sqrt([np.concatenate(parts) for parts in watcher.seen.values()]).T
    return Case({"raw": _stacked(total), "g": g, "norm": norms, "C": size * C, "v": weights})


@states(SANITIZER, "F2")
def each_group_gets_its_own_noise(bench):
    q = np.array([noise.noise_grid(std) for std in C * SIGMA])
    raw = np.moveaxis(bench.rng.integers(-(2**34), 2**34, (2, 5, 4, 3)) * q, 3, 0)
    sums, draws = _by_key(lambda n, k: bench.asarray(raw[n, k])), Streams(7).noise(0)
    released = _stacked(_sanitizer(C, SIGMA).release(sums, Streams(7).noise(0)))
    z = np.reshape([draws.standard_normal((5, 4)) for _ in range(6)], raw.shape)
    yield Case({"raw": raw, "released": released, "z": z, "C": C, "sigma": SIGMA, "q": q})


@measures(
    SANITIZER,
    "S1",
    "worst example by search: 1 - reached / claimed, but for the margin",
    1e-6,
)
def sensitivity_is_reached_and_not_exceeded(bench):
    sanitizer, examples = _sanitizer(C), list(_gradients_of_many_sizes(bench))
    claims = sanitizer.sensitivity(rounding=1 / (1 + 2.0**-21)).values()
    for group, claimed in enumerate(claims):

        def clipped(gradients):
            grads = _by_key(lambda n, k: Explicit(bench.asarray(gradients[:, n, k])))
            return _stacked(sanitizer.add_clipped(grads))[group].ravel()

        yield slack(claimed, clipped, examples)


def _gradients_of_many_sizes(bench):
    for dtype, scale in product(("f4", "f8"), 10.0 ** bench.rng.uniform(-2, 4, 15)):
        yield from (scale * bench.rng.standard_normal((2, 1, 3, 2, 4))).astype(dtype)


@states(SANITIZER, "S1 S2")
def sensitivities_and_the_event(bench):
    for count in (3, 1):
        given = {"C": C[:count], "sigma": SIGMA[:count]}
        sanitizer = _sanitizer(given["C"], given["sigma"])
        event, S = sanitizer.event(), [*sanitizer.sensitivity().values()]
        if count == 1:
            m, s = [event.noise_multiplier], event.noise_multiplier
        else:
            m, s = event.noise_multipliers, event.effective_noise_multiplier
        yield Case({**given, "S": np.array(S), "m": np.array(m), "s": s})


@states("mechanism.rounding.products", "F1 F2", EXACT)
def charge_for_float32_products(bench):
    for lot, strategy in ((60, "auto"), (600, "factored"), (2000, "auto")):
        found = products(lot, strategy)
        yield Case({"L": lot, "n": found.most, "R": found.rows, "factor": found.factor})


@states("mechanism.rounding.products", "F1 F3", EXACT)
def charge_for_float64_sums(bench):
    for lot, strategy, k in (
        (4000, "auto", 64),
        (600, "explicit", 1),
        (65_536, "explicit", 1),
        (65_536, "auto", 64),
    ):
        found = products(lot, strategy)
        yield Case({"L": lot, "n": found.most, "factor": found.factor, "k": k})


@states("mechanism.rounding.in_blocks", "F1")
def charge_for_float64_sums_in_blocks(bench):
    """No factor up to 767,610 rows in blocks of 1,024, and a growing one for more."""
    cases = [(rows, 1024) for rows in (1, 767_610, 767_611, 10**7, 2**41)]
    for rows, block in (*cases, (10**7, 64)):
        yield Case({"m": rows, "R": block, "factor": in_blocks(rows, block)})
