"""Random words and normal numbers as functions of (key, stream, release, index): the definitions,
in NumPy.

`fast.drawing` holds the compiled twins, `fast/device/noise.cu` those of the GPU. All three give the
same bits, because they use only integers, and additions, products, divisions and square roots of
float64, each rounded by itself.
"""

import math

import numpy as np
from numpy.typing import NDArray

from .series import SPLIT, log_of, polynomial

ROUNDS = 20
LANES = 64  # blocks that are computed in one call
STRETCH = 8 * LANES  # normal numbers that are made together
CONSTANTS = np.frombuffer(b"expand 32-byte k", "<u4").astype(np.uint32)
QUARTERS = (
    (0, 4, 8, 12),
    (1, 5, 9, 13),
    (2, 6, 10, 14),
    (3, 7, 11, 15),
    (0, 5, 10, 15),
    (1, 6, 11, 12),
    (2, 7, 8, 13),
    (3, 4, 9, 14),
)
# sin pi f, over f
SIN = tuple((-1) ** n * math.pi ** (2 * n + 1) / math.factorial(2 * n + 1) for n in range(11))
COS = tuple((-1) ** n * math.pi ** (2 * n) / math.factorial(2 * n) for n in range(11))  # cos pi f


def chacha(key, place):
    r"""Blocks of 16 random words, by the cipher ChaCha.

    Shapes
        key (8,) uint32   place (4, n) uint32: the last four words of each block's input   returns
                          (16, n) uint32

    Forward
        [F1]  a += b, d = (d ^ a) <<< 16; c += d, b = (b ^ c) <<< 12; a += b, d = (d ^ a) <<< 8; c
              += d, b = (b ^ c) <<< 7 on four columns and then on four diagonals of the words, ten
              times each; then the input is added

    Source
        [F1]  RFC 8439, sections 2.1 to 2.3
    """
    start = np.concatenate(
        [np.broadcast_to(np.concatenate([CONSTANTS, key])[:, None], (12, place.shape[1])), place]
    )
    x = start.copy()
    for _ in range(ROUNDS // 2):
        for a, b, c, d in QUARTERS:
            for p, q, r, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):  # [F1]
                x[p] += x[q]
                x[r] ^= x[p]
                x[r] = x[r] << turn | x[r] >> (32 - turn)
    return x + start


def words(state, blocks):
    """(16, n) uint32: the words of n blocks. blocks: (n,) their numbers, below 2^64; state: (16,)
    input of a block without its number, as `Draws.state` gives it.
    """
    low, high = blocks & np.uint64(2**32 - 1), blocks >> np.uint64(32)
    tail = np.broadcast_to(state[14:, None], (2, blocks.size))
    return chacha(state[4:12], np.array([low, high, *tail], np.uint32))


def normals(words):
    r"""Standard normal numbers from pairs of uniform ones (Box and Muller), in float64.

    Shapes
        words (16, n) uint32, n a multiple of 64   returns (8 n,) float64: 512 numbers of each 64
                                                   blocks

    Forward
        [F1]  u_j = W_j 2^-32 + (W_(j + 4) + 1/2) 2^-64    j < 4, rounded to float64
        [F2]  f_j = V_j 2^-32 + (floor(W_(j + 12) / 2) + 1/2) 2^-63, c_j = (-1)^(W_(j + 12)),
              V_j = W_(j + 8) - 2^32 [W_(j + 8) >= 2^31]    W as a signed number
        [F3]  z_j = r_j c_j cos(pi f_j), z_(j + 4) = r_j sin(pi f_j), r_j = sqrt(-2 ln u_j)    of 64
              blocks, row after row
        [M1]  -r_j^2 / 2 = e ln 2 + 2 sum_(n=0..9) s^(2 n + 1) / (2 n + 1), s = (m - 1) / (m + 1),
              m = u_j / 2^e, e = floor(log2 u_j + 1/2)    ln u_j = e ln 2 + ln m, 1/sqrt 2 <= m <
              sqrt 2 but for rounding
        [M2]  cos(pi f) = sum_(n=0..10) (-1)^n (pi f)^(2 n) / (2 n)!,
              sin(pi f) = sum_(n=0..10) (-1)^n (pi f)^(2 n + 1) / (2 n + 1)!

    Source
        [F1]  own derivation: the middle of one of 2^64 cells; never 0, so that |z| <= sqrt(130 ln
              2) = 9.5
        [F2]  own derivation: the middle of one of 2^63 cells of a half turn; one more bit chooses
              the half
        [F3]  Box and Muller 1958, Annals of Mathematical Statistics 29(2)
        [M1]  own derivation: |s| <= 0.1716, so that the first term left out is below 3e-17 of ln m
        [M2]  own derivation: |pi f| <= pi/2; the first terms left out are below 2e-17 and 2e-18

    Guarantees
        |z - exact| < 1e-14, given u and f. No branch depends on a drawn value. The bits do not
        depend on the device.
    """
    u = (words[0:4].astype(np.float64) * 2.0**-32) + (
        words[4:8].astype(np.float64) + 0.5
    ) * 2.0**-64  # [F1]
    bits = u.view(np.int64) - SPLIT
    e = (bits >> 52).astype(np.float64)
    m = ((bits & (2**52 - 1)) + SPLIT).view(np.float64)
    f = (
        words[8:12].view(np.int32) * 2.0**-32
        + ((words[12:16] >> 1).astype(np.float64) + 0.5) * 2.0**-63
    )  # [F2]
    c = 1 - 2.0 * (words[12:16] & 1)  # [F2]
    r, square = np.sqrt(-2 * log_of(m, e)), f * f  # [M1]
    z = np.concatenate(
        [r * (c * polynomial(COS, square)), r * (f * polynomial(SIN, square))]
    )  # [F3] [M2]
    return z.reshape((8, -1, LANES)).swapaxes(0, 1).ravel()


def rounded(x, grid):
    r"""Round x to the nearest multiple of a public grid, ties to even; 0 is no grid.

    Forward
        [F1]  y = g rint(x / g) where g > 0, else x    g is a power of two: its products are exact

    Source
        [F1]  own derivation: rounding a release is post-processing and costs no privacy
    """
    return np.rint(x / grid) * grid if grid else x  # [F1]


def choose(drawn: NDArray[np.uint64], n: int, taken: NDArray[np.uint64], out: NDArray) -> bool:
    r"""Choose different numbers below n, all subsets equally likely; False if `drawn` did not
    suffice.

    Shapes
        drawn (m,) uint64, random   out (size,), written   taken (n / 64 or more,) uint64, zeros,
                                    which the compiled twin uses; n below 2^32

    Forward
        [F1]  out_i = n - size + i where sum_(j=0..i - 1) [out_j = t_i] > 0, else t_i    t_i uniform
              below n - size + i + 1
        [F2]  t = floor(w s / 2^64) where accepted = 1,
              accepted = [mod(w s, 2^64) >= mod(2^64, s)]    uniform below s; w the next of `drawn`
              until one is accepted

    Source
        [F1]  Floyd; Bentley 1987, Communications of the ACM 30(9), "A sample of brilliance"
        [F2]  Lemire 2019, arXiv:1805.10941, algorithm 5
    """
    chosen: set[int] = set()
    words = iter(drawn.tolist())
    for i in range(out.size):
        s = n - out.size + i + 1
        t = next((w * s >> 64 for w in words if w * s % 2**64 >= 2**64 % s), None)  # [F2]
        if t is None:
            return False
        out[i] = s - 1 if t in chosen else t  # [F1]
        chosen.add(int(out[i]))
    return True
