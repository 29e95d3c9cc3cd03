"""What each CUDA source is tried on: kernels beside the definitions, on a device's arrays."""

from fractions import Fraction
from functools import partial
from unittest import mock

import numpy as np

from minidp import device
from minidp.arrays import row_norms, to_host
from minidp.audit import checks
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
from tests.support.cancelling import SUMS, cancelling_sum
from tests.support.guarded import guarded_backend

place = guarded_backend()
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
                mock.patch("minidp.grads.forms.LEAST_ROWS", 3),
                mock.patch.object(device, "TOGETHER", together),
            ):
                for most, tolerance in ((0, 1e-13), (2, 1e-6)):
                    summed = partial(twins._summed, rows=most, old=old)
                    both(summed, w, *factors, tolerance=tolerance)


def many_blocks(rng):
    """More than are added to each other."""
    a = rows(rng, 4200, 1)
    both(partial(twins._summed, rows=2), rng.uniform(size=4200), a, a, *2 * [a[:, None]])


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
    "sums.cu": [sums, many_blocks, pairs, descent],
    "images.cu": [images],
    "noise.cu": [noise],
}
