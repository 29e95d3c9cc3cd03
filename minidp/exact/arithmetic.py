"""The two arithmetics of a run, "ordinary" and "exact": an object each, chosen by its name.

BLAS may round a row of `x @ W` differently when the number of rows, or the row's place, changes. In
"exact" arithmetic no bit of an example's numbers depends on other examples: products and sums are
those of `cuts`, clipped gradients are the whole numbers of `whole`, and noise is integer.
"""

import math
from typing import Any

from numpy.typing import NDArray

from ..errors import ParameterError
from ..util.validate import in_range
from . import cuts
from .cuts import cut, in_pairs, precision, put_back
from .laws import Integers, Normals, integer_grid
from .whole import MOST, UNITS, WholeOuter, WholeRows

__all__ = [
    "ARITHMETIC",
    "ARITHMETICS",
    "EXACT",
    "ORDINARY",
    "Arithmetic",
    "cut",
    "in_pairs",
    "precision",
    "product",
    "put_back",
]
LEAST_UNITS, MOST_UNITS = 2.0**28, 2.0**42  # deviations of the integers of host.discrete


class Arithmetic:
    """Ordinary arithmetic: floating point numbers, rounded as NumPy and CuPy do.

    most_examples  of a lot, whose sum it holds
    sigmas         (least, most) noise multiplier that there is noise for
    copies         bytes that clipping takes for each byte of an explicit gradient
    sums_are_exact  true where the order of additions changes nothing
    """

    most_examples = math.inf
    sigmas = (0.0, math.inf)
    copies = 1
    sums_are_exact = False

    def product(self, x: NDArray, W: NDArray) -> NDArray:
        """x @ W."""
        return x @ W

    def materialises(self, grad: Any, strategy: str, examples: int = 0) -> bool:
        """True if clipping needs memory for each example's explicit gradient."""
        return grad.materialises(strategy, examples)

    def explicit(self, grad: Any) -> Any:
        """The gradients that `materialises`, as they are clipped and summed."""
        return grad.form("explicit")

    def factored(self, grad: Any) -> Any:
        """All others, as they are clipped and summed."""
        return grad

    def check_clip_norm(self, clip_norm: float) -> None:
        """Raise ParameterError for a clip norm that sums cannot be clipped to."""

    def weights(self, weights: NDArray, clip_norm: float) -> NDArray:
        """Clip weights, in the units that gradients are summed in."""
        return weights

    def noise_of_sum(self, group: Any) -> Normals | Integers:
        """The noise on a clip group's sum (`mechanism.ClipGroup`)."""
        return Normals(group.noise_std)

    def noise(self, noise_std: float, quantum: float) -> Normals | Integers:
        """The noise on multiples of `quantum`, a power of two."""
        return Normals(noise_std)


class Exact(Arithmetic):
    """Exact arithmetic: an example's bits depend on that example alone.

    `noise_of_sum` and `noise` raise ParameterError for noise that there are no integers for.

    Forward
        [F1]  a clip weight w counts as w 2^32 / C: a sum is in units of the grid C 2^-32
        [F2]  noise on it has deviation sigma 2^32 of these units, which is sigma C

    Source
        [F1]  own derivation: a clipped gradient, at most C long, is at most 2^32 units long
    """

    most_examples = MOST
    sigmas = LEAST_UNITS / UNITS, MOST_UNITS / UNITS
    copies = 4  # float64, and what is made of it
    sums_are_exact = True

    def product(self, x, W):
        return cuts.product(x, W)

    def materialises(self, grad, strategy, examples=0):
        kept = strategy != "explicit" and grad.one_product
        return grad.materialises("factored" if kept else "explicit")

    def explicit(self, grad):
        return WholeRows(grad.materialise_exactly())

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


ORDINARY, EXACT = ARITHMETICS = ("ordinary", "exact")
ARITHMETIC = {ORDINARY: Arithmetic(), EXACT: Exact()}


def product(x: NDArray, W: NDArray, arithmetic: str) -> NDArray:
    """x @ W in one of the ARITHMETICS; x (B, K), W (K, O)."""
    return ARITHMETIC[arithmetic].product(x, W)
