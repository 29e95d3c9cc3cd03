"""Checks of clipping, noise and the sanitizer."""

import math
from fractions import Fraction
from itertools import product

import numpy as np

from ... import mechanism
from ...backend import to_host
from ...exact import laws
from ...grads.forms import Explicit, Outer, OuterSum
from ...mechanism import ClipGroup, Sanitizer, flat_group, per_layer_groups
from ...mechanism.rounding import in_blocks, products
from ...privacy.events import JointGaussian
from ...privacy.events import NeighbouringRelation as Relation
from ...streams import Streams
from .. import reference
from . import farthest, measures, relative, worst

EXACT, SIGMAS = 1e-12, 6.0
KEYS = (("one", "W"), ("one", "b"), ("two", "W"))


@measures(
    "mechanism.clip.clip_weights",
    "N1",
    method="excess over C in exact fractions, float32",
    tolerance=0.0,
)
def clipped_norms_stay_within_the_bound(bench):
    """The exact norm of w g as float32 products, of norms rounded up as in training and of norms
    rounded to nearest.

    Infinity if clipped by far too much.
    """
    largest = 0.0
    for trial in range(200):
        size, (clip_norm, scale) = (
            int(bench.rng.integers(1, 40)),
            10.0 ** bench.rng.uniform(-3, 3, 2),
        )
        g = (bench.rng.standard_normal((1, size)) * scale).astype("float32")
        nearest = bench.asarray((g.astype("float64") ** 2).sum(axis=1).astype("float32"))
        squares = nearest if trial % 2 else Explicit(bench.asarray(g)).sq_norms_upper()
        w = to_host(mechanism.clip_weights(squares, clip_norm))
        norm = sum(Fraction(float(v)) ** 2 for v in (w[:, None] * g)[0])
        least = min(1.0, clip_norm / np.linalg.norm(g.astype("float64"))) * np.linalg.norm(
            g.astype("float64")
        )
        if math.sqrt(norm) < least * (1 - 1e-4):
            return math.inf
        largest = max(largest, float(norm / Fraction(clip_norm) ** 2 - 1))
    return largest


@measures(
    "mechanism.clip.clip_weights",
    "N2",
    "N3",
    method="loop over norms, not finite ones too",
    tolerance=1e-14,
)
def weights_equal_the_definition(bench):
    squares = np.concatenate(
        [[0.0, 2.5**2, 1e-60, np.nan, np.inf, -np.inf], 10.0 ** bench.rng.uniform(-4, 6, 50)]
    )
    for clip_norm in (2.5, math.inf):
        expected = [
            1 / max(1.0, v**0.5 * (1 + 2.0**-20) / clip_norm) if math.isfinite(v) else 0.0
            for v in squares
        ]
        yield worst(mechanism.clip_weights(bench.asarray(squares), clip_norm), expected)


@measures("mechanism.clip.ClipGroup", "F1", method="by hand", tolerance=EXACT)
def noise_std_is_sigma_times_c(bench):
    got = [ClipGroup("g", KEYS, 3.0, 0.7).noise_std, ClipGroup("g", KEYS, math.inf, 0).noise_std]
    return worst(got, [2.1, 0.0])


@measures(
    "mechanism.noise.add_gaussian",
    "F1",
    "F2",
    method="the same normal numbers, drawn again",
    tolerance=EXACT,
)
def noise_is_std_times_normal(bench):
    raw = bench.rng.uniform(-1, 1, (50, 20))
    for dtype in ("float64", "float32"):
        for array in (raw.astype(dtype), raw.astype(dtype).T):
            got = mechanism.add_gaussian(bench.asarray(array.copy("K")), 3.0, Streams(7).noise(2))
            yield worst(got, reference.noisy(array, 3.0, Streams(7).noise(2)).astype(dtype))


@measures(
    "exact.laws.noise_grid",
    "F1",
    method="a power of two, 2^-21 to 2^-20 of the noise",
    tolerance=0.0,
)
def grids_are_fine_powers_of_two(bench):
    yield abs(laws.noise_grid(0.0)) + (laws.noise_grid(1e-300) != 2.0**-1000)
    for std in (1e-30, 0.5, 1 - 2.0**-53, 1.0, 3.7, 4.0, 1e30):
        grid = laws.noise_grid(std)
        yield math.frexp(grid)[0] != 0.5 or not std * 2.0**-21 < grid <= std * 2.0**-20


@measures(
    "exact.laws.integer_grid",
    "F1",
    tolerance=0.0,
    method="a power of two, whole in the quantum, 2^-33 to 2^-32 of noise below 2^32 quanta",
)
def grids_of_integers_divide_the_quantum(bench):
    for quantum in (1.0, 2.0**-32):
        for std in (1e-3, 0.5, 1 - 2.0**-53, 1.0, 3.7, 4.0, 1e3, 2.0**33):
            grid = laws.integer_grid(std, quantum)
            yield math.frexp(grid)[0] != 0.5 or bool(quantum / grid % 1)
            yield (
                grid != quantum
                if std >= 2**32 * quantum
                else not std * 2.0**-33 < grid <= std * 2.0**-32
            )


def _groupings(clip_norm=1.5):
    return flat_group(KEYS, clip_norm, 0.0), per_layer_groups(
        KEYS, {"one": clip_norm, "two": clip_norm / 3}, 0.0
    )


@measures(
    "mechanism.sanitizer.Sanitizer",
    "F1",
    "F3",
    "N1",
    tolerance=EXACT,
    method="loop over examples; every form, at once and in batches, with weights",
)
def clipped_sum_equals_a_loop(bench):
    a, d = bench.rng.standard_normal((7, 3)), bench.rng.standard_normal((7, 2))
    p, q = bench.rng.standard_normal((2, 7, 4, 2))
    plain = {
        ("one", "W"): np.einsum("bi,bo->bio", a, d),
        ("one", "b"): d,
        ("two", "W"): np.einsum("bti,bto->bio", p, q),
    }
    weights = np.array([1, 0.25, 0, 1.5, -1, np.nan, 0.5])
    weighted = weights, [1, 0.25, 0, 0, 0, 0, 0.5]
    unweighted = None, np.ones(7)
    for groups in (*_groupings(), *_groupings(20.0), *_groupings(math.inf)):
        alone = [
            reference.clipped_sum({key: g[b : b + 1] for key, g in plain.items()}, groups)
            for b in range(7)
        ]
        for strategy, (given, counted), bounds in product(
            ("auto", "explicit", "factored"), (unweighted, weighted), ((0, 7), (0, 4, 4, 7))
        ):
            sanitizer, total = Sanitizer(groups, strategy), None
            for part in map(slice, bounds, bounds[1:]):
                grads = {
                    ("one", "W"): Outer(bench.asarray(a[part]), bench.asarray(d[part])),
                    ("one", "b"): Explicit(bench.asarray(d[part])),
                    ("two", "W"): OuterSum(bench.asarray(p[part]), bench.asarray(q[part])),
                }
                weight = None if given is None else bench.asarray(given[part])
                total = sanitizer.add_clipped(grads, total, weight)
            yield from (
                worst(total[key], sum(v * one[key] for v, one in zip(counted, alone)))
                for key in plain
            )


@measures(
    "mechanism.sanitizer.Sanitizer",
    "F2",
    method="the same normal numbers, drawn again",
    tolerance=EXACT,
)
def each_group_gets_its_own_noise(bench):
    groups = per_layer_groups(
        (KEYS[0], KEYS[2]), {"one": 2.0, "two": 5.0}, {"one": 1.5, "two": 0.4}
    )
    raw = {KEYS[0]: np.full((30, 20), 10.0), KEYS[2]: np.full((5, 3), -7.0)}
    for arithmetic in ("ordinary", "exact"):
        moved, again = (
            {key: bench.asarray(array.copy()) for key, array in raw.items()},
            Streams(7).noise(0),
        )
        got = Sanitizer(groups, arithmetic=arithmetic).release(moved, Streams(7).noise(0))
        for key, sigma, clip_norm in ((KEYS[0], 1.5, 2.0), (KEYS[2], 0.4, 5.0)):
            expected = raw[key].copy()
            if arithmetic == "exact":
                again.add_integers(expected, sigma * 2.0**32)
            yield worst(
                got[key],
                expected * clip_norm * 2.0**-32
                if arithmetic == "exact"
                else reference.noisy(expected, sigma * clip_norm, again),
            )


@measures(
    "mechanism.sanitizer.Sanitizer",
    "S1",
    method="worst pair of neighbours by search: 1 - reached / claimed, but for the margin",
    tolerance=1e-6,
)
def sensitivity_is_reached_and_not_exceeded(bench):
    for relation, groups in product(Relation, _groupings()):
        sanitizer, pairs = Sanitizer(groups), list(_far_gradients(bench))
        claims = sanitizer.sensitivity(relation, 1 / (1 + 2.0**-21))
        for group in groups:

            def clipped(grads):
                total = sanitizer.add_clipped(
                    {key: Explicit(bench.asarray(g)) for key, g in grads.items()}
                )
                return np.concatenate([to_host(total[key]).ravel() for key in group.keys])

            claimed, reached = claims[group.name], farthest(relation, clipped, pairs)
            yield math.inf if reached > claimed else 1 - reached * (1 + 2.0**-21) / claimed


def _far_gradients(bench):
    """Pairs of gradients of many sizes; opposite gradients are the farthest apart."""
    for dtype in ("float32", "float64"):
        for scale in 10.0 ** bench.rng.uniform(-2, 4, 15):
            first, second = (
                {
                    key: (scale * bench.rng.standard_normal((1, *shape))).astype(dtype)
                    for key, shape in zip(KEYS, ((3, 2), (2,), (2, 2)))
                }
                for _ in range(2)
            )
            yield first, second
            yield first, {key: -g for key, g in first.items()}


@measures(
    "mechanism.sanitizer.Sanitizer",
    "S2",
    method="noise std over the sensitivity that was searched",
    tolerance=EXACT,
)
def event_is_one_joint_gaussian(bench):
    groups = [ClipGroup("a", KEYS[:2], 2.0, 1.5), ClipGroup("b", KEYS[2:], 7.0, 0.4)]
    for relation, factor in (
        (Relation.ADD_REMOVE, 1),
        (Relation.ZERO_OUT, 1),
        (Relation.REPLACE_ONE, 2),
    ):
        event, single = (
            Sanitizer(groups).event(relation),
            Sanitizer(flat_group(KEYS, 2.0, 1.5)).event(relation),
        )
        if not isinstance(event, JointGaussian):
            yield math.inf
        # the direction of squared norm sum s^-2, by which the scaled means differ at most
        shift = math.sqrt(sum((factor * c / std) ** 2 for c, std in ((2.0, 3.0), (7.0, 2.8))))
        yield worst(event.noise_multipliers, [1.5 / factor, 0.4 / factor])
        yield relative(event.effective_noise_multiplier, 1 / shift)
        yield relative(single.noise_multiplier, 1.5 / factor)


@measures(
    "mechanism.rounding.products",
    "F1",
    "F2",
    "F3",
    method="by hand, in exact fractions",
    tolerance=1e-12,
)
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
        yield from (
            abs(got.rows - rows),
            abs(got.most - n),
            relative(got.factor, factor),
            factor - got.factor,
        )


@measures(
    "mechanism.rounding.in_blocks", "F1", method="by hand, in exact fractions", tolerance=1e-12
)
def charge_for_float64_sums_in_blocks(bench):
    """Nothing up to 767,610 rows in blocks of 1,024, and then more and more."""
    cases = [(rows, 1024) for rows in (1, 767_610, 767_611, 10**7, 2**41)]
    for rows, block in (*cases, (10**7, 64)):
        lost = Fraction(rows * (2 * block + Fraction(rows, block)), 2**52)
        factor = float(1 + lost) if lost > Fraction(1, 2**21) else 1.0
        yield relative(in_blocks(rows, block), factor)


@measures(
    "mechanism.noise.add_integers", "F1", method="the same integers, drawn again", tolerance=0.0
)
def integer_noise_is_added_in_units(bench):
    raw, more, again = *np.rint(bench.rng.uniform(-1, 1, (2, 50, 20)) * 2**40), np.zeros(1000)
    got = mechanism.noise.add_integers(
        bench.asarray(raw.copy()), 2.0**33, 0.25, Streams(7).noise(2), [bench.asarray(more)]
    )
    Streams(7).noise(2).add_integers(again, 2.0**33)
    return worst(got, (raw + more + again.reshape((50, 20))) / 4)
