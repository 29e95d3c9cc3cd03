"""Layers made of layers: Residual, and Tied, whose output uses the table of its input."""

from collections.abc import Iterable, Iterator
from functools import partial

from ..backend import namespace_of
from ..errors import ParameterError, ShapeError
from .embedding import Embedding, RowsGrad
from .layer import Layer, Remembered
from .network import name_layers


class _Shared(dict):
    """Arrays of layers under "layer.parameter"; one that is put here goes to its layer."""

    def __init__(self, stores):
        """stores: {layer: {parameter: array}}."""
        super().__init__(
            {f"{layer}.{key}": array for layer, own in stores.items() for key, array in own.items()}
        )
        self.stores = stores

    def __setitem__(self, key, array):
        layer, _, own = key.partition(".")
        self.stores[layer][own] = array
        super().__setitem__(key, array)


class _Chain(Layer):
    """Layers one after the other, as one layer; its parameters are theirs: "dense1.W"."""

    def __init__(self, layers, name):
        self.name, self.layers = name, list(layers)
        name_layers(self.layers)

    def settings(self):
        return {}  # a model file holds the layers beside them

    def _through(self, x, rng):
        """(the last output, (dx, gradients) as a function of its gradient)."""
        caches = []
        for layer in self.layers:
            x, kept = layer.compute_y(x, rng)
            caches.append(kept)
        return x, Remembered(partial(self._backward, caches))

    def _backward(self, caches, dy):
        grads = {}
        for layer, kept in zip(self.layers[::-1], caches[::-1]):
            for name, grad in layer.compute_grads(dy, kept).items():
                grads[f"{layer.name}.{name}"] = grad
            dy = layer.compute_dx(dy, kept)
        return dy, grads

    def _last_shape(self, shape):
        try:
            for layer in self.layers:
                shape = layer.output_shape(shape)
        except ShapeError as error:
            raise ShapeError(f"{self.where}: expected what its layers take; {error}") from error
        return shape

    @property
    def params(self):
        return _Shared({layer.name: layer.params for layer in self.layers})

    @property
    def constants(self):
        return _Shared({layer.name: layer.constants for layer in self.layers})

    @property
    def draws(self):
        return any(layer.draws for layer in self.layers)

    @property
    def arithmetic(self):
        return self.layers[0].arithmetic

    @arithmetic.setter
    def arithmetic(self, arithmetic):
        for layer in self.layers:
            layer.arithmetic = arithmetic


class Residual(_Chain):
    r"""The input plus what a chain of layers makes of it.

    Shapes
        x, y (B, ...)

    Forward
        [F1]  y = x + layer_n(... layer_1(x))

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx = dy plus the gradient of the chain's input
        [P1]  {"layer.parameter": per-example gradient} of each layer of the chain

    Source
        [F1]  He, Zhang, Ren, Sun 2015, arXiv:1512.03385
        [B1]  own derivation: the chain rule; the sum's two gradients are dy

    Raises
        ShapeError       the chain's output has another shape than x
        ParameterError   no layers, or two of one name

    >>> from minidp import nn
    >>> layers = [nn.LayerNorm(4), nn.CausalAttention(4, heads=2)]
    >>> list(nn.Sequential([nn.Residual(layers)], (3, 4)).params)[:2]
    [('residual1', 'layernorm1.scale'), ('residual1', 'layernorm1.shift')]
    """

    kind = "residual"

    def __init__(self, layers: Iterable[Layer], name: str | None = None):
        """layers in order; one without a name gets its kind and its number among its kind."""
        super().__init__(layers, name)

    def shape_of_y(self, input_shape):
        shape = self._last_shape(input_shape)
        if shape != input_shape:
            raise ShapeError(
                f"{self.where}: expected the layers to keep the shape {input_shape}, got {shape}"
            )
        return shape

    def compute_y(self, x, rng):
        y, back = self._through(x, rng)
        return x + y, back  # [F1]

    def compute_dx(self, dy, back):
        return dy + back(dy)[0]  # [B1]

    def compute_grads(self, dy, back):
        return back(dy)[1]  # [P1]


class Tied(_Chain):
    r"""Layers from ids to logits, of which the first is an Embedding whose table gives the logits.

    Shapes
        x (B, T) ids   E (V, J) of the first layer   h (B, T, J) of the last   y (B, T, V)

    Forward
        [F1]  y_btv = sum_j h_btj E_vj, h = layer_n(... layer_1(x))

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dh_btj = sum_v dy_btv E_vj    and dx = 0
        [P1]  dE_bvj = sum_t [id_bt = v] de_btj + sum_t dy_btv h_btj    de the gradient of the
              first layer's output; one OuterSum: both pairs of factors, one after the other along t
        [P2]  {"layer.parameter": per-example gradient} of the other layers

    Source
        [F1]  Press, Wolf 2017, arXiv:1608.05859
        [P1]  own derivation: the product rule

    Raises
        ShapeError       x is not (B, T), or the last layer does not give (T, J)
        ParameterError   the first layer is no Embedding, or two have one name
    """

    kind = "tied"
    takes_ids = True
    input_shape = ("T",)

    def __init__(self, layers: Iterable[Layer], name: str | None = None):
        """layers in order, the first an Embedding."""
        super().__init__(layers, name)
        if not self.layers or type(self.layers[0]) is not Embedding:
            raise ParameterError(f"{self.where}: expected an Embedding as the first layer")

    def shape_of_y(self, input_shape):
        shape, first = self._last_shape(input_shape), self.layers[0]
        if shape != first.output_shape(input_shape):
            raise ShapeError(
                f"{self.where}: expected the last layer to give {(*input_shape, first.width)}, "
                f"got {shape}"
            )
        return (*input_shape, first.vocabulary)

    def compute_y(self, x, rng):
        h, back = self._through(x, rng)
        y = self.matmul(h, self.layers[0].params["E"].T)  # [F1]
        return y, (x, h, back)

    def compute_dx(self, dy, kept):
        return namespace_of(dy).zeros(kept[0].shape, dy.dtype)

    def compute_grads(self, dy, kept):
        x, h, back = kept
        first = self.layers[0]
        grads = back(self.matmul(dy, first.params["E"]))[1]  # [B1] [P2]
        key = f"{first.name}.E"
        d = namespace_of(h).concatenate([grads[key].d, h], axis=1)  # [P1]
        return {**grads, key: RowsGrad(x, d, first.vocabulary, dy)}


def every_layer(layers: Iterable[Layer]) -> Iterator[Layer]:
    """The layers and those that they are made of."""
    for layer in layers:
        yield layer
        yield from every_layer(getattr(layer, "layers", ()))
