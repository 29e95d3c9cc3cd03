"""Normalisation within one example: GroupNorm, LayerNorm, UnitNorm. Nothing is averaged over
examples.
"""

from collections.abc import Sequence
from math import prod

from numpy.typing import DTypeLike

from ..backend import namespace_of
from ..errors import ParameterError, ShapeError
from ..grads.forms import Explicit
from ..nn.init import constant, zeros
from ..nn.layer import Layer
from ..util.validate import count, positive_finite


class _Norm(Layer):
    r"""Subtract the mean of a set S of coordinates, divide by its standard deviation, scale and
    shift.

    Shapes
        x, y (B, ...), seen as (B, T, G, M): positions, groups, members; scale, shift over (G, M)

    Forward
        [F1]  n = (x - mean_S x) / sqrt(mean_S (x - mean_S x)^2 + epsilon)
        [F2]  y = n scale + shift

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx = (dn - mean_S dn - n mean_S(n dn)) / sqrt(mean_S (x - mean_S x)^2 + epsilon),
              dn = dy scale
        [P1]  dscale_b = sum_t dy_bt n_bt
        [P2]  dshift_b = sum_t dy_bt

    Source
        [F1]  Ba, Kiros, Hinton 2016, arXiv:1607.06450; Wu, He 2018, arXiv:1803.08494
        [B1]  own derivation: with c = x - mean_S x and r = sqrt(mean_S c^2 + epsilon), dn/dx
              applied to dn is (dn - mean_S dn) / r - c mean_S(c dn) / r^3, and c / r = n
    """

    axes: tuple[int, ...] = ()  # of (B, T, G, M) that S runs over

    def __init__(self, shape, epsilon, dtype, name):
        super().__init__(name)
        positive_finite(epsilon=epsilon)
        self.epsilon = epsilon
        self.params = {"scale": constant(1)(None, shape, dtype), "shift": zeros(None, shape, dtype)}

    def view(self, shape):
        """(B, T, G, M) for an input of `shape`, B included. Raises ShapeError if it does not
        fit.
        """
        raise NotImplementedError

    def shape_of_y(self, input_shape):
        """The input's shape. Raises ShapeError if a set has fewer than two numbers to normalise."""
        view = self.view((1, *input_shape))
        if prod(view[axis] for axis in self.axes) < 2:
            raise ShapeError(
                f"{self.where}: expected two or more numbers to normalise together, got input of "
                f"shape {input_shape}: a number less its own mean is 0; use fewer groups"
            )
        return input_shape

    def compute_y(self, x, rng):
        """(y, (n, 1 / its standard deviation)), n (B, T, G, M) the normalised input."""
        v = x.reshape(self.view(x.shape))
        centred = v - self._mean(v)
        inverse = 1 / namespace_of(x).sqrt(self._mean(centred * centred) + self.epsilon)
        n = centred * inverse  # [F1]
        scale, shift = (self.params[name].reshape(v.shape[2:]) for name in ("scale", "shift"))
        y = n * scale + shift  # [F2]
        return y.reshape(x.shape), (n, inverse)

    def compute_dx(self, dy, kept):
        n, inverse = kept
        dn = dy.reshape(n.shape) * self.params["scale"].reshape(n.shape[2:])
        dx = (dn - self._mean(dn) - n * self._mean(n * dn)) * inverse  # [B1]
        return dx.reshape(dy.shape)

    def compute_grads(self, dy, kept):
        n, _ = kept
        xp, shape = namespace_of(dy), (dy.shape[0], *self.params["scale"].shape)
        d = dy.reshape(n.shape)
        scale = xp.einsum("btgm,btgm->bgm", d, n)  # [P1]
        shift = xp.einsum("btgm->bgm", d)  # [P2]
        return {"scale": Explicit(scale.reshape(shape)), "shift": Explicit(shift.reshape(shape))}

    def _mean(self, v):
        """Mean over the set S, whose axes are kept with length 1."""
        for axis in self.axes:  # axis by axis, which is ten times as fast in NumPy
            v = v.mean(axis=axis, keepdims=True)
        return v


class GroupNorm(_Norm):
    r"""Normalises each example's channels in groups, over all positions.

    Shapes
        x, y (B, ..., C)   scale, shift (C,)   G groups of C / G neighbouring channels

    Forward
        [F0]  x seen as (B, positions, G, C / G); S: all positions and channels of one group of one
              example. y and the gradients as in _Norm

    Source
        [F0]  Wu, He 2018, arXiv:1803.08494

    Guarantees
        A group that holds a single number is refused, since normalising would erase it.

    Raises
        ParameterError   the groups do not divide the channels, epsilon is not positive
        ShapeError       a group holds fewer than two numbers
    """

    kind = "groupnorm"
    axes = (1, 3)

    def __init__(
        self,
        channels: int,
        groups: int,
        *,
        epsilon: float = 1e-5,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ):
        """channels C, groups G dividing C; epsilon is added to the variance. scale starts at 1,
        shift at 0.
        """
        count(1, channels=channels, groups=groups)
        if channels % groups:
            raise ParameterError(f"expected groups={groups} to divide channels={channels}")
        super().__init__((channels,), epsilon, dtype, name)
        (self.channels,), self.groups = self.params["scale"].shape, groups

    def view(self, shape):
        if len(shape) < 2 or shape[-1] != self.channels:
            raise ShapeError(
                f"{self.where}: expected input of shape (..., {self.channels}), got "
                f"{tuple(shape[1:])}"
            )
        return shape[0], prod(shape[1:-1]), self.groups, self.channels // self.groups  # [F0]


class LayerNorm(_Norm):
    r"""Normalises the last axes of each example, separately at each position before them.

    Shapes
        x, y (B, ..., *shape)   scale, shift (*shape)

    Forward
        [F0]  x seen as (B, positions, 1, coordinates of `shape`); S: the coordinates at one
              position of one example. y and the gradients as in _Norm

    Source
        [F0]  Ba, Kiros, Hinton 2016, arXiv:1607.06450

    Guarantees
        A shape of a single number is refused, since normalising would erase it.

    Raises
        ParameterError   epsilon is not positive
        ShapeError       `shape` holds fewer than two numbers
    """

    kind = "layernorm"
    axes = (3,)

    def __init__(
        self,
        shape: int | Sequence[int],
        *,
        epsilon: float = 1e-5,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ):
        """shape: shape of the last axes, or the size of the last axis; epsilon is added to the
        variance.
        """
        sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        for size in sizes:
            count(1, shape=size)
        super().__init__(sizes, epsilon, dtype, name)
        self.shape = self.params["scale"].shape

    def view(self, shape):
        before = len(shape) - len(self.shape)
        if before < 1 or tuple(shape[before:]) != self.shape:
            wanted = ", ".join(["...", *map(str, self.shape)])
            raise ShapeError(
                f"{self.where}: expected input of shape ({wanted}), got {tuple(shape[1:])}"
            )
        return shape[0], prod(shape[1:before]), 1, prod(self.shape)  # [F0]


class UnitNorm(Layer):
    r"""Divides each example by its L2 norm, over all its axes.

    Shapes
        x, y (B, ...)   |x_b| the L2 norm of all numbers of example b

    Forward
        [F1]  y_b = x_b / |x_b|

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_b = (dy_b - y_b sum(dy_b y_b)) / |x_b|

    Source
        [B1]  own derivation: d|x_b| = sum(y_b dx_b), so dy_b moves with (dx_b - y_b sum(y_b dx_b))
              / |x_b|, which is symmetric

    Guarantees
        An example of zeros stays zero, and its gradient is zero. Each example is divided by its
        largest number before it is squared, so that norms of 1e30 and 1e-30 neither overflow nor
        vanish in float32.
    """

    kind = "unitnorm"

    def compute_y(self, x, rng):
        """(y, (y, largest number of each example, 1 / norm after division by it))."""
        axes = tuple(range(1, x.ndim))
        largest = namespace_of(x).abs(x).max(axis=axes, keepdims=True)
        zero = (largest == 0).astype(largest.dtype)
        largest = largest + zero
        scaled = x / largest
        norm = namespace_of(x).sqrt((scaled * scaled).sum(axis=axes, keepdims=True) + zero)
        y = scaled / norm  # [F1]
        return y, (y, largest, (1 - zero) / norm)

    def compute_dx(self, dy, kept):
        y, largest, inverse = kept
        along = (dy * y).sum(axis=tuple(range(1, y.ndim)), keepdims=True)
        return (dy - y * along) * inverse / largest  # [B1]
