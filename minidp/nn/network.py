"""A chain of layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from math import prod
from typing import Any

from numpy.typing import NDArray

from ..backend import Backend, namespace_of
from ..errors import ParameterError
from ..grads.forms import Arrays, Key, PerExampleGrad
from ..util.validate import inexact, shape
from .activation import ReLU
from .layer import Layer, check_written
from .pool import MaxPool2D


class Sequential:
    r"""Layers one after the other, with the per-example gradients of every trained parameter.

    Shapes
        x (B, *input_shape)   y (B, *output_shape)

    Forward
        [F1]  y = layer_n(... layer_1(x))

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  the gradient of each layer's input is the gradient of the output of the layer before
              it
        [P1]  {(layer, parameter): per-example gradient} of each layer that is not frozen

    Source
        [B1]  own derivation: the chain rule, from the last layer to the first

    Guarantees
        Shapes are checked when the network is built, and every input against them. Frozen layers
        have no gradients; nothing is computed below the lowest trained layer. Activations live in
        the caches only.

    Raises
        ShapeError      a layer does not fit the one before it
        ParameterError  two layers have the same name, `frozen` has a name that no layer has, the
                        shape of the input is unknown, or a layer is not written as `nn.Layer` says

    >>> import numpy as np
    >>> from minidp import nn
    >>> rng = np.random.default_rng(0)
    >>> network = nn.Sequential(nn.Dense(20, 32, rng=rng), nn.ReLU(), nn.Dense(32, 2, rng=rng))
    >>> x, y = np.zeros((5, 20), np.float32), np.zeros(5, int)
    >>> network(x).shape
    (5, 2)
    >>> gradients = network.per_example_grads(nn.SoftmaxCrossEntropy(), x, y)
    >>> gradients["dense1.W"], gradients["dense2.b"].norms().round(2).tolist()
    (Outer: 5 gradients of (20, 32), not formed, [0.71, 0.71, 0.71, 0.71, 0.71])
    >>> np.asarray(gradients["dense1.W"]).shape
    (5, 20, 32)
    """

    def __init__(
        self,
        *layers: Any,
        input_shape: int | Sequence[int] | None = None,
        frozen: Collection[str] = (),
    ):
        """layers: in order, or as one list, after which input_shape and frozen may follow without
        their names. input_shape: shape of one example, an integer n for (n,); leave it out if the
        first layer knows it, such as Dense. frozen: names of layers that are not trained.

        A layer without a name is named by its kind and a number: dense1, relu1, dense2. The network
        holds a copy of such a layer that shares its arrays, so that the layer may also be in other
        networks.
        """
        if layers and isinstance(layers[0], Iterable):
            more = layers[1:]
            if len(more) > 2:
                raise ParameterError(
                    "Sequential: expected at most input_shape and frozen behind a list of layers, "
                    f"got {len(more)} more arguments"
                )
            given = [*more, *(input_shape, frozen)[len(more) :]]
            input_shape, frozen = given
            layers = tuple(layers[0])
        for layer in layers:
            check_written(layer)
        self.layers = named(layers)
        names = [layer.name for layer in self.layers]
        if input_shape is None:
            input_shape = _known_shape(self.layers)
        self.input_shape = (input_shape,) if isinstance(input_shape, int) else tuple(input_shape)
        frozen = (frozen,) if isinstance(frozen, str) else frozen
        if unknown := set(frozen) - set(names):
            raise ParameterError(
                f"expected frozen to name layers of {names}, got {sorted(unknown)}"
            )
        self.frozen = frozenset(frozen)
        shapes = [self.input_shape]
        for layer in self.layers:
            shapes.append(layer.output_shape(shapes[-1]))
        self.output_shape = shapes[-1]
        # of one example, in the input and all outputs
        self.example_numbers = sum(map(prod, shapes))
        self._steps = _in_order(self.layers)
        trained = [
            i
            for i, layer in enumerate(self._steps)
            if layer.params and layer.name not in self.frozen
        ]
        self._lowest_trained = trained[0] if trained else len(self._steps)

    def __repr__(self):
        lines = [f"Sequential of input shape {self.input_shape}:"]
        sizes, total = self.input_shape, 0
        for layer in self.layers:
            sizes = layer.output_shape(sizes)
            numbers = sum(array.size for array in layer.params.values())
            frozen = layer.name in self.frozen
            total += 0 if frozen else numbers
            held = f", {numbers:,} numbers{', frozen' if frozen else ''}" if numbers else ""
            lines.append(f"    {layer.name}: {type(layer).__name__} -> {sizes}{held}")
        return "\n".join([*lines, f"    {total:,} trained parameters"])

    @property
    def draws(self) -> bool:
        """True if forward draws random numbers, as dropout does."""
        return any(layer.draws for layer in self.layers)

    @property
    def takes_ids(self) -> bool:
        """True if x holds ids, whole numbers of any dtype."""
        return any(layer.takes_ids for layer in self.layers[:1])

    def __call__(self, x: NDArray) -> NDArray:
        """Output for x of shape (B, *input_shape), in evaluation: nothing is dropped out. `predict`
        does the same in bounded memory. Raises as `forward` does.
        """
        return self.forward(x)[0]

    def per_example_grads(self, loss: Any, x: NDArray, y: NDArray) -> dict[str, PerExampleGrad]:
        """{"dense1.W": gradients of the examples' losses} for every trained parameter, with x of
        shape (B, *input_shape) and targets y (B, ...). `norms()` of a value has the shape (B,), and
        numpy.asarray of it (B, *shape of the parameter). These gradients are not private. Raises as
        `forward` and the loss do.
        """
        z, caches = self.forward(x)
        _, dz = loss(z, y)
        grads = self.param_grads(dz, caches)
        return {".".join(key): grads[key] for key in self.params}

    def forward(self, x: NDArray, *, rng: Any = None) -> tuple[NDArray, list]:
        """(y, caches); `param_grads` computes gradients from the caches. rng.random(shape): for
        layers that draw (dropout).

        Only x is checked; shapes between layers were checked when the network was built.
        """
        if not self.takes_ids:
            inexact("network", x=x)
        shape("network", "x", x, ("B", *self.input_shape))
        namespace_of(x, *self.state().values())
        caches = []
        for layer in self._steps:
            x, kept = layer.compute_y(x, rng)  # [F1]
            caches.append(kept)
        return x, caches

    def param_grads(self, dy: NDArray, caches: Sequence[Any]) -> dict[Key, PerExampleGrad]:
        """{key: PerExampleGrad} of every trained parameter."""
        shape("network", "dy", dy, ("B", *self.output_shape))
        grads = {}
        for i in range(len(self._steps) - 1, self._lowest_trained - 1, -1):
            layer, kept = self._steps[i], caches[i]
            if layer.params and layer.name not in self.frozen:
                for name, grad in layer.compute_grads(dy, kept).items():
                    grads[layer.name, name] = grad  # [P1]
            if i > self._lowest_trained:
                dy = layer.compute_dx(dy, kept)  # [B1]
        return grads

    @property
    def params(self) -> Arrays:
        """{(layer, parameter): array} of the trained parameters; the arrays themselves, not
        copies.
        """
        return {
            (layer.name, name): array
            for layer in self.layers
            if layer.name not in self.frozen
            for name, array in layer.params.items()
        }

    def state(self) -> dict[str, NDArray]:
        """{"layer.name": array} of everything a saved model holds: parameters, frozen ones,
        constants.
        """
        return {
            f"{layer.name}.{name}": array
            for layer in self.layers
            for name, array in {**layer.params, **layer.constants}.items()
        }

    def to(self, backend: Backend) -> Sequential:
        """Move parameters and constants to a backend, in place; returns the network."""
        for layer in self.layers:
            for store in (layer.params, layer.constants):
                for name, array in store.items():
                    store[name] = backend.asarray(array)
        return self

    def predict(self, x: Any, batch_size: int = 4096) -> NDArray:
        """Output for all rows of x, computed in batches, so that memory is bounded."""
        parts = [self.forward(x[i : i + batch_size])[0] for i in range(0, x.shape[0], batch_size)]
        if not parts:
            return self.forward(x)[0]
        return namespace_of(*parts).concatenate(parts)


def _known_shape(layers):
    """The shape of one example, as the first layer states it."""
    known = layers[0].known_shape if layers else None
    if known is None:
        raise ParameterError(
            "expected input_shape=, the shape of one example such as (28, 28, 1): "
            f"{layers[0].name if layers else 'a network without layers'} takes several"
        )
    return known


def _in_order(layers):
    """Layers in the order of computation: max pooling goes before a ReLU that it follows.

    The two commute bit for bit, gradients included, and after pooling there are fewer numbers.
    """
    steps: list[Any] = []
    for layer in layers:
        after = steps and type(layer) is MaxPool2D and type(steps[-1]) is ReLU
        steps.insert(len(steps) - bool(after), layer)
    return steps


def named(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers; one without a name is replaced by a copy that is named by its kind and a number
    and shares its arrays. Raises ParameterError if a layer occurs twice, or two have the same name.
    """
    if len(set(map(id, layers))) < len(layers):
        raise ParameterError(
            "expected each layer once, got one that stands twice: make a layer for each place"
        )
    given = [layer.name for layer in layers if layer.name is not None and not layer.numbered]
    if len(set(given)) < len(given):
        raise ParameterError(f"expected layers with different names, got {given}")
    found, seen = [], Counter[str]()
    for layer in layers:
        seen[layer.kind] += 1
        if layer.name is None or layer.numbered:
            layer = copy(layer)
            while f"{layer.kind}{seen[layer.kind]}" in given:
                seen[layer.kind] += 1
            layer.name, layer.numbered = f"{layer.kind}{seen[layer.kind]}", True
        found.append(layer)
    return tuple(found)
