"""Check a network and a loss on a few random rows, never on the data.

The guarantee needs two properties that types cannot express: each example's output, loss and
gradient depend on that example alone, and nothing is divided by the number of examples. `check`
tests them before anything is charged. `audit.check_layer`, `audit.check_loss` and the checks of the
library's own layers run the same trials more thoroughly. The rows are public: they come from a
fixed seed.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of
from ..errors import TrialError
from ..nn.loss import Loss
from ..nn.network import Sequential
from .trial import LayerTrial, LossTrial, host_copy

ROWS, SEED = 4, 20161024


def check(network: Sequential, loss: Loss, y: NDArray) -> None:
    """Raise TrialError, which names the layer or the loss and its fault, unless the trial succeeds.

    The layers are tried on a copy, on the host in float64; the loss on the network's own device.
    y: the targets of training, (N, ...); the trial reads their dtype and the shape of one only.
    """
    rng, tried = np.random.default_rng(SEED), host_copy(network)
    asarray = namespace_of(*network.params.values()).asarray
    x = rng.uniform(-1, 1, (ROWS, *network.input_shape))
    with np.errstate(all="ignore"):
        for trial in trials(tried, loss, x, y, rng, asarray):
            for fault in trial.faults():
                raise TrialError(
                    f"{fault}. Nothing was charged; minidp.audit.check_layer and check_loss list "
                    "every test"
                )


def trials(
    network: Sequential,
    loss: Loss,
    x: NDArray,
    y: NDArray,
    rng: np.random.Generator,
    to_loss: Any,
    to_layers: Any = np.asarray,
) -> Iterator[LayerTrial | LossTrial]:
    """Trials of each layer at the output of the one before, so that a fault has a name, and then of
    the loss. A network with its own `forward` is tried as a whole.

    to_loss, to_layers: functions that move arrays to where these are computed.
    """
    own_kind = type(network).forward is not Sequential.forward
    names, below = {name for name, _ in network.params}, False
    parts: Any = [network] if own_kind else network.layers
    for part in parts:
        trained = own_kind or part.name in names
        trial = LayerTrial(part, x, rng, trained, below, asarray=to_layers, training=True)
        yield trial
        x, below = trial.y, below or trained
    yield LossTrial(loss, x, targets(y, x, rng), rng, to_loss)


def targets(y, z, rng):
    """Random targets for z (B, K), with the dtype of y and the shape of its rows: classes, the
    first two the same, or numbers in (0, 1).
    """
    shape, kind = (len(z), *y.shape[1:]), y.dtype.kind
    if kind == "f":
        return rng.uniform(0, 1, shape).astype(y.dtype.name)
    if kind not in "iub":
        return np.zeros(shape, y.dtype)
    classes = max(z.shape[-1], 2) if len(shape) == z.ndim - 1 and kind in "iu" else 2
    found = rng.integers(0, classes, shape).astype(y.dtype.name)
    found[1:2] = found[:1]
    return found
