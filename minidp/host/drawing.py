"""Compiled versions of the definitions in `chacha`: the same bits, several times as fast.

The 16 words of 64 blocks lie side by side, so that the compiler turns each line into vectors. Numba
widens sums and shifts of uint32 to 64 bits: each is cast back. Without fastmath no product and sum
become one operation.
"""

import numpy as np
from numba import float64, int32, uint32, uint64

from .chacha import COS, LANES, ROUNDS, SIN, SPLIT, STRETCH
from .inlined import horner, inlined, log_of
from .jit import njit

U1, U7, U8, U12, U16, U20, U24, U25, U32 = (np.uint32(n) for n in (1, 7, 8, 12, 16, 20, 24, 25, 32))
U64_1, U64_6, U64_32, U64_63, LOW = (np.uint64(n) for n in (1, 6, 32, 63, 2**32 - 1))
PAIRS = 4 * LANES
FRACTION = 2**52 - 1
_options = {"cache": True, "nogil": True, "error_model": "numpy"}


@inlined
def _quarter(x, i, j, k, m):
    """A quarter round of 64 blocks: words i, j, k, m of each."""
    for l in range(LANES):
        a, b = x[i * LANES + l], x[j * LANES + l]
        c, d = x[k * LANES + l], x[m * LANES + l]
        a = uint32(a + b)
        d = uint32(d ^ a)
        d = uint32(uint32(d << U16) | uint32(d >> U16))
        c = uint32(c + d)
        b = uint32(b ^ c)
        b = uint32(uint32(b << U12) | uint32(b >> U20))
        a = uint32(a + b)
        d = uint32(d ^ a)
        d = uint32(uint32(d << U8) | uint32(d >> U24))
        c = uint32(c + d)
        b = uint32(b ^ c)
        b = uint32(uint32(b << U7) | uint32(b >> U25))
        x[i * LANES + l], x[j * LANES + l] = a, b
        x[k * LANES + l], x[m * LANES + l] = c, d


@njit("void(uint32[::1], uint64[::1], uint32[::1])", **_options)
def _cipher(state, blocks, x):
    """x (1024,), row after row: the words of 64 blocks, by their numbers, as `chacha.chacha` has
    it.
    """
    for k in range(16):
        for l in range(LANES):
            x[k * LANES + l] = state[k]
    for l in range(LANES):
        x[12 * LANES + l], x[13 * LANES + l] = uint32(blocks[l]), uint32(blocks[l] >> U32)
    for _ in range(ROUNDS // 2):
        _quarter(x, 0, 4, 8, 12)
        _quarter(x, 1, 5, 9, 13)
        _quarter(x, 2, 6, 10, 14)
        _quarter(x, 3, 7, 11, 15)
        _quarter(x, 0, 5, 10, 15)
        _quarter(x, 1, 6, 11, 12)
        _quarter(x, 2, 7, 8, 13)
        _quarter(x, 3, 4, 9, 14)
    for k in range(16):
        for l in range(LANES):
            x[k * LANES + l] = uint32(x[k * LANES + l] + state[k])
    for l in range(LANES):
        x[12 * LANES + l] = uint32(x[12 * LANES + l] + uint32(blocks[l]))
        x[13 * LANES + l] = uint32(x[13 * LANES + l] + uint32(blocks[l] >> U32))


@njit("void(uint32[::1], uint64[::1], uint32[:, ::1])", **_options)
def words(state, blocks, out):
    """chacha.chacha: state (16,), the blocks' input without their numbers, blocks (n,) to out (n,
    16).
    """
    x, numbers = np.empty(16 * LANES, np.uint32), np.zeros(LANES, np.uint64)
    for at in range(0, out.shape[0], LANES):
        size = min(LANES, out.shape[0] - at)
        for l in range(size):
            numbers[l] = blocks[at + l]
        _cipher(state, numbers, x)
        for l in range(size):
            for k in range(16):
                out[at + l, k] = x[k * LANES + l]


@njit(
    "void(uint32[::1], float64[::1], int64[::1], float64[::1], int64[::1], float64[::1])",
    **_options,
)
def _normals(w, u, ubits, m, mbits, z):
    """z (512,): the normal numbers of 64 blocks' words w (1024,), by `chacha.normals`; the others
    are scratch.
    """
    for p in range(PAIRS):
        u[p] = float64(w[p]) * 2.0**-32 + (float64(w[p + PAIRS]) + 0.5) * 2.0**-64
    for p in range(PAIRS):
        bits = ubits[p] - SPLIT
        u[p] = float64(bits >> 52)
        mbits[p] = (bits & FRACTION) + SPLIT
    for p in range(PAIRS):
        r = np.sqrt(-2.0 * log_of(m[p], u[p], horner))
        v, low = w[p + 2 * PAIRS], w[p + 3 * PAIRS]
        f = float64(int32(v)) * 2.0**-32 + (float64(uint32(low >> U1)) + 0.5) * 2.0**-63
        c = 1.0 - 2.0 * float64(uint32(low & U1))
        q = f * f
        z[p] = r * (c * horner(COS, q))
        z[p + PAIRS] = r * (f * horner(SIN, q))


@njit(
    [
        "void(uint32[::1], int64, float64, float64, float32[::1])",
        "void(uint32[::1], int64, float64, float64, float64[::1])",
    ],
    **_options,
)
def add_normals(state, begin, std, grid, out):
    """out (n,) <- chacha.rounded(out + std z_(begin + i), grid) in float64, z by chacha.normals,
    block 0 first.
    """
    x, z, u, m = (
        np.empty(16 * LANES, np.uint32),
        np.empty(STRETCH),
        np.empty(PAIRS),
        np.empty(PAIRS),
    )
    ubits, mbits, blocks = u.view(np.int64), m.view(np.int64), np.empty(LANES, np.uint64)
    end, cells = begin + out.size, 1 / grid if grid else 0.0
    for stretch in range(begin // STRETCH, -(-end // STRETCH)):
        for l in range(LANES):
            blocks[l] = uint64(stretch * LANES + l)
        _cipher(state, blocks, x)
        _normals(x, u, ubits, m, mbits, z)
        low, high = max(begin, stretch * STRETCH), min(end, (stretch + 1) * STRETCH)
        place, drawn = low - begin, low - stretch * STRETCH
        for i in range(high - low):
            value = out[place + i] + std * z[drawn + i]
            out[place + i] = np.rint(value * cells) * grid if grid else value


@njit("boolean(uint64[::1], int64, uint64[::1], int64[::1])", **_options)
def choose(drawn, n, taken, out):
    """chacha.choose; n below 2^32."""
    at = 0
    for i in range(out.size):
        s = uint64(n - out.size + i + 1)
        least = uint64(uint64(0) - s) % s
        while True:
            if at == drawn.size:
                return False
            w = drawn[at]
            at += 1
            if uint64(w * s) >= least:
                break
        t = uint64(uint64((w >> U64_32) * s) + uint64(uint64((w & LOW) * s) >> U64_32)) >> U64_32
        if taken[t >> U64_6] >> (t & U64_63) & U64_1:
            t = uint64(s - U64_1)
        taken[t >> U64_6] |= U64_1 << (t & U64_63)
        out[i] = t
    return True
