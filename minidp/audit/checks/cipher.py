"""Checks of the cipher, and of the normal numbers from its words."""

import math
from fractions import Fraction

import numpy as np

from ...fast import drawing
from ...host import chacha
from ..equation import Case
from . import in_words, measures, states

RFC = (  # RFC 8439, 2.3.2 and appendix A.1: key, the last four words of the input, the block
    (
        bytes(range(32)),
        (1, 0x09000000, 0x4A000000, 0),
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (
        b"\0\xff" + bytes(30),
        (2, 0, 0, 0),
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
)


def _words(bench, blocks):
    return bench.rng.integers(0, 2**32, (16, blocks), dtype=np.uint32)


@measures("host.chacha.chacha", "F1", "the RFC's vectors", 0.0)
def blocks_equal_the_rfc(bench):
    for key, place, block in RFC:
        got = chacha.chacha(
            np.frombuffer(key, "<u4").astype(np.uint32), np.array(place, np.uint32)[:, None]
        )
        yield got[:, 0].astype("<u4").tobytes().hex() != block


@states("host.chacha.normals", "F1 F2 F3", 1e-15)
def normals_to_their_last_bits(bench):
    words = _words(bench, 16 * chacha.LANES)
    # the ends: u, f and both signs
    words[:, :6] = np.array([0, 2**32 - 1, 0, 2**31, 2**31 - 1, 1], np.uint32)
    # u near 1, whose logarithm is small, near 0 and near 1/sqrt 2
    ramp = np.arange(300, dtype=np.uint32)
    for place, numbers in enumerate((2**32 - 1 - ramp, ramp, 0xB504F333 - 150 + ramp)):
        words[:4, 6 + 300 * place : 306 + 300 * place] = numbers
    # small u and f, of which the last words decide
    low, first = _words(bench, chacha.LANES), np.r_[:4, 8:12]
    few = low % 9
    low[first] &= 1
    few[first] = 0
    for each in (words, low, few):
        given = {"W": each.astype(float), "z": _normals(each), "pi": math.pi}
        yield Case(given, ranges={"j": range(4)}, through="F3")


@states("host.chacha.normals", "F2 M1 M2")
def logarithms_and_angles(bench):
    """r and f are computed back from the numbers."""
    words = _words(bench, chacha.LANES)
    z = _normals(words)
    given = {"W": words.astype(float), "r": np.hypot(z[:4], z[4:]), "pi": math.pi}
    given |= {"f": np.arctan2(z[4:], abs(z[:4])) / math.pi, "cos": _cos, "sin": _sin}
    yield Case(given, ranges={"j": range(4)})


def _cos(angle):
    return chacha.polynomial(chacha.COS, (angle / math.pi) ** 2)


def _sin(angle):
    return angle / math.pi * chacha.polynomial(chacha.SIN, (angle / math.pi) ** 2)


def _normals(words):
    """z_j, a column for each block."""
    return chacha.normals(words).reshape((-1, 8, chacha.LANES)).swapaxes(0, 1).reshape((8, -1))


@states("host.chacha.rounded", "F1", 0.0)
def multiples_of_a_grid(bench):
    for grid in (0.0, 0.25):
        x = bench.rng.integers(-40, 40, 30) / 16  # ties too
        yield Case({"x": x, "g": grid, "y": chacha.rounded(x, grid)})


@states("host.chacha.choose", "F1", 0.0)
def chosen_again(bench):
    for n, size in (*20 * [(6, 4)], (50, 50), (1100, 150)):
        words = bench.rng.integers(0, 2**64, size, dtype=np.uint64)
        t = [_chosen(words[i : i + 1], n - size + i + 1, 1)[1][0] for i in range(size)]
        given = {"out": _chosen(words, n, size)[1], "t": np.array(t), "n": n, "size": size}
        yield Case(given)


def _chosen(words, n, size):
    """The common choice of the definition and its compiled twin, if they agree."""
    outs = []
    for chosen in (chacha.choose, drawing.choose):
        out, taken = np.full(size, -1), np.zeros(min(n // 64 + 1, 2**26), np.uint64)
        outs.append((chosen(np.array(words, np.uint64), n, taken, out), out.tolist()))
    return (outs[0][0], np.array(outs[0][1])) if outs[0] == outs[1] else (math.nan, out * math.nan)


@states("host.chacha.choose", "F2", 0.0)
def one_of_n_by_its_word(bench):
    """Words that are refused, and the next one, too."""
    for n in (1, 3, 60_000, 2**31 + 11, 3 * 10**9 + 1, 2**32 - 1):
        refused = 2**64 % n
        edge = [v * pow(n, -1, 2**64) % 2**64 for v in (refused - 1, refused)] if n % 2 else []
        drawn = bench.rng.integers(0, 2**64, 21, dtype=np.uint64).tolist()
        for first in (0, 1, 2**63, 2**64 - 1, *edge, *drawn):
            for words in ([first], [first, drawn[0]]):
                accepted, t = _chosen(words, n, 1)
                yield Case({"w": Fraction(words[-1]), "s": n, "t": t[0], "accepted": accepted})
                if accepted:
                    break


in_words("host.chacha.chacha", "F1", "operations on bits, in the RFC's order")
