"""What every layer offers: forward, backward, and the factors of its per-example gradients."""
from ..errors import ShapeError
from ..validate import inexact


class Layer:
    """A function of each example by itself, with its gradients written by hand.

    name       set by the network if not given; the first half of a parameter's key, and in messages
    params     {parameter name: array}, trained; empty where there are none
    constants  {name: array}, public and fixed: saved with the model, never trained

    A layer holds parameters only, never activations: what backward needs travels in the cache that forward
    returns. There is no sum or mean over examples anywhere; dy is the gradient of the *sum* of losses.
    """

    kind = "layer"
    draws = False  # True if forward takes numbers from `rng`: its batches then run one after the other

    def __init__(self, name=None):
        self.name = name
        self.params = {}
        self.constants = {}

    def output_shape(self, input_shape):
        """The shape of one example's output, given that of its input. Raises ShapeError if it does not fit."""
        return tuple(input_shape)

    def forward(self, x, *, rng=None):
        """(y, cache) for x of shape (B, *input_shape); rng is for layers that draw (dropout)."""
        raise NotImplementedError

    def backward(self, dy, cache):
        """dx, the gradient with respect to the layer's input; no parameter gradient in here."""
        raise NotImplementedError

    def param_grads(self, dy, cache):
        """{parameter name: PerExampleGrad}, example by example."""
        return {}

    @property
    def where(self):
        """The layer's name for messages."""
        return self.name or self.kind

    def check_input(self, x, input_shape):
        """Raise ShapeError or DtypeError unless x is a floating-point array of shape (B, *input_shape)."""
        inexact(self.where, x=x)
        if x.ndim == 0 or tuple(x.shape[1:]) != tuple(input_shape):
            wanted = ", ".join(["B", *map(str, input_shape)])
            raise ShapeError(f"{self.where}: expected x of shape ({wanted}), got {tuple(x.shape)}")

    def check_gradient(self, dy, y_shape):
        """Raise ShapeError unless dy has the shape of the output it is the gradient of."""
        if tuple(dy.shape) != tuple(y_shape):
            raise ShapeError(f"{self.where}: expected dy of shape {tuple(y_shape)}, got {tuple(dy.shape)}")
