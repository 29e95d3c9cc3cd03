"""The integer noise of exact arithmetic: a wide discrete Gaussian from small tables. The
definition, in NumPy.

`drawing.add_integers` is the compiled twin. Tables are made of Python's integers: the same bits on
every machine.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..util.validate import in_range
from .chacha import LANES

LEAST, MOST = 2.0**28, 2.0**42  # standard deviations
# 640 KiB, which fit a core's L2 cache; measured: more cells take as long as a fourth look-up
MOST_CELLS = 2**16
ONE = 2**64
FIXED = 192  # bits behind the point of the probabilities


class Plan(NamedTuple):
    """Z = sum_j k^j X_j, j < J = parts, k = scale: each X_j of variance s_0^2, from a table of n =
    cells magnitudes.
    """

    parts: int
    scale: int
    variance: Fraction
    cells: int


class Table(NamedTuple):
    """What the samplers need: thresholds (n,) uint64, aliases (n,) uint16, n a power of two."""

    parts: int
    scale: int
    thresholds: NDArray[np.uint64]
    aliases: NDArray[np.uint16]


def plan(std: float) -> Plan:
    """The fewest parts whose table fits the cache: 3 or 4. Raises ParameterError if std is not in
    [2^28, 2^42].

    s_0^2 sum_j k^(2 j) = std^2 exactly, k the largest scale with s_0 >= 2 k, and cells the least
    power of two above 10 s_0. Sums of this kind: Micciancio and Walter 2017, CRYPTO, "Gaussian
    sampling over the integers".
    """
    in_range(LEAST, MOST, std=std)
    square = Fraction(float(std)) ** 2
    for parts in (3, 4):
        scale = math.ceil((std / 2) ** (1 / parts))
        while 4 * scale**2 * (squares := sum(scale ** (2 * j) for j in range(parts))) > square:
            scale -= 1
        variance = square / squares
        cells = 2 ** math.isqrt(int(100 * variance)).bit_length()
        if cells <= MOST_CELLS:
            break
    return Plan(parts, scale, variance, cells)


@lru_cache(maxsize=4)
def table(std: float) -> Table:
    """The `alias_table` of `plan(std)`; the last four are kept. Raises ParameterError as `plan`
    does.
    """
    return alias_table(plan(std))


def alias_table(plan: Plan) -> Table:
    r"""Table of the magnitude |X| of a discrete Gaussian, cut at n: a cell holds itself and one
    other value.

    Forward
        [F1]  p_x = exp(-x^2 / (2 s_0^2)), p_(x + 1) = p_x r_x,
              r_x = exp(-1 / (2 s_0^2))^(2 x + 1)    r_(x + 1) = r_x r_0^2, and r_0 by a series
        [F2]  w_x = rint(2^64 n m_x / sum_y m_y) where x > 0, else 2^64 n - sum_y [y > 0] w_y,
              m_x = 2 p_x where x > 0, else p_x
        [F3]  threshold_x + sum_y [alias_y = x] (2^64 - threshold_y) = w_x    cell x, of weight
              2^64, holds x below its threshold, and above it a part of a heavier value

    Source
        [F1]  own derivation: with 192 bits behind the point p_x is off by less than 2^-157, w_x by
              less than 2^-70
        [F2]  own derivation: n values each 1/2 off, and the sum of that at 0: total variation at
              most 2^-65
        [F3]  Walker 1977, ACM TOMS 3(3); Vose 1991, IEEE TSE 17(9); exact in integers
    """
    r, term, step, places = 0, 1 << FIXED, 1 / (2 * plan.variance), range(plan.cells)
    for n in range(1, FIXED):  # the terms are below 2^-FIXED long before
        r, term = r + term, -term * step.numerator // (step.denominator * n)  # [F1]
    p, masses, square = 1 << FIXED, [], r * r >> FIXED
    for _ in places:
        masses.append(2 * p)
        p, r = p * r >> FIXED, r * square >> FIXED  # [F1]
    masses[0] //= 2
    total, whole = sum(masses), plan.cells * ONE
    weights = [(2 * whole * mass + total) // (2 * total) for mass in masses]  # [F2]
    weights[0] += whole - sum(weights)  # [F2]
    # a cell of weight 2^64 has itself as its other value
    thresholds, aliases = (
        [0] * plan.cells,
        [*places],
    )
    light, heavy = [x for x in places if weights[x] < ONE], [x for x in places if weights[x] >= ONE]
    while light:
        x, y = light.pop(), heavy[-1]
        thresholds[x], aliases[x] = weights[x], y  # [F3]
        weights[y] -= ONE - weights[x]  # [F3]
        if weights[y] < ONE:
            light.append(heavy.pop())
    assert all(weights[x] == ONE for x in heavy)
    return Table(
        plan.parts, plan.scale, np.array(thresholds, np.uint64), np.array(aliases, np.uint16)
    )


def integers(words: NDArray[np.uint32], table: Table) -> NDArray[np.int64]:
    r"""Discrete Gaussian numbers: J look-ups each.

    Shapes
        words (16, 64 (J + 1) n) uint32   returns (512 n,) int64

    Forward
        [F1]  U_qt = 2^32 W_qt + W_(q + 512, t)    q < 512, of the words W_t of 64 blocks, row after
              row; t <= J make Z_q
        [F2]  i_qj = mod(floor(U_q(0) / (2 n)^j), n),
              s_qj = (-1)^floor(U_q(0) / (2^j n^(j + 1)))    b + 1 bits from bit (b + 1) j on: a
              cell, n = 2^b, and then the sign
        [F3]  X_qj = s_qj i_qj where U_q(j + 1) < threshold(i_qj), else s_qj alias(i_qj)
        [F4]  Z_q = sum_(j=0..J - 1) k^(J - 1 - j) X_qj

    Source
        [F1]  own derivation: integers only, the same on every device
        [F2]  own derivation: bits of a mask are exactly uniform; zero has half a weight with each
              sign
        [F3]  the alias method: host.discrete.alias_table [F3]
        [F4]  host.discrete.plan, by Horner's rule

    Guarantees
        No branch on a drawn value. |Z| < n (1 + k + ... + k^(J-1)) < 2^48.
    """
    parts, scale, thresholds, aliases = table
    bits = np.uint64(thresholds.size.bit_length() - 1)
    u = words[:8].astype(np.uint64) << np.uint64(32) | words[8:]  # [F1]
    u = u.reshape((8, -1, parts + 1, LANES)).transpose((2, 1, 0, 3)).reshape((parts + 1, -1))
    z = np.zeros(u.shape[1], np.int64)
    for j in range(parts):
        field = u[0] >> np.uint64(j) * (bits + np.uint64(1))  # [F2]
        cell = field & np.uint64(thresholds.size - 1)  # [F2]
        sign = 1 - 2 * (field >> bits & np.uint64(1)).astype(np.int64)  # [F2]
        x = np.where(u[j + 1] < thresholds[cell], cell, aliases[cell]).astype(np.int64)  # [F3]
        z = z * scale + sign * x  # [F4]
    return z


def distances(std: float, plan: Plan) -> tuple[float, float, float, float]:
    r"""Bounds of the total variation distance between Z as it is drawn and a normal number of
    deviation std, rounded.

    Bound
        [M1]  tables = J 2^-65
        [M2]  tails = J erfc((n - 1) / (s_0 sqrt 2))
        [M3]  smoothing = (J - 1) t / (1 - t), t = 2 e / (1 - e),
              e = exp(-2 pi^2 s_0^2 / (k^2 + 1))
        [M4]  rounding = (f(1) / 12 + f(0) (1 + 4 exp(-3/2)) / (24 std)) / std^2 + e / (1 - e),
              e = exp(-2 pi^2 std^2)    f the standard normal density: .0202 / std^2

    Source
        [M1]  host.discrete.alias_table [F2]; distances of independent parts add
        [M2]  own derivation: sum_(x >= n) p_x <= int_(n-1)^inf p, and sum p_x >= s_0 sqrt(2 pi)
              (Poisson's sum)
        [M3]  own derivation: X + k Y, Y of deviation s >= s_0, has the law of deviation sqrt(s_0^2
              + k^2 s^2) times a sum over y of exp(-(y - c)^2 / (2 v)), v = 1 / (1/s^2 + k^2/s_0^2)
              >= s_0^2 / (k^2 + 1). By Poisson's sum that is constant but for a factor 1 +- t;
              divided by its mean, t / (1 - t) off. There are J - 1 such sums, and one function of
              two laws is no further apart than they are
        [M4]  own derivation: the mass of a unit cell less the density h(x) = f(x/s)/s at its middle
              is int h''(x + t) (1/2 - |t|)^2 / 2 dt, whose weight is 1/24. sum_x |h''(x + t)| <=
              int |h''| + V(h''), V the variation: 4 f(1) / s^2 + 2 f(0) (1 + 4 exp(-3/2)) / s^3;
              half of it. sum h(x) = 1 +- 2 e / (1 - e)

    Valid for
        s_0 >= k >= 1 (t < 1); `total_variation` takes those of `plan`
    """
    s0, e = (
        math.sqrt(plan.variance),
        math.exp(-2 * math.pi**2 * plan.variance / (plan.scale**2 + 1)),
    )  # [M3]
    t, density, narrow = (
        2 * e / (1 - e),
        math.sqrt(0.5 / math.pi),
        math.exp(-2 * math.pi**2 * std**2),
    )  # [M3] [M4]
    curved = (
        density * (math.exp(-0.5) / 12 + (1 + 4 * math.exp(-1.5)) / (24 * std)) / std**2
    )  # [M4]
    return (
        plan.parts * 2.0**-65,  # [M1]
        plan.parts * math.erfc((plan.cells - 1) / (s0 * math.sqrt(2))),  # [M2]
        (plan.parts - 1) * t / (1 - t),  # [M3]
        curved + narrow / (1 - narrow),
    )  # [M4]


def total_variation(std: float) -> float:
    """Total variation distance, at most, of one number of `Draws.add_integers` from round(N(0,
    std^2)), rounded up.

    The sum of `distances`; at most 2^-62.5 where std >= 2^32. Raises ParameterError as `plan` does.
    """
    # more than the rounding of some thirty operations
    return sum(distances(std, plan(std))) * (1 + 2.0**-40)
