"""The network that `fit` trains, and inputs after fixed layers."""

import copy
import math
from itertools import pairwise
from typing import Any

from .. import nn
from ..data.arrays import Inputs
from ..errors import ParameterError, ShapeError
from ..host import memory
from ..nn.init import truncated_normal, zeros
from ..train.batching import MIN_BATCH
from .settings import Settings

# bytes of memory per weight: its copies in the trial, in sums, averages and checkpoints
WEIGHT_BYTES = 64
IN_MEMORY = 2**28  # most bytes of scaled inputs that are kept; more are converted batch by batch
OUTPUT_BYTES = 12 * MIN_BATCH  # per output of a layer: it, its gradient and a product, for a batch


def trained_network(
    settings: Settings, shape: tuple[int, ...], outputs: int, rng: Any
) -> nn.Sequential:
    """The network to train: a copy of the caller's, or dense layers of the `hidden` sizes on
    flattened inputs.
    """
    network, sizes = settings.network, settings.hidden_sizes
    if network is None:
        widths = [math.prod(shape), *sizes]
        _check_memory([*widths, outputs])
        layers: list[nn.Layer] = [nn.Flatten()] if len(shape) > 1 else []
        for before, after in pairwise(widths):
            layers += [nn.Dense(before, after, rng=rng, dtype=settings.dtype), nn.ReLU()]
        first_values = truncated_normal if sizes else zeros
        last = nn.Dense(widths[-1], outputs, rng=rng, init=first_values, dtype=settings.dtype)
        return nn.Sequential([*layers, last], shape)
    if not isinstance(network, nn.Sequential):
        raise ParameterError(
            f"expected network to be a nn.Sequential, got {type(network).__name__}: "
            "nn.Sequential(layers, input_shape)"
        )
    if sizes:
        raise ParameterError("expected hidden= or network=, got both")
    if network.input_shape != shape or network.output_shape != (outputs,):
        raise ShapeError(
            f"network: expected one for inputs {shape} and {outputs} outputs, got "
            f"{network.input_shape} and {network.output_shape}"
        )
    kinds = {array.dtype.name for array in network.params.values()}
    if settings.dtype == "float64" and kinds != {"float64"}:
        raise ParameterError(
            f"expected a network of float64 parameters with dtype='float64', got {sorted(kinds)}: "
            "give its layers dtype='float64'"
        )
    # the caller's network must not change: a second fit must not start from weights that saw rows
    return copy.deepcopy(network)


def _check_memory(widths):
    """Raise ParameterError if dense layers of these widths need more memory than there is."""
    weights = sum((before + 1) * after for before, after in pairwise(widths))
    needed, most = WEIGHT_BYTES * weights + OUTPUT_BYTES * sum(widths), memory.physical()
    if needed > most:
        raise ParameterError(
            f"expected hidden layers that fit into memory: {', '.join(map(str, widths[1:-1]))} "
            f"take {weights:,} weights and about {needed / 2**30:,.0f} GiB, this machine has "
            f"{most / 2**30:,.0f} GiB; make them smaller"
        )


def after(inputs: Inputs, layers: list[nn.Layer], dtype: str | None = None) -> Inputs:
    """The inputs after the fixed layers, converted batch by batch. dtype: dtype without layers;
    None for the inputs' own.
    """
    if not layers:
        return inputs.after(None, inputs.shape[1:], dtype or inputs.dtype)
    before = nn.Sequential(layers, inputs.shape[1:]).to(inputs.backend)
    first = next(iter(before.state().values()), None)  # as a model reads them
    dtype = inputs.dtype if first is None else first.dtype.name
    return inputs.after(before.predict, before.output_shape, dtype)


def scaled(inputs: Inputs, layers: list[nn.Layer]) -> Any:
    """The inputs after the fixed layers: an array if it is small, otherwise converted batch by
    batch.
    """
    inputs = after(inputs, layers)
    return inputs[:] if 4 * math.prod(inputs.shape) <= IN_MEMORY else inputs
