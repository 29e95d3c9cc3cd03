"""Checks of the cipher, the normal numbers and the integers made of it, and their compiled
twins.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import mpmath
import numpy as np

from ...host import chacha, discrete, drawing
from ...host.chacha import choose
from . import measures, relative

RFC = (  # RFC 8439, 2.3.2 and appendix A.1: key, the last four words of the input, the block
    (
        bytes(range(32)),
        (1, 0x09000000, 0x4A000000, 0),
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (
        bytes(32),
        (0, 0, 0, 0),
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    (
        bytes(31) + b"\1",
        (1, 0, 0, 0),
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
        "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    (
        b"\0\xff" + bytes(30),
        (2, 0, 0, 0),
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    (
        bytes(32),
        (0, 0, 0, 0x02000000),
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
)


def _words(bench, blocks):
    return bench.rng.integers(0, 2**32, (16, blocks), dtype=np.uint32)


def _drawn(bench):
    """(state of a release's cipher, function of blocks' numbers that gives their words)."""
    key, tail = _words(bench, 1)[:8, 0], _words(bench, 1)[:2, 0]
    state = np.concatenate([chacha.CONSTANTS, key, np.zeros(2, np.uint32), tail])
    return state, lambda blocks: chacha.words(state, np.asarray(blocks, np.uint64))


@measures("host.chacha.chacha", "F1", "the RFC's vectors", 0.0)
def blocks_equal_the_rfc(bench):
    for key, place, block in RFC:
        got = chacha.chacha(
            np.frombuffer(key, "<u4").astype(np.uint32), np.array(place, np.uint32)[:, None]
        )
        yield got[:, 0].astype("<u4").tobytes().hex() != block


@measures(
    "host.chacha.normals",
    "F1 F2 F3 M1 M2",
    "fractions, 80 bits and the library's functions; absolute",
    1e-14,
)
def normals_equal_their_definition(bench):
    words = _words(bench, 128 * chacha.LANES)
    # the ends: u, f and both signs
    words[:, :6] = np.array([0, 2**32 - 1, 0, 2**31, 2**31 - 1, 1], np.uint32)
    # u near 1, whose logarithm is small, near 0 and near 1/sqrt 2
    ramp = np.arange(300, dtype=np.uint32)
    words[:4, 6:306] = 2**32 - 1 - ramp
    words[:4, 306:606] = ramp
    words[:4, 606:906] = 0xB504F333 - 150 + ramp
    numbers = words.astype(object)  # Python's integers
    odd = 2 * (numbers[:4] * 2**32 + numbers[4:8]) + 1
    u = (odd / 2**65).astype(np.longdouble)  # Python rounds a fraction once
    turns = (numbers[8:12] + 2**31) % 2**32 - 2**31
    angle = np.ldexp((turns * 2**31 + numbers[12:] // 2).astype(np.longdouble) + 0.5, -63)
    pi, sign = 4 * np.arctan(np.longdouble(1)), np.where(words[12:] % 2, -1, 1)
    r = np.sqrt(-2 * np.log(u))
    rows = np.concatenate([r * sign * np.cos(pi * angle), r * np.sin(pi * angle)])
    expected = rows.reshape((8, -1, 64)).transpose(1, 0, 2).ravel()
    return np.abs(chacha.normals(words) - expected).max()


@measures("host.chacha.chacha", "F1", "compiled, blocks in any order", 0.0)
def compiled_words_equal_the_definition(bench):
    state, words = _drawn(bench)
    for size in (1, 63, 64, 200):
        blocks = bench.rng.integers(0, 2**64, size, dtype=np.uint64)
        out = np.empty((size, 16), np.uint32)
        drawing.words(state, blocks, out)
        yield (out != words(blocks).T).sum()


SLICES = ((0, 1), (0, 8192), (511, 2), (700, 3000), (8191, 1), (40, 0))  # (begin, size)


@measures("host.chacha.normals", "F3", "compiled, any slice, float32 and float64", 0.0)
@measures("host.chacha.rounded", "F1", "compiled, any slice, float32 and float64", 0.0)
def compiled_noise_equals_the_definition(bench):
    state, words = _drawn(bench)
    z = chacha.normals(words(range(1024)))
    for (begin, size), dtype, grid in product(SLICES, (np.float32, np.float64), (0.0, 2.0**-18)):
        raw = bench.rng.standard_normal(size).astype(dtype)
        out, noise = raw.copy(), 4.0 * z[begin : begin + size]
        drawing.add_normals(state, begin, 4.0, grid, out)
        yield (out != chacha.rounded(raw + noise, grid).astype(dtype)).sum()


@measures("host.chacha.choose", "F1", "all subsets of 3 of 6, in standard errors", 6.0)
def subsets_are_uniform(bench):
    trials, p, counts = 20_000, 1 / 20, Counter()
    for _ in range(trials):
        words = bench.rng.integers(0, 2**64, 11, dtype=np.uint64)
        out = np.empty(3, np.int64)
        if choose(words, 6, np.zeros(1, np.uint64), out):
            counts[tuple(sorted(out.tolist()))] += 1
    found = [counts[subset] for subset in combinations(range(6), 3)]
    yield abs(sum(found) - trials)
    yield from (abs(count - trials * p) / math.sqrt(trials * p * (1 - p)) for count in found)


@measures(
    "host.chacha.choose",
    "F2",
    "one of n by Python's integers, words refused and running out",
    0.0,
)
def integers_equal_python(bench):
    for n in (1, 3, 60_000, 2**31 + 11, 3 * 10**9 + 1, 2**32 - 1):
        refused = 2**64 % n
        edge = [v * pow(n, -1, 2**64) % 2**64 for v in (refused - 1, refused)] if n % 2 else []
        drawn = bench.rng.integers(0, 2**64, 51, dtype=np.uint64).tolist()
        for first in (0, 1, 2**63, 2**64 - 1, *edge, *drawn):
            words = [first, drawn[0]]
            kept = [w for w in words if w * n % 2**64 >= refused]
            for chosen in (choose, drawing.choose):
                out = np.full(1, -1)
                taken = np.zeros(n // 64 + 1 if n < 10**6 else 2**26, np.uint64)
                found = chosen(np.array(words, np.uint64), n, taken, out)
                yield found != bool(kept) or (found and out[0] != kept[0] * n >> 64)


@measures("host.chacha.choose", "F1", "compiled", 0.0)
def compiled_subsets_equal_the_definition(bench):
    for n, size in ((6, 3), (50, 50), (1000, 300), (60_000, 600)):
        words = bench.rng.integers(0, 2**64, size + 8, dtype=np.uint64)
        one, two = np.zeros((2, size), np.int64)
        yield not choose(words, n, np.zeros(n // 64 + 1, np.uint64), one)
        yield not drawing.choose(words, n, np.zeros(n // 64 + 1, np.uint64), two)
        yield (one != two).sum()


def alias_weights(table):
    """What the cells of an alias table give each value, in units of 2^-64 of a cell."""
    weights = list(map(int, table.thresholds))
    for threshold, other in zip(weights[:], table.aliases.tolist()):
        weights[other] += 2**64 - threshold
    return weights


def gaussian_masses(variance, places):
    """Of a discrete Gaussian at some places, not normalised; in mpmath."""
    half = mpmath.mpf(variance.denominator) / (2 * variance.numerator)
    return np.array([mpmath.exp(-half * x * x) for x in places])


@measures(
    "host.discrete.alias_table",
    "F1 F2 F3",
    "weights in 2^-64 of a cell, mpmath; their total exactly",
    0.5 + 1e-9,
)
def tables_hold_the_discrete_gaussian(bench):
    plan = discrete.plan(2.0**28)
    with mpmath.workdps(60):
        weights = np.array(alias_weights(discrete.alias_table(plan)))
        masses = gaussian_masses(plan.variance, range(plan.cells))
        exact = 2 * masses * (plan.cells * mpmath.mpf(2) ** 64 / (2 * masses.sum() - 1))
        # and so the first is right too
        return abs(weights - exact)[1:].max() + abs(weights.sum() - plan.cells * 2**64)


@measures("host.discrete.integers", "F1 F2 F3 F4", "Python's integers, one by one", 0.0)
def integers_equal_look_ups_in_python(bench):
    for std in (2.0**28, 2.0**35.5, 2.0**37):
        table = discrete.table(std)
        words = _words(bench, 640 * (table.parts + 1))
        got, cells = discrete.integers(words, table), table.thresholds.size
        first, *others = words[:, : 64 * (table.parts + 1)].reshape((16, -1, 64)).swapaxes(0, 1)
        fields = _joined(first)
        for q, z in enumerate(got[:512].tolist()):
            expected = 0
            for j, numbers in enumerate(map(_joined, others)):
                sign, cell = divmod(fields[q] // (2 * cells) ** j % (2 * cells), cells)
                size = cell if numbers[q] < table.thresholds[cell] else int(table.aliases[cell])
                expected += table.scale ** (table.parts - 1 - j) * (-size if sign else size)
            yield z != expected
        yield got.size != 5120


def _joined(words):
    """Numbers of 64 bits: the upper halves first, then the lower."""
    high, low = words.astype(object).reshape((2, -1))
    return (high * 2**32 + low).tolist()


@measures("host.discrete.integers", "F4", "compiled, any slice", 0.0)
def compiled_integers_equal_the_definition(bench):
    state, words = _drawn(bench)
    for std in (2.0**28, 3e10, 2.0**40):
        table, first = discrete.table(std), int(bench.rng.integers(0, 2**40))
        count = 16 * (table.parts + 1) * 64
        z = discrete.integers(words(first * 64 + np.arange(count)), table)
        for begin, size in SLICES:
            raw = bench.rng.integers(-(2**52), 2**52, size).astype(np.float64)
            out = raw.copy()
            drawing.add_integers(state, first, begin, *table, out)
            yield (out != raw + z[begin : begin + size]).sum()


@measures("host.discrete.distances", "M1 M2 M3 M4", "the formulas by mpmath; relative", 1e-12)
def bounds_equal_their_formulas(bench):
    plans = [(s, discrete.plan(s)) for s in (2.0**32, 2.0**40)]
    for std, plan in ((0.5, discrete.Plan(2, 1, Fraction(1), 8)), *plans):
        with mpmath.workdps(40):
            s0, s, (j, k, _, n) = mpmath.sqrt(plan.variance), mpmath.mpf(std), plan
            e, narrow = (
                mpmath.exp(-2 * (mpmath.pi * v) ** 2) for v in (s0 / mpmath.hypot(1, k), s)
            )
            third = mpmath.npdf(0) * (1 + 4 * mpmath.exp(-1.5)) / 24 / s**3
            expected = (
                j * mpmath.mpf(2) ** -65,
                j * mpmath.erfc((n - 1) / s0 / mpmath.sqrt(2)),
                (j - 1) * (2 * e / (1 - e)) / (1 - 2 * e / (1 - e)),
                mpmath.npdf(1) / 12 / s**2 + third + narrow / (1 - narrow),
            )
            yield from map(relative, discrete.distances(std, plan), expected)
