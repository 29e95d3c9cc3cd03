"""How far a clipped sum of float32 products may be from the sum of real numbers: a part of the sensitivity that is charged."""
from __future__ import annotations

import math
from typing import NamedTuple

BLOCKS = (64, 32)  # rows of one float32 product
MOST_CHARGED = 0.01  # of the clip norm; where more would be lost, products run in float64


class Products(NamedTuple):
    """How a lot's outer products are summed: `rows` of one float32 product, 0 for float64, in lots of up to `most` examples.

    factor  the sensitivity of the sum in units of the clip norm
    """

    rows: int
    most: int
    factor: float

    def for_lot(self, lot_size: int) -> Products:
        """The same for a lot of this size: in float64 where it is larger than `most`, which is off by less than is charged."""
        return self if lot_size <= self.most else self._replace(rows=0)


DOUBLE = Products(0, 0, 1.0)


def products(expected_lot_size: float, strategy: str) -> Products:
    r"""The sums of lots of a public expected size L.

    Forward
        [F1]  n = ceil(L + 10 sqrt L + 10), the largest lot for float32
        [F2]  factor = 1 + 2 n (R + 2) u / (1 - (R + 2) u), u = 2^-24, R the most of 64 and 32 rows for which it is at most 1.01
        [F3]  factor = 1 where neither is, and where all gradients are explicit: sums are in float64

    Source
        [F2]  Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1: R products w_b a_b d_b, each rounded
              twice and added in any order, are off by at most (R + 2) u / (1 - (R + 2) u) of the sum of their sizes; outer
              products have the size of their gradients, at most C, so that the n of a lot are off by n C times as much in
              norm, and the sums of two neighbours by twice that
        [F3]  what float64 adds is in the margin of `clip.clip_weights`
    """
    most = math.ceil(expected_lot_size + 10 * math.sqrt(expected_lot_size) + 10)  # [F1]
    for rows in BLOCKS if strategy != "explicit" else ():
        lost = (rows + 2) * 2.0**-24
        factor = 1 + 2 * most * lost / (1 - lost) * (1 + 2.0**-50)  # [F2]
        if factor <= 1 + MOST_CHARGED:
            return Products(rows, most, factor)
    return Products(0, most, 1.0)  # [F3]
