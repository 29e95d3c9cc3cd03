"""Bounds on the rounding error of a sum; they raise the sensitivity that is charged."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..grads.forms import CANCELLING

LEAST_ROWS, MOST_ROWS = 30, 150  # of one float32 product; with fewer, float64 is as fast
MOST_CHARGED = (
    0.0099  # of the clip norm; if float32 products could lose more, they are computed in float64
)
FREE = 2.0**-21  # of the clip norm; the margin of `clip.clip_weights` covers as much
# roundings in a float64 sum besides one for each example: rows of a product, blocks of a batch
OTHERS = 2**13


class Products(NamedTuple):
    """How a lot's outer products are summed: `rows` of one float32 product, 0 for float64, in lots
    of up to `most` examples.

    factor  sensitivity of the sum, in units of the clip norm
    lot     number of examples in the lot that is summed, which is private; None for any number
    """

    rows: int
    most: int
    factor: float
    lot: int | None = None

    def for_lot(self, lot_size: int) -> Products:
        """How a lot of this size is summed: in float64 if it is larger than `most`, so that the
        error stays below the one that is charged.
        """
        return self._replace(rows=self.rows if lot_size <= self.most else 0, lot=lot_size)


DOUBLE = Products(0, 0, 1.0)


def products(expected_lot_size: float, strategy: str) -> Products:
    r"""How to sum lots of a public expected size L.

    Forward
        [F1]  n = ceil(L + 3 sqrt L + 10)    the largest lot for float32
        [F2]  factor = 1 + 2 n (11 R / 19 + 7) u / (1 - (R + 6) u), u = 2^-24,
              R = min(150, floor((0.0099 / (2 n u) - 7) 19 / 11))    R, at most 150, the largest
              with 2 n (11 R / 19 + 7) u <= 0.0099
        [F3]  factor = 1 + p where p > 2^-21, else 1, p = 2 n (2 n + 2^13) k 2^-52    where R is
              below 30, and where all gradients are explicit; k = 64 (grads.CANCELLING), and 1 for
              explicit gradients

    Source
        [F2]  own derivation, from Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
              section 3.1. Take R products w_b a_b d_b, each rounded three times and added in any
              order, and four such sums, added at most three times. If product j goes through D_j
              additions, it is off by (D_j + 6) u / (1 - (R + 6) u) of its size. sum_j D_j^2 is
              largest, but below R^3 / 3 + R^2 / 2, if the products are added one after the other.
              So by Cauchy and Schwarz the norm of the sum is off by sqrt(R sum_j (D_j + 6)^2) <= R
              (11 R / 19 + 7) such parts of C, even if each coordinate is added in its own order; an
              outer product is as long as its gradient. A lot of n examples is off by n / R times
              that, and two neighbours by twice as much
        [F3]  the same in float64, u = 2^-53. Chains have up to n + 2^13 roundings for any batches
              (`OuterSum` guarantees this; other products have 4,096 rows). The absolute terms of a
              sum of outer products add up to at most 64 times its size. The bound is for 2 n
              examples; a lot of expected size L is larger with probability below 2^-80, which is
              not charged
    """
    most = math.ceil(expected_lot_size + 3 * math.sqrt(expected_lot_size) + 10)  # [F1]
    rows = min(MOST_ROWS, math.floor((MOST_CHARGED / (2 * most * 2.0**-24) - 7) * 19 / 11))
    if strategy != "explicit" and rows >= LEAST_ROWS:
        lost = (11 * rows / 19 + 7) * 2.0**-24
        return Products(
            rows, most, 1 + 2 * most * lost / (1 - (rows + 6) * 2.0**-24) * (1 + 2.0**-50)
        )  # [F2]
    lost = 2 * most * (2 * most + OTHERS) * (1 if strategy == "explicit" else CANCELLING) * 2.0**-52
    return Products(0, most, 1 + lost if lost > FREE else 1.0)  # [F3]


def in_blocks(most: int, block: int) -> float:
    r"""Sensitivity of a float64 sum of up to m clipped rows in blocks of R, in clip norms.

    Forward
        [F1]  factor = 1 + p where p > 2^-21, else 1, p = m (2 R + m / R) 2^-52

    Source
        [F1]  own derivation, from Higham, section 3.1, as for `products` [F3]: a row goes through
              at most R + 16 roundings of 2^-53 in its block, in any order of additions, and then
              through m / R + 1 more. So the sum is off by at most m (R + m / R + 17) 2^-53 of C,
              and the sums of two neighbours by twice that. The second R covers terms of second
              order and one division, for R from 1,024 and m up to 2^41.
    """
    lost = most * (2 * block + most / block) * 2.0**-52  # [F1]
    return 1 + lost if lost > FREE else 1.0  # [F1]
