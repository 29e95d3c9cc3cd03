"""Base of all layers: forward, backward, and the factors of per-example gradients."""

from collections.abc import Sequence
from inspect import signature
from math import prod
from typing import Any, NamedTuple

from numpy.random import Generator, default_rng
from numpy.typing import DTypeLike, NDArray

from ..backend import namespace_of
from ..errors import ParameterError, ShapeError, TrialError
from ..grads.forms import PerExampleGrad
from ..streams import Draws
from ..util.text import listed
from ..util.validate import inexact, shape, shape_fits, shape_text
from ..util.words import Named
from .init import Initializer, Rng, zeros

Shape = tuple[int, ...]

# constructor arguments that a model file does not store: they are known when the layer is rebuilt
HANDLED = (
    "rng",
    "init",
    "dtype",
    "name",
)


class Cache(NamedTuple):
    """Values of a forward pass that backward needs: the output's shape, and what the layer kept."""

    y_shape: Shape
    kept: object


class _Bare(Named):
    """Gives each layer its empty `params` and `constants`, even if a subclass skips `__init__`."""

    name: Any
    params: dict[str, NDArray]
    constants: dict[str, NDArray]

    def __new__(cls, *given: Any, **named: Any) -> Any:
        """Create a layer that has no arrays yet."""
        self = super().__new__(cls, *given, **named)
        self.name, self.params, self.constants = None, {}, {}
        return self


class Layer(_Bare):
    """A function that acts on each example separately, with gradients written by hand.

    name         a network calls its copy by kind and number if there is none; the first half of
                 a parameter's key, and in messages
    params       {parameter name: array}, trained; empty where there are none
    constants    {name: array}, public and fixed: saved with the model, never trained
    input_shape  of one example, free axes as strings, for example (28, 28, "C"); None if any shape
                 will do
    takes_ids    True if x holds ids: whole numbers of any dtype (nn.Embedding)
    examples     of a layer of the library: [(arguments, shape of one example's input)], and third
                 a shape that it refuses, if there is one; at these the audit and the shared tests
                 try it
    symbols      {name in the card: attribute}, where the card calls a number something else

    A subclass writes its formulas in three methods, which get arrays that were checked:

    compute_y(x, rng) -> (y, kept)    kept: values that the gradients need
    compute_dx(dy, kept) -> dx        no parameter gradient in here
    compute_grads(dy, kept)           {parameter name: PerExampleGrad}; leave it out if the layer
                                      has no parameters

    and `shape_of_y` if the output has another shape than the input. Model files store the
    constructor's arguments: write `settings` if they are not attributes or constants of the same
    names.

    Guarantees, of every layer
        Example b of every result depends on example b of the input only. The rounding of matrix
        products is an exception: it may change with the number of rows and with an example's place.
        There is no sum or mean over examples anywhere, and dy is the gradient of the *sum* of
        losses. An empty batch gives empty results. Inputs are not changed. A layer holds parameters
        only, never activations: these travel in the cache that forward returns.

    Raises, of every layer
        ShapeError            x does not fit, or dy has another shape than y
        DtypeError            x is not floating point, except ids
        BackendMismatchError  x and the parameters live in different libraries
        TrialError            compute_y or compute_grads returns something else than it should
    """

    kind = "layer"
    numbered = False  # True if a network gave the name
    draws = False  # True if batches must run one after the other, in the order of the lot
    takes_ids = False
    input_shape: Any = None
    examples: Any = ()
    symbols: Any = {}

    def __init__(self, name: str | None = None):
        self.name = name

    @property
    def known_shape(self) -> Shape | None:
        """Shape of one example if the layer takes only one shape, else None."""
        known = self.input_shape
        return None if known is None or any(isinstance(size, str) for size in known) else known

    def output_shape(self, input_shape: Sequence[int]) -> Shape:
        """The shape of one example's output, given that of its input. Raises ShapeError if it does
        not fit.
        """
        if self.input_shape is not None and not shape_fits(input_shape, self.input_shape):
            wanted = shape_text(self.input_shape)
            raise ShapeError(
                f"{self.where}: expected input of shape {wanted}, got {tuple(input_shape)}"
            )
        return self.shape_of_y(tuple(input_shape))

    def forward(self, x: NDArray, *, rng: Any = None) -> tuple[NDArray, Cache]:
        """(y, cache) for x of shape (B, *input_shape); rng.random(shape) is for layers that draw
        (dropout).
        """
        if not self.takes_ids:
            inexact(self.where, x=x)
        namespace_of(x, *self.params.values(), *self.constants.values())
        if x.ndim == 0:
            shape(self.where, "x", x, ("B", "..."))
        self.output_shape(x.shape[1:])
        made = self.compute_y(x, rng)
        if not (isinstance(made, tuple) and len(made) == 2 and hasattr(made[0], "shape")):
            raise TrialError(
                f"{self.where}: expected compute_y to return (y, kept), the output and what the "
                f"gradients need, got {type(made).__name__}"
            )
        y, kept = made
        return y, Cache(tuple(y.shape), kept)

    def backward(self, dy: NDArray, cache: Cache) -> NDArray:
        """dx, the gradient with respect to the layer's input."""
        self._check_gradient(dy, cache)
        return self.compute_dx(dy, cache.kept)

    def param_grads(self, dy: NDArray, cache: Cache) -> dict[str, PerExampleGrad]:
        """{parameter name: PerExampleGrad}, example by example."""
        self._check_gradient(dy, cache)
        grads = self.compute_grads(dy, cache.kept)
        if type(self).compute_grads is not Layer.compute_grads:
            self._check_grads(grads)
        return grads

    def shape_of_y(self, input_shape: Shape) -> Shape:
        """The output's shape for an input that fits `self.input_shape`."""
        return input_shape

    def compute_y(self, x: NDArray, rng: Any) -> tuple[NDArray, Any]:
        """(y, what the gradients need)."""
        raise NotImplementedError(f"{self.where}: write compute_y(x, rng), which returns (y, kept)")

    def compute_dx(self, dy: NDArray, kept: Any) -> NDArray:
        """dx, of the input's shape."""
        raise NotImplementedError(f"{self.where}: write compute_dx(dy, kept), which returns dx")

    def compute_grads(self, dy: NDArray, kept: Any) -> dict[str, PerExampleGrad]:
        """{parameter name: PerExampleGrad}."""
        return {}

    def settings(self) -> dict[str, Any]:
        """{argument: value} from which the constructor rebuilds this layer: JSON values, or arrays
        of `constants`.

        rng, init, dtype and name are left out. Raises ParameterError if an argument has no
        attribute of its name.
        """
        found = {}
        for argument in signature(type(self)).parameters:
            if argument in HANDLED:
                continue
            if argument in self.constants:
                found[argument] = self.constants[argument]
            elif hasattr(self, argument):
                found[argument] = getattr(self, argument)
            else:
                raise ParameterError(
                    f"{self.where}: no attribute {argument}, an argument of {type(self).__name__}()"
                )
        return found

    @property
    def where(self) -> str:
        """The layer's name for messages."""
        return self.name or self.kind

    def _check_grads(self, grads):
        """Raise TrialError unless these are the gradients of all parameters, per example."""
        got = sorted(grads) if isinstance(grads, dict) else [type(grads).__name__]
        if got != sorted(self.params):
            raise TrialError(
                f"{self.where}: expected compute_grads to return gradients of "
                f"{listed(sorted(self.params))} by name, got {listed(got) or 'none'}"
            )
        for name, grad in grads.items():
            if not isinstance(grad, PerExampleGrad):
                one = ", ".join(map(str, ("B", *self.params[name].shape)))
                raise TrialError(
                    f"{self.where}.{name}: the per-example gradient: expected a PerExampleGrad "
                    f"such as grads.Explicit(array) of an array ({one}), got "
                    f"{type(grad).__name__}: a sum over examples cannot be clipped per example"
                )

    def _check_gradient(self, dy, cache):
        if tuple(dy.shape) != cache.y_shape:
            raise ShapeError(
                f"{self.where}: expected dy of shape {cache.y_shape}, got {tuple(dy.shape)}"
            )


def check_written(layer: Any) -> None:
    """Refuse an object that is not written as a minidp layer, and say how to write one. A module of
    PyTorch, and a layer with its own forward, backward or param_grads, raise ParameterError.
    """
    if isinstance(layer, type):
        raise ParameterError(f"expected a layer, such as nn.ReLU(), got the class {layer.__name__}")
    name = type(layer).__name__
    fixed = ("forward", "backward", "param_grads")
    own = [each for each in fixed if getattr(type(layer), each, None) is not getattr(Layer, each)]
    if isinstance(layer, Layer) and not own:
        return
    why = f"has its own {own[0]}" if isinstance(layer, Layer) else "is no subclass of nn.Layer"
    raise ParameterError(
        f"{name} {why}: derive a layer from nn.Layer and write compute_y, compute_dx and "
        "compute_grads, its output and its gradients by hand, because minidp has no autograd"
    )


class Drawn(Layer):
    """A layer whose matrices are drawn at random."""

    def __init__(
        self,
        name: str | None,
        rng: Rng,
        init: Initializer,
        dtype: DTypeLike,
        **shapes: Shape | None,
    ):
        """shapes: {name: shape} in the order of drawing, all sides at least 1; None leaves a
        parameter out. `init` draws matrices; vectors start at zero.
        """
        super().__init__(name)
        if rng is None:
            rng = default_rng()
        elif not isinstance(rng, (Draws, Generator)):
            raise ParameterError(
                f"{self.where}: expected rng to be a generator, such as Streams().init or "
                f"numpy.random.default_rng(7), got {type(rng).__name__}"
            )
        for key, sizes in shapes.items():
            if sizes:
                draw = zeros if len(sizes) == 1 else init
                self.params[key] = draw(rng, sizes, dtype)


def matmul(x: NDArray, W: NDArray) -> NDArray:
    """x @ W of (..., K) and (K, O), as one matrix product of all rows: faster than one for each
    example.
    """
    rows = x.reshape((prod(x.shape[:-1]), x.shape[-1]))
    return (rows @ W).reshape((*x.shape[:-1], W.shape[1]))
