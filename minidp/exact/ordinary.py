"""Ordinary arithmetic, and what an arithmetic is asked."""

import math
from typing import Any

from numpy.typing import NDArray

from ..arrays import namespace_of
from .laws import Normals

ORDINARY = "ordinary"


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

    def products(self, a: NDArray, d: NDArray) -> NDArray:
        """(N, I, O), the sums over t of a (N, T, I) and d (N, T, O)."""
        return namespace_of(a, d).matmul(a.transpose(0, 2, 1), d)

    def product_of_patches(self, x: NDArray, W: NDArray) -> tuple[NDArray, Any]:
        r"""(x as patches are taken from it, multiply) of a convolution's images and matrix.

        multiply(patches, examples, out) writes patches @ W, of the examples of a slice, to out.

        Forward
            [F1]  out_bto = sum_k P_btk W_ko    P the patches

        Source
            [F1]  own derivation: the definition
        """

        def multiply(patches, examples, out):
            namespace_of(out).matmul(patches, W, out=out)  # [F1]

        return x, multiply

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

    def noise_of_sum(self, group: Any) -> Any:
        """The noise on a clip group's sum (`mechanism.ClipGroup`)."""
        return Normals(group.noise_std)

    def noise(self, noise_std: float, quantum: float) -> Any:
        """The noise on multiples of `quantum`, a power of two."""
        return Normals(noise_std)
