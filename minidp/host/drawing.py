"""Compiled versions of the definitions in `chacha`: the same bits, several times as fast.

The 16 words of 64 blocks lie side by side, so that the compiler turns each line into vectors. Numba
widens sums and shifts of uint32 to 64 bits: each is cast back. Without fastmath no product and sum
become one operation.
"""

import numpy as np
from numba import float64, int32, uint32, uint64

from .chacha import COS, LANES, ROUNDS, SIN, SPLIT, STRETCH
from .inlined import horner, horner_on, inlined, log_of
from .jit import CACHED, njit

U1, U7, U8, U12, U16, U20, U24, U25, U32 = (np.uint32(n) for n in (1, 7, 8, 12, 16, 20, 24, 25, 32))
U64_1, U64_6, U64_32, U64_63, LOW = (np.uint64(n) for n in (1, 6, 32, 63, 2**32 - 1))
PAIRS = 4 * LANES
FRACTION = 2**52 - 1
COS_LOW, COS_HIGH, SIN_LOW, SIN_HIGH = COS[:5], COS[5:], SIN[:5], SIN[5:]
_options = {"cache": CACHED, "nogil": True, "error_model": "numpy"}


@inlined
def _quarter(a, b, c, d):
    """A quarter round of four words of a block."""
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
    return a, b, c, d


@inlined
def _double_round(x):
    """Two rounds of 64 blocks; the 16 words of a block are loaded and stored once."""
    for l in range(LANES):
        a0, a1, a2, a3 = x[l], x[LANES + l], x[2 * LANES + l], x[3 * LANES + l]
        b0, b1, b2, b3 = x[4 * LANES + l], x[5 * LANES + l], x[6 * LANES + l], x[7 * LANES + l]
        c0, c1, c2, c3 = x[8 * LANES + l], x[9 * LANES + l], x[10 * LANES + l], x[11 * LANES + l]
        d0, d1, d2, d3 = x[12 * LANES + l], x[13 * LANES + l], x[14 * LANES + l], x[15 * LANES + l]
        a0, b0, c0, d0 = _quarter(a0, b0, c0, d0)
        a1, b1, c1, d1 = _quarter(a1, b1, c1, d1)
        a2, b2, c2, d2 = _quarter(a2, b2, c2, d2)
        a3, b3, c3, d3 = _quarter(a3, b3, c3, d3)
        a0, b1, c2, d3 = _quarter(a0, b1, c2, d3)
        a1, b2, c3, d0 = _quarter(a1, b2, c3, d0)
        a2, b3, c0, d1 = _quarter(a2, b3, c0, d1)
        a3, b0, c1, d2 = _quarter(a3, b0, c1, d2)
        x[l], x[LANES + l], x[2 * LANES + l], x[3 * LANES + l] = a0, a1, a2, a3
        x[4 * LANES + l], x[5 * LANES + l], x[6 * LANES + l], x[7 * LANES + l] = b0, b1, b2, b3
        x[8 * LANES + l], x[9 * LANES + l], x[10 * LANES + l], x[11 * LANES + l] = c0, c1, c2, c3
        x[12 * LANES + l], x[13 * LANES + l], x[14 * LANES + l], x[15 * LANES + l] = d0, d1, d2, d3


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
        _double_round(x)
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
    are scratch. Each loop's chain of sums is short enough for a processor to work on several.
    """
    for p in range(PAIRS):
        u[p] = float64(w[p]) * 2.0**-32 + (float64(w[p + PAIRS]) + 0.5) * 2.0**-64
    for p in range(PAIRS):
        bits = ubits[p] - SPLIT
        u[p] = float64(bits >> 52)
        mbits[p] = (bits & FRACTION) + SPLIT
    for p in range(PAIRS):
        m[p] = np.sqrt(-2.0 * log_of(m[p], u[p], horner))
    for p in range(PAIRS):
        v, low = w[p + 2 * PAIRS], w[p + 3 * PAIRS]
        u[p] = float64(int32(v)) * 2.0**-32 + (float64(int32(low >> U1)) + 0.5) * 2.0**-63
        q = u[p] * u[p]
        z[p], z[p + PAIRS] = horner(COS_HIGH, q), horner(SIN_HIGH, q)
    for p in range(PAIRS):
        r, f, c = m[p], u[p], 1.0 - 2.0 * float64(int32(w[p + 3 * PAIRS] & U1))
        q = f * f
        z[p] = r * (c * horner_on(z[p], COS_LOW, q))
        z[p + PAIRS] = r * (f * horner_on(z[p + PAIRS], SIN_LOW, q))


@njit(**_options)
def add_normals(state, begin, std, grid, parts, scale, out):
    """out (n,) <- scale chacha.rounded(sum of parts + std z_(begin + i), grid) in float64, z by
    chacha.normals, block 0 first; parts: a tuple of arrays (n,), of which one may be out.
    """
    x, z, u, m = (
        np.empty(16 * LANES, np.uint32),
        np.empty(STRETCH),
        np.empty(PAIRS),
        np.empty(PAIRS),
    )
    ubits, mbits, blocks = u.view(np.int64), m.view(np.int64), np.empty(LANES, np.uint64)
    total = np.empty(STRETCH)
    end, cells = begin + out.size, 1 / grid if grid else 0.0
    for stretch in range(begin // STRETCH, -(-end // STRETCH)):
        for l in range(LANES):
            blocks[l] = uint64(stretch * LANES + l)
        _cipher(state, blocks, x)
        _normals(x, u, ubits, m, mbits, z)
        low, high = max(begin, stretch * STRETCH), min(end, (stretch + 1) * STRETCH)
        here, drawn = out[low - begin : high - begin], z[low - stretch * STRETCH :]
        total[: here.size] = parts[0][low - begin : high - begin]
        for k in range(1, len(parts)):
            part = parts[k][low - begin : high - begin]
            for i in range(part.size):
                total[i] += part[i]
        for i in range(here.size):
            value = total[i] + std * drawn[i]
            here[i] = scale * (np.rint(value * cells) * grid if grid else value)


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
