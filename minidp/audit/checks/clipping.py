"""Checks of clipping, noise and the sanitizer."""

import math
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np

from ... import mechanism
from ...backend import to_host
from ...exact import integers, laws
from ...exact.laws import Normals
from ...grads.forms import Explicit, Outer, OuterSum
from ...mechanism import ClipGroup, Sanitizer, flat_group, noise, per_layer_groups
from ...mechanism.rounding import in_blocks, products
from ...mechanism.sanitizer import Watcher
from ...privacy.events import JointGaussian
from ...privacy.events import NeighbouringRelation as Relation
from ...streams import Streams
from ..equation import Case
from . import holds, measures, slack, states, worst

EXACT, SANITIZER = 1e-12, "mechanism.sanitizer.Sanitizer"
KEYS = (("one", "W"), ("one", "b"), ("two", "W"))


@measures("mechanism.clip.clip_weights", "N1", "excess over C in exact fractions, float32", 0.0)
def clipped_norms_stay_within_the_bound(bench):
    """The exact norm of w g as float32 products, of norms rounded up as in training and of norms
    rounded to nearest.

    Infinity if clipped by far too much.
    """
    for trial in range(200):
        clip_norm, scale = 10.0 ** bench.rng.uniform(-3, 3, 2)
        g = bench.rng.standard_normal((1, int(bench.rng.integers(1, 40)))) * scale
        g = g.astype("float32")
        norm = np.linalg.norm(g.astype("float64"))
        nearest = bench.asarray(np.array([norm**2], "float32"))
        squares = nearest if trial % 2 else Explicit(bench.asarray(g)).sq_norms_upper()
        w = to_host(mechanism.clip_weights(squares, clip_norm))
        clipped = sum(Fraction(float(v)) ** 2 for v in (w[:, None] * g)[0])
        yield holds(not (math.sqrt(clipped) < min(norm, clip_norm) * (1 - 1e-4)))
        yield clipped / Fraction(clip_norm) ** 2 - 1


@states("mechanism.clip.clip_weights", "N1 N2")
def weights_and_norms(bench):
    """A norm is C over the weight, where C is far below it."""
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


@states("mechanism.clip.ClipGroup", "F1")
def noise_of_a_group(bench):
    for clip_norm, sigma in ((3.0, 0.7), (math.inf, 0.0)):
        noise_std = ClipGroup("g", KEYS, clip_norm, sigma).noise_std
        yield Case({"noise_std": noise_std, "sigma": sigma, "C": clip_norm})


def standard(law, std, shape, draws):
    """What a law draws next, in standard deviations."""
    if isinstance(law, Normals):
        return draws.standard_normal(shape)
    units = np.zeros(shape)
    draws.add_integers(units, law.units)
    return units * law.grid / std


@states("mechanism.noise.add_gaussian", "F1 F2")
def noise_is_std_times_normal(bench):
    for raw in bench.rng.uniform(-1, 1, (2, 5, 4)):
        for std in (3.0, 0.3):
            got = noise.add_gaussian(bench.asarray(raw.copy()), std, Streams(7).noise(2))
            z = standard(Normals(std), std, raw.shape, Streams(7).noise(2))
            given = {"raw": raw, "released": to_host(got), "noise_std": std, "z": z}
            yield Case({**given, "g": Normals(std).grid})


@measures("mechanism.noise.add_gaussian", "F1", "float64, rounded; of other strides", 0.0)
def single_precision_is_rounded(bench):
    raw = bench.rng.uniform(-1, 1, (50, 20)).astype("float32")
    for array in (raw, raw.T):
        single, double = (
            to_host(noise.add_gaussian(bench.asarray(array.astype(dtype)), 3.0, draws))
            for dtype, draws in (("float32", Streams(7).noise(2)), ("float64", Streams(7).noise(2)))
        )
        yield worst(single, double.astype("float32"))


def _fine(grid, std, bits):
    """0.0 for a power of two between 2^-bits and 2^(1-bits) of the noise, else 1.0."""
    return float(
        math.frexp(grid)[0] != 0.5 or not std * 2.0**-bits < grid <= std * 2.0 ** (1 - bits)
    )


@measures("exact.laws.noise_grid", "F1", "a power of two, 2^-21 to 2^-20 of the noise", 0.0)
def grids_are_fine_powers_of_two(bench):
    yield abs(laws.noise_grid(0.0)) + (laws.noise_grid(1e-300) != 2.0**-1000)
    for std in (1e-30, 0.5, 1 - 2.0**-53, 1.0, 3.7, 4.0, 1e30):
        yield _fine(laws.noise_grid(std), std, 21)


@measures(
    "exact.integers.integer_grid",
    "F1",
    "a power of two, whole in the quantum, 2^-33 to 2^-32 of noise below 2^32 quanta",
    0.0,
)
def grids_of_integers_divide_the_quantum(bench):
    for quantum in (1.0, 2.0**-32):
        for std in (1e-3, 0.5, 1 - 2.0**-53, 1.0, 3.7, 4.0, 1e3, 2.0**33):
            grid = integers.integer_grid(std, quantum)
            yield quantum / grid % 1
            yield grid != quantum if std >= 2**32 * quantum else _fine(grid, std, 33)


def _groupings(clip_norm=1.5):
    yield flat_group(KEYS, clip_norm, 0.0)
    yield per_layer_groups(KEYS, {"one": clip_norm, "two": clip_norm / 3}, 0.0)


class _Norms(Watcher):
    """Keeps the squared norms of each group."""

    def __init__(self):
        self.seen = {}

    def take_norms(self, group, sq_norms):
        self.seen.setdefault(group, []).append(to_host(sq_norms))


GRID = [[(f"layer{n}", name) for name in "Wb"] for n in range(3)]  # keys of group l, parameter k


def _lots(bench, weights=None):
    """A lot of seven examples in three groups of two parameters, in every form of the gradients, at
    once and in batches.
    """
    a, d = (bench.rng.standard_normal((7, 3, 2, 4, n)) for n in (3, 5))
    sums = np.einsum("blkti,blkto->blktio", a, d)
    for cls, strategy, bounds, size in (
        (OuterSum, "auto", (0, 7), 1.0),
        (OuterSum, "factored", (0, 4, 4, 7), 9.0),
        (Outer, "factored", (0, 7), 1.0),
        (Outer, "explicit", (0, 2, 7), math.inf),
        (Explicit, "auto", (0, 7), 1.0),
    ):
        g = sums.sum(axis=3) if cls is OuterSum else sums[:, :, :, 0]
        factors = {OuterSum: (a, d), Outer: (a[..., 0, :], d[..., 0, :]), Explicit: (g,)}[cls]
        C, watcher, total = size * np.array([5.0, 4.0, 3.0]), _Norms(), None
        groups = [ClipGroup(f"{n}", keys, C[n], 0.0) for n, keys in enumerate(GRID)]
        sanitizer = Sanitizer(groups, strategy, watcher=watcher)
        for part in map(slice, bounds, bounds[1:]):
            grads = {
                key: cls(*(bench.asarray(factor[part, n, k].copy()) for factor in factors))
                for n, keys in enumerate(GRID)
                for k, key in enumerate(keys)
            }
            weight = None if weights is None else bench.asarray(weights[part])
            total = sanitizer.add_clipped(grads, total, weight)
        raw = np.array([[to_host(total[key]) for key in keys] for keys in GRID])
        norms = np.sqrt([np.concatenate(watcher.seen[group.name]) for group in groups]).T
        yield Case({"raw": raw, "g": g, "norm": norms, "C": C, "v": weights})


@states(SANITIZER, "F1 N1")
def sums_of_clipped_gradients(bench):
    return _lots(bench)


@states(SANITIZER, "F3")
def sums_with_weights(bench):
    return _lots(bench, np.array([1, 0.25, 0, 1.5, -1, np.nan, 0.5]))


@states(SANITIZER, "F2")
def each_group_gets_its_own_noise(bench):
    C, sigma = np.array([2.0, 5.0, 0.5]), np.array([1.5, 0.4, 3.0])
    for arithmetic in ("ordinary", "exact"):
        groups = [ClipGroup(f"{n}", keys, C[n], sigma[n]) for n, keys in enumerate(GRID)]
        sanitizer = Sanitizer(groups, arithmetic=arithmetic)
        laws, draws = [sanitizer.noise(group) for group in groups], Streams(7).noise(0)
        q, raw = np.array([law.grid for law in laws]), bench.rng.uniform(-9, 9, (3, 2, 5, 4))
        if arithmetic == "exact":
            raw = np.rint(raw / q[:, None, None, None]) * q[:, None, None, None]
        sums = {
            key: bench.asarray(laws[n].in_units(raw[n, k]))
            for n, keys in enumerate(GRID)
            for k, key in enumerate(keys)
        }
        got = sanitizer.release(sums, Streams(7).noise(0))
        z = [[standard(law, s, (5, 4), draws) for _ in "Wb"] for law, s in zip(laws, sigma * C)]
        released = np.array([[to_host(got[key]) for key in keys] for keys in GRID])
        given = {"raw": raw, "q": q, "sigma": sigma, "C": C, "z": np.array(z)}
        yield Case({**given, "released": released})


@measures(
    SANITIZER,
    "S1",
    "worst pair of neighbours by search: 1 - reached / claimed, but for the margin",
    1e-6,
)
def sensitivity_is_reached_and_not_exceeded(bench):
    for relation, groups in product(Relation, _groupings()):
        sanitizer, pairs = Sanitizer(groups), list(_far_gradients(bench))
        claims = sanitizer.sensitivity(relation, 1 / (1 + 2.0**-21))
        for group in groups:

            def clipped(gradients):
                grads = {key: Explicit(bench.asarray(g)) for key, g in zip(KEYS, gradients)}
                total = sanitizer.add_clipped(grads)
                return np.concatenate([to_host(total[key]).ravel() for key in group.keys])

            yield slack(claims[group.name], relation, clipped, pairs)


def _far_gradients(bench):
    """Pairs of gradients of many sizes; opposite gradients are the farthest apart."""
    for dtype, scale in product(("f4", "f8"), 10.0 ** bench.rng.uniform(-2, 4, 15)):
        first, second = (
            [
                (scale * bench.rng.standard_normal((1, *shape))).astype(dtype)
                for shape in ((3, 2), (2,), (2, 2))
            ]
            for _ in range(2)
        )
        yield first, second
        yield first, [-g for g in first]


@states(SANITIZER, "S1 S2")
def sensitivities_and_the_event(bench):
    C, sigma = np.array([2.0, 7.0, 0.5]), np.array([1.5, 0.4, 3.0])
    for relation, count in product(Relation, (3, 1)):
        groups = [ClipGroup(f"{n}", keys, C[n], sigma[n]) for n, keys in enumerate(GRID[:count])]
        sanitizer = Sanitizer(groups)
        event = sanitizer.event(relation)
        joint = isinstance(event, JointGaussian)
        m = event.noise_multipliers if joint else [event.noise_multiplier]
        s = event.effective_noise_multiplier if joint else event.noise_multiplier
        yield Case(
            {
                "S": np.array([*sanitizer.sensitivity(relation).values()]),
                "C": C[:count],
                "sigma": sigma[:count],
                "m": np.array(m),
                "s": s,
                "relation": relation,
                "REPLACE_ONE": Relation.REPLACE_ONE,
            }
        )


def _charges(bench, cases):
    for lot, strategy, k in cases:
        got = products(lot, strategy)
        assert bool(got.rows) == (not k)  # float32 where no k counts
        yield Case({"L": lot, "n": got.most, "R": got.rows, "factor": got.factor, "k": k})


SINGLE = [(60, "auto", 0), (600, "factored", 0), (2000, "auto", 0)]
DOUBLE = [(4000, "auto", 64), (600, "explicit", 1), (65_536, "explicit", 1), (65_536, "auto", 64)]
for _labels, _lots_charged in (("F1 F2", SINGLE), ("F1 F3", DOUBLE)):
    states("mechanism.rounding.products", _labels, EXACT, "charge for sums")(
        partial(_charges, cases=_lots_charged)
    )


@states("mechanism.rounding.in_blocks", "F1")
def charge_for_float64_sums_in_blocks(bench):
    """Nothing up to 767,610 rows in blocks of 1,024, and then more and more."""
    cases = [(rows, 1024) for rows in (1, 767_610, 767_611, 10**7, 2**41)]
    for rows, block in (*cases, (10**7, 64)):
        yield Case({"m": rows, "R": block, "factor": in_blocks(rows, block)})


@states("mechanism.noise.add_integers", "F1")
def integer_noise_is_added_in_units(bench):
    raw, more = np.rint(bench.rng.uniform(-1, 1, (2, 5, 4)) * 2**40)
    units, others, Z = bench.asarray(raw.copy()), [bench.asarray(more)], np.zeros((5, 4))
    got = noise.add_integers(units, 2.0**33, 0.25, Streams(7).noise(2), others)
    Streams(7).noise(2).add_integers(Z, 2.0**33)
    yield Case({"released": to_host(got), "g": 0.25, "raw": raw + more, "Z": Z})
