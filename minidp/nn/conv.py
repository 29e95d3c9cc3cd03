"""Convolution as one product: a matrix whose rows are the windows' patches, times the kernels."""

from math import prod
from typing import Any

from numpy.typing import DTypeLike, NDArray

from ..backend import namespace_of, patch_budget
from ..compiled import kernel
from ..grads.forms import OuterSum, PerExampleGrad, PositionSums, gram_is_cheaper
from ..util.validate import count, same_batch
from .init import Initializer, Rng, truncated_normal
from .layer import Drawn
from .window import Padding, Patches, Window, pair


class SumInChunks(PerExampleGrad):
    """An OuterSum whose first factor exists for a few examples at a time.

    A subclass gives `rows` and `first`, and by its constructor a parameter's shape (..., O).
    """

    def __init__(self, x: NDArray, d: NDArray, shape: tuple[int, ...]):
        """x (B, ...): the first factor is made of it; d (B, ..., O): the second factor."""
        same_batch(type(self).__name__, x=x, d=d)
        self.x, self.d, self.arrays, self.shape = x, d, (x, d), shape
        self.n_examples = x.shape[0]
        self._matrix = (prod(self.shape[:-1]), self.shape[-1])
        self._positions = prod(d.shape[1:-1])

    def first(self, start: int, stop: int) -> NDArray:
        """The first factor (stop - start, T, I) of some examples."""
        raise NotImplementedError

    def chunks(self, grams: int = 0) -> Any:
        """Yield (start, OuterSum) for chunks of examples whose patches and `grams` Gram matrices
        fit into memory.
        """
        numbers = self._positions * (self._matrix[0] + grams * self._positions)
        for start, stop in in_chunks(self.x, numbers):
            d = self.d[start:stop].reshape((stop - start, self._positions, self._matrix[1]))
            yield start, OuterSum(self.first(start, stop), d)

    def sq_norms(self) -> NDArray:
        return self.xp.concatenate([chunk.sq_norms() for _, chunk in self.chunks(grams=3)])

    def sq_norms_upper(self):
        return self.xp.concatenate([chunk.sq_norms_upper() for _, chunk in self.chunks(grams=3)])

    def add_weighted_sum(self, total: NDArray, w: NDArray, rows: int = 0) -> None:
        for start, chunk in self.chunks():
            chunk.add_weighted_sum(total.reshape(self._matrix), w[start : start + chunk.n_examples])

    def materialise(self) -> NDArray:
        g = self.xp.empty((self.n_examples, *self._matrix), dtype=self.d.dtype)
        for start, chunk in self.chunks():
            chunk.materialise(out=g[start : start + chunk.n_examples])
            del chunk  # so that the next one takes its place in the cache
        return g.reshape((self.n_examples, *self.shape))

    @property
    def factored_is_cheaper(self):
        return gram_is_cheaper(self._positions, *self._matrix)


class ConvGrad(SumInChunks):
    """Gradients of a kernel (kh, kw, C, O): an OuterSum of patches."""

    def __init__(self, x: NDArray, d: NDArray, patches: Patches):
        """x (B, H, W, C) the layer's input, patches those of x, d (B, H', W', O) the gradient of
        the layer's output.
        """
        super().__init__(x, d, (*patches.window.size, x.shape[3], d.shape[3]))
        self.patches = patches

    def first(self, start, stop):
        return self.patches.cut(slice(start, stop), turned=True)  # [P1]

    def rows(self, start, stop):
        some = slice(start, stop)
        return ConvGrad(self.x[some], self.d[some], self.patches.of(some))


def in_chunks(x: NDArray, numbers: int) -> list[tuple[int, int]]:
    """(start, stop) of chunks of examples, at least one each, whose patches about fit into memory;
    an example's patches hold `numbers` numbers. In float64 all chunks are equally large, because
    the last bits of a row of a matrix product depend on the number of rows.
    """
    examples = x.shape[0]
    parts = max(round(examples * numbers * x.itemsize / patch_budget(namespace_of(x))), 1)
    size = max(-(-examples // parts), 1)
    if x.dtype == "float64":
        size = next(n for n in range(size, 0, -1) if examples % n == 0)
    return [(start, min(start + size, examples)) for start in range(0, max(examples, 1), size)]


class Conv2D(Drawn):
    r"""Correlation of images with kernels, channels last.

    Shapes
        x (B, H, W, C)   W (kh, kw, C, O)   b (O,)   y (B, H', W', O)   P (B, T, kh kw C), T = H' W'

    Forward
        [F1]  y_bto = sum_p P_btp W_po + b_o, P_btp = x_b(s_tp)    where place p of window t sees
              number s_tp of the image, or 0 outside it

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bn = sum_tp [s_tp = n] sum_o dy_bto W_po
        [P1]  dW_bpo = sum_t P_btp dy_bto          factors OuterSum(a = P, d = dy)
        [P2]  db_bo  = sum_t dy_bto

    Source
        [P1]  Rochette, Manoel, Tramel 2019, arXiv:1912.06015

    Guarantees
        Patches are formed for a few examples at a time.

    Raises
        ShapeError       x is smaller than the kernel
        ParameterError   kernel, stride or channels below 1; padding is not same, valid, an integer
                         or a pair
    """

    kind = "conv"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int | tuple[int, int],
        *,
        rng: Rng = None,
        stride: int | tuple[int, int] = 1,
        padding: Padding = "same",
        bias: bool = True,
        init: Initializer = truncated_normal,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ):
        """kernel, stride: an integer or (vertical, horizontal); rng for `init(rng, (kh, kw, C, O),
        dtype)`: `Streams().init` or a NumPy generator, by default a new one.

        padding: "same" (TensorFlow's rule), "valid", or the number of zeros on each side: one
        number, or (vertical, horizontal).
        """
        count(1, in_channels=in_channels, out_channels=out_channels)
        self.window = Window(pair(kernel=kernel), pair(stride=stride), padding)
        W, b = (*self.window.size, in_channels, out_channels), (out_channels,) if bias else None
        super().__init__(name, rng, init, dtype, W=W, b=b)
        self.input_shape = ("H", "W", in_channels)

    def settings(self) -> dict:
        *kernel, in_channels, out_channels = self.params["W"].shape
        return {
            "in_channels": in_channels,
            "out_channels": out_channels,
            "kernel": kernel,
            "stride": self.window.stride,
            "padding": self.window.padding,
            "bias": "b" in self.params,
        }

    def shape_of_y(self, input_shape):
        return (*self.window.output(self.where, input_shape), self.params["W"].shape[3])

    def compute_y(self, x, rng):
        xp, W = namespace_of(x), self._matrix()
        counts = self.window.output(self.where, x.shape[1:])
        positions, (inputs, outputs) = prod(counts), W.shape
        y = xp.empty((x.shape[0], positions * outputs), xp.result_type(x, W))
        add_bias = kernel("add_bias", y) if "b" in self.params else None
        # of a whole image, because NumPy is slow on short rows
        whole = "b" in self.params and not add_bias
        bias = xp.tile(self.params["b"], positions) if whole else None
        patches = self.window.patches(x)
        for start, stop in in_chunks(x, positions * inputs):
            here, rows = slice(start, stop), (stop - start) * positions
            P = patches.cut(here).reshape((rows, inputs))
            xp.matmul(P, W, out=y[here].reshape((rows, outputs)))  # [F1]
            if add_bias:
                add_bias(y[here], self.params["b"])
            elif bias is not None:
                y[here] += bias  # [F1]
        return y.reshape((x.shape[0], *counts, outputs)), (x, patches)

    def compute_dx(self, dy, kept):
        x, _ = kept
        xp, W = namespace_of(dy), self._matrix()
        counts, (inputs, outputs) = dy.shape[1:3], W.shape
        parts = []
        for start, stop in in_chunks(dy, prod(counts) * inputs):
            rows = dy[start:stop].reshape(((stop - start) * prod(counts), outputs))
            patches = (rows @ W.T).reshape((stop - start, *counts, *self.window.size, x.shape[3]))
            parts.append(self.window.fold(patches, (stop - start, *x.shape[1:])))  # [B1]
        return parts[0] if len(parts) == 1 else xp.concatenate(parts)

    def compute_grads(self, dy, kept):
        x, patches = kept
        grads = {"W": ConvGrad(x, dy, patches)}  # [P1]
        if "b" in self.params:
            positions = prod(dy.shape[1:3])
            grads["b"] = PositionSums(dy.reshape((dy.shape[0], positions, dy.shape[3])))  # [P2]
        return grads

    def _matrix(self):
        """W as (kh kw C, O)."""
        W = self.params["W"]
        return W.reshape((prod(W.shape[:3]), W.shape[3]))
