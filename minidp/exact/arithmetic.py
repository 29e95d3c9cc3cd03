"""The two arithmetics of a run, "ordinary" and "exact": an object each, chosen by its name.

BLAS may round a row of `x @ W` differently when the number of rows, or the row's place, changes. In
"exact" arithmetic no bit of an example's numbers depends on other examples: products and sums are
those of `cuts`, clipped gradients are the whole numbers of `whole`, and noise is integer.
"""

import math

from numpy.typing import NDArray

from ..arrays import in_pairs
from ..errors import ParameterError
from ..util.validate import in_range
from . import cuts
from .integers import Integers, integer_grid
from .ordinary import ORDINARY, Arithmetic
from .whole import MOST, UNITS, WholeOuter, WholeRows

__all__ = [
    "ARITHMETIC",
    "ARITHMETICS",
    "EXACT",
    "ORDINARY",
    "Arithmetic",
    "in_pairs",
    "product",
]
LEAST_UNITS, MOST_UNITS = 2.0**28, 2.0**42  # deviations of the integers of host.discrete


class Exact(Arithmetic):
    """Exact arithmetic: an example's bits depend on that example alone.

    `noise_of_sum` and `noise` raise ParameterError for noise that there are no integers for.

    Forward
        [F1]  v = w 2^32 / C, g = C 2^-32    a clip weight w counts as v: a sum is in units of the
              grid g
        [F2]  units = sigma 2^32, units g = sigma C    the deviation of noise on it, in units

    Source
        [F1]  own derivation: a clipped gradient, at most C long, is at most 2^32 units long
    """

    most_examples = MOST
    sigmas = LEAST_UNITS / UNITS, MOST_UNITS / UNITS
    copies = 4  # float64, and what is made of it
    sums_are_exact = True

    def product(self, x, W):
        return cuts.product(x, W)

    def products(self, a, d):
        return cuts.products_of_examples(a, d).astype(d.dtype)

    def product_of_patches(self, x, W):
        return cuts.product_of_patches(x, W)

    def materialises(self, grad, strategy, examples=0):
        kept = strategy != "explicit" and grad.one_product
        return grad.materialises("factored" if kept else "explicit")

    def explicit(self, grad):
        return WholeRows(grad.materialise_exactly(cuts.products_of_examples))

    def factored(self, grad):
        return WholeOuter(grad.a, grad.d) if grad.one_product else self.explicit(grad)

    def check_clip_norm(self, clip_norm):
        if clip_norm == math.inf:
            raise ParameterError(
                "exact arithmetic: expected a finite clip_norm in each clip group, of which its "
                "grid is a part"
            )

    def weights(self, weights, clip_norm):
        return weights * (UNITS / clip_norm)  # [F1]

    def noise_of_sum(self, group):
        sigma = group.noise_multiplier
        if sigma:
            in_range(*self.sigmas, exact_arithmetic_noise_multiplier=sigma)
        return Integers(sigma * UNITS, group.clip_norm / UNITS)  # [F2]

    def noise(self, noise_std, quantum):
        in_range(0, MOST_UNITS * quantum, exact_arithmetic_noise_std=noise_std)
        grid = integer_grid(noise_std, quantum)
        return Integers(noise_std / grid, grid)


EXACT = "exact"
ARITHMETICS = ORDINARY, EXACT
ARITHMETIC = {ORDINARY: Arithmetic(), EXACT: Exact()}


def product(x: NDArray, W: NDArray, arithmetic: str) -> NDArray:
    """x @ W in one of the ARITHMETICS; x (B, K), W (K, O)."""
    return ARITHMETIC[arithmetic].product(x, W)
