"""Checks of clipping, noise and the sanitizer."""

import math
from fractions import Fraction
from itertools import product

import numpy as np

from ... import mechanism
from ...backend import to_host
from ...exact import integers, laws
from ...grads.forms import Explicit, Outer, OuterSum
from ...mechanism import ClipGroup, Sanitizer, flat_group, noise, per_layer_groups
from ...mechanism.rounding import in_blocks, products
from ...privacy.events import JointGaussian
from ...privacy.events import NeighbouringRelation as Relation
from ...streams import Streams
from .. import reference
from . import holds, measures, relative, slack, worst

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


@measures("mechanism.clip.clip_weights", "N2 N3", "loop over norms, not finite ones too", 1e-14)
def weights_equal_the_definition(bench):
    special = [0.0, 2.5**2, 1e-60, np.nan, np.inf, -np.inf]
    squares = np.concatenate([special, 10.0 ** bench.rng.uniform(-4, 6, 50)])
    for clip_norm in (2.5, math.inf):
        expected = [
            1 / max(1.0, v**0.5 * (1 + 2.0**-20) / clip_norm) if math.isfinite(v) else 0.0
            for v in squares
        ]
        yield worst(mechanism.clip_weights(bench.asarray(squares), clip_norm), expected)


@measures("mechanism.clip.ClipGroup", "F1", "by hand", EXACT)
def noise_std_is_sigma_times_c(bench):
    got = [ClipGroup("g", KEYS, 3.0, 0.7).noise_std, ClipGroup("g", KEYS, math.inf, 0).noise_std]
    return worst(got, [2.1, 0.0])


@measures("mechanism.noise.add_gaussian", "F1 F2", "the same normal numbers, drawn again", EXACT)
def noise_is_std_times_normal(bench):
    raw = bench.rng.uniform(-1, 1, (50, 20))
    for dtype in ("float64", "float32"):
        for array in (raw.astype(dtype), raw.astype(dtype).T):
            got = noise.add_gaussian(bench.asarray(array.copy("K")), 3.0, Streams(7).noise(2))
            yield worst(got, reference.noisy(array, 3.0, Streams(7).noise(2)).astype(dtype))


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


@measures(
    SANITIZER,
    "F1 F3 N1",
    "loop over examples; every form, at once and in batches, with weights",
    EXACT,
)
def clipped_sum_equals_a_loop(bench):
    a, d, p, q = (bench.rng.standard_normal((7, *s)) for s in ((3,), (2,), (4, 2), (4, 2)))
    factors = (Outer, a, d), (Explicit, d), (OuterSum, p, q)
    plain = np.einsum("bi,bo->bio", a, d), d, np.einsum("bti,bto->bio", p, q)
    weights = np.array([1, 0.25, 0, 1.5, -1, np.nan, 0.5])
    counted = np.array([1, 0.25, 0, 0, 0, 0, 0.5])
    for groups in (*_groupings(), *_groupings(20.0), *_groupings(math.inf)):
        alone = [
            reference.clipped_sum({key: g[b : b + 1] for key, g in zip(KEYS, plain)}, groups)
            for b in range(7)
        ]
        for strategy, weighted, bounds in product(
            ("auto", "explicit", "factored"), (False, True), ((0, 7), (0, 4, 4, 7))
        ):
            sanitizer, total = Sanitizer(groups, strategy), None
            for part in map(slice, bounds, bounds[1:]):
                grads = {
                    key: cls(*(bench.asarray(each[part]) for each in arrays))
                    for key, (cls, *arrays) in zip(KEYS, factors)
                }
                weight = bench.asarray(weights[part]) if weighted else None
                total = sanitizer.add_clipped(grads, total, weight)
            w = counted if weighted else np.ones(7)
            yield from (
                worst(total[key], sum(v * one[key] for v, one in zip(w, alone))) for key in KEYS
            )


@measures(SANITIZER, "F2", "the same normal numbers, drawn again", EXACT)
def each_group_gets_its_own_noise(bench):
    keys = KEYS[0], KEYS[2]
    groups = per_layer_groups(keys, {"one": 2.0, "two": 5.0}, {"one": 1.5, "two": 0.4})
    raw = dict(zip(keys, (np.full((30, 20), 10.0), np.full((5, 3), -7.0))))
    for arithmetic in ("ordinary", "exact"):
        moved = {key: bench.asarray(array.copy()) for key, array in raw.items()}
        got = Sanitizer(groups, arithmetic=arithmetic).release(moved, Streams(7).noise(0))
        again = Streams(7).noise(0)
        for key, sigma, clip_norm in zip(keys, (1.5, 0.4), (2.0, 5.0)):
            grid = clip_norm * 2.0**-32 if arithmetic == "exact" else 0.0
            expected = raw[key] * (grid or 1)
            yield worst(got[key], reference.noisy(expected, sigma * clip_norm, again, grid))


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


@measures(SANITIZER, "S2", "noise std over the sensitivity that was searched", EXACT)
def event_is_one_joint_gaussian(bench):
    groups = [ClipGroup("a", KEYS[:2], 2.0, 1.5), ClipGroup("b", KEYS[2:], 7.0, 0.4)]
    for relation in Relation:
        factor = 2 if relation is Relation.REPLACE_ONE else 1
        event = Sanitizer(groups).event(relation)
        single = Sanitizer(flat_group(KEYS, 2.0, 1.5)).event(relation)
        yield holds(isinstance(event, JointGaussian))
        # the direction of squared norm sum s^-2, by which the scaled means differ at most
        shift = factor * math.hypot(2.0 / 3.0, 7.0 / 2.8)
        yield worst(event.noise_multipliers, [1.5 / factor, 0.4 / factor])
        yield relative(event.effective_noise_multiplier, 1 / shift)
        yield relative(single.noise_multiplier, 1.5 / factor)


@measures("mechanism.rounding.products", "F1 F2 F3", "by hand, in exact fractions", 1e-12)
def charge_for_float32_sums(bench):
    """Lots of 600 take 150 rows, of 2,000 54; larger ones, and explicit gradients, float64, which
    counts from some size on.
    """
    for lot, strategy, rows, k in (
        (60, "auto", 150, 0),
        (600, "factored", 150, 0),
        (2000, "auto", 54, 0),
        (4000, "auto", 0, 64),
        (600, "explicit", 0, 0),
        (65_536, "explicit", 0, 1),
        (65_536, "auto", 0, 64),
    ):
        got, n = products(lot, strategy), math.ceil(lot + 3 * math.sqrt(lot) + 10)
        lost = (Fraction(11 * rows, 19) + 7) / (2**24 - rows - 6)
        factor = float(1 + (2 * n * lost if rows else Fraction(2 * k * n * (2 * n + 2**13), 2**52)))
        yield abs(got.rows - rows) + abs(got.most - n)
        yield relative(got.factor, factor)
        yield factor - got.factor


@measures("mechanism.rounding.in_blocks", "F1", "by hand, in exact fractions", 1e-12)
def charge_for_float64_sums_in_blocks(bench):
    """Nothing up to 767,610 rows in blocks of 1,024, and then more and more."""
    cases = [(rows, 1024) for rows in (1, 767_610, 767_611, 10**7, 2**41)]
    for rows, block in (*cases, (10**7, 64)):
        lost = Fraction(rows * (2 * block + Fraction(rows, block)), 2**52)
        factor = float(1 + lost) if lost > Fraction(1, 2**21) else 1.0
        yield relative(in_blocks(rows, block), factor)


@measures("mechanism.noise.add_integers", "F1", "the same integers, drawn again", 0.0)
def integer_noise_is_added_in_units(bench):
    raw, more = np.rint(bench.rng.uniform(-1, 1, (2, 50, 20)) * 2**40)
    units, others, again = bench.asarray(raw.copy()), [bench.asarray(more)], np.zeros(1000)
    got = noise.add_integers(units, 2.0**33, 0.25, Streams(7).noise(2), others)
    Streams(7).noise(2).add_integers(again, 2.0**33)
    return worst(got, (raw + more + again.reshape((50, 20))) / 4)
