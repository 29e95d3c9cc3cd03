"""Check a network and a loss on a few random rows, never on the data.

The guarantee needs two properties that types cannot express: each example's output, loss and
gradient depend on that example alone, and nothing is divided by the number of examples. `check`
tests them before anything is charged; `check_bits` does so for exact arithmetic, bit by bit.
`audit.check_layer`, `audit.check_loss` and the checks of the library's own layers run the same
trials more thoroughly. The rows are public: they come from a fixed seed.
"""

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of
from ..errors import IndependenceError, TrialError
from ..exact.arithmetic import ORDINARY
from ..nn.loss import Loss
from ..nn.network import Sequential
from ..streams import Streams
from .trial import LayerTrial, LossTrial, host_copy

ROWS, SEED = 2, 20161024
# rows of the largest batch whose bits are compared: as many as keep what they give below NUMBERS
BATCH, MAX_BATCH, NUMBERS = 64, 1024, 2**21


def check(network: Sequential, loss: Loss, y: NDArray) -> None:
    """Raise TrialError, which names the layer or the loss and its fault, unless the trial succeeds.

    The layers are tried on a copy, on the host in float64; the loss on the network's own device.
    y: the targets of training, (N, ...); the trial reads their dtype and the shape of one only.
    """
    # exact products differentiate coarsely
    rng, tried = np.random.default_rng(SEED), host_copy(network).use(ORDINARY)
    asarray = namespace_of(*network.params.values()).asarray
    x = rng.uniform(-1, 1, (ROWS, *network.input_shape))
    with np.errstate(all="ignore"):
        for trial in _trials(tried, loss, x, y, rng, asarray):
            for fault in trial.faults():
                raise TrialError(
                    f"{fault}. Nothing was charged; minidp.audit.check_layer and check_loss list "
                    "every test"
                )


def check_bits(network: Sequential, loss: Loss, y: NDArray) -> None:
    """Raise IndependenceError, which names the layer or the loss, unless each row has the same bits
    in every batch.

    This is no proof. It finds layers and losses whose products or sums are not those of
    `minidp.exact.arithmetic`. They run in their own dtype, on their device.

    network   in the arithmetic that it is trained in: network.use("exact")
    y         the targets of training, (N, ...); their dtype and the shape of one are read
    """
    params, rng = list(network.params.values()), np.random.default_rng(SEED)
    asarray, draws = namespace_of(*params).asarray, Streams(SEED).dropout(0)
    batch = max(BATCH, min(MAX_BATCH, NUMBERS // network.example_numbers))
    x = rng.uniform(-1, 1, (2 * batch, *network.input_shape)).astype(params[0].dtype)
    with np.errstate(all="ignore"):
        for trial in _trials(network, loss, x, y, rng, asarray, asarray=asarray, draws=draws):
            for fault in trial.bits():
                raise IndependenceError(
                    f"{fault}, which exact arithmetic rules out; write products as "
                    "minidp.exact.arithmetic.product(x, W, self.arithmetic), sums as "
                    "minidp.exact.arithmetic.in_pairs, exp, log and tanh as in "
                    "minidp.exact.elementwise, or train in ordinary arithmetic. Nothing was charged"
                )


def _trials(network, loss, x, y, rng, asarray_of_loss, **options):
    """Trials of each layer at the output of the one before, so that a fault has a name, and then of
    the loss. A network with its own `forward` is tried as a whole.
    """
    own_kind = type(network).forward is not Sequential.forward
    names, below = {name for name, _ in network.params}, False
    for part in [network] if own_kind else network.layers:
        trained = own_kind or part.name in names
        trial = LayerTrial(part, x, rng, trained, below, **options)
        yield trial
        x, below = trial.y, below or trained
    yield LossTrial(loss, x, targets(y, x, rng), rng, asarray_of_loss)


def targets(y, z, rng):
    """Random targets for z (B, K), with the dtype of y and the shape of its rows: classes, or
    numbers in (0, 1).
    """
    shape, kind = (len(z), *y.shape[1:]), y.dtype.kind
    if kind == "f":
        return rng.uniform(0, 1, shape).astype(y.dtype.name)
    if kind not in "iub":
        return np.zeros(shape, y.dtype)
    classes = max(z.shape[-1], 2) if len(shape) == z.ndim - 1 and kind in "iu" else 2
    return rng.integers(0, classes, shape).astype(y.dtype.name)
