"""Check a network and a loss on random rows, never on the data.

The guarantee needs two properties that types cannot express: each example's output, loss and
gradient depend on that example alone, and nothing is divided by the number of examples. `check`
tests them before anything is charged: layer by layer on four rows in float64 (`train.trial`), then
the network and the loss on 64 rows as they train (`train.crowd`). `audit.check_layer`,
`audit.check_loss` and the checks of the library's own layers run the trials of layers more
thoroughly. The rows are public: they come from a fixed seed. `check_rows` alone looks at data: at a
few rows of `Examples`, to compare them with themselves.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of
from ..data.examples import LabelledExamples
from ..errors import TrialError
from ..nn.loss import Loss
from ..nn.network import Sequential
from . import crowd
from .trial import LayerTrial, LossTrial, host_copy, targets

ROWS, SEED = 4, 20161024


def check(network: Sequential, loss: Loss, y: NDArray) -> None:
    """Raise TrialError, which names the layer or the loss and its fault, unless the trial succeeds.

    Layers are tried on a copy, first on the host in float64, then in the network's own dtype and on
    its device, as the loss is.
    y: the targets of training, (N, ...); the trial reads their dtype and the shape of one only.
    """
    rng, tried = np.random.default_rng(SEED), host_copy(network)
    asarray = namespace_of(*network.params.values()).asarray
    x = rng.uniform(-1, 1, (ROWS, *network.input_shape))
    with np.errstate(all="ignore"):
        for trial in trials(tried, loss, x, y, rng, asarray):
            for fault in trial.faults():
                raise _error(fault)
        for fault in crowd.faults(network, loss, y, rng):
            raise _error(fault)


def check_rows(examples: LabelledExamples) -> None:
    """Raise TrialError where a row of a few of these examples depends on the others."""
    for fault in crowd.rows_that_mix(examples):
        raise _error(fault)


def _error(fault):
    return TrialError(
        f"{fault}. No step was charged now; minidp.audit.check_layer and check_loss list every test"
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
