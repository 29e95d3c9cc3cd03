"""The self-check of exact arithmetic before the first charge: every bit of an example's results is
its own.

Public random rows go through the network at hand, in its dtype and on its device: among others, in
another order with other companions, a few by themselves. What differs in one bit is refused by
name. This is no proof: it guards against layers and losses whose products or sums are not those of
`minidp.exact.arithmetic`.
"""

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of, to_host
from ..errors import IndependenceError
from ..nn.loss import Loss
from ..nn.network import Sequential
from ..streams import Streams
from . import trial

# rows of the largest batch: as many as keep what they give below NUMBERS
ROWS, MOST_ROWS, NUMBERS = (
    64,
    1024,
    2**21,
)


def check(network: Sequential, loss: Loss, targets: NDArray) -> None:
    """Raise IndependenceError, which names the layer or the loss, unless each row has the same bits
    in every batch.

    network   in the arithmetic that it is trained in: network.use("exact")
    targets   of training, (N, ...); their dtype and the shape of one are read
    """
    params, rng = list(network.params.values()), np.random.default_rng(trial.SEED)
    asarray, dropout = namespace_of(*params).asarray, Streams(trial.SEED).dropout(0)
    many = max(ROWS, min(MOST_ROWS, NUMBERS // network.example_numbers))
    x = rng.uniform(-1, 1, (2 * many, *network.input_shape)).astype(params[0].dtype)
    y = trial.targets(targets, np.empty((2 * many, *network.output_shape)), rng)

    def results(rows):
        return _results(network, loss, asarray(x[rows]), asarray(y[rows]), dropout.rows(rows))

    with np.errstate(all="ignore"):
        together, order = list(results(np.arange(many))), rng.permutation(many)
        mixed = rng.permutation(
            np.concatenate([order[many // 2 :], np.arange(many, many + many // 2)])
        )
        for rows in (order[:1], order[:2], order[:3], order[:17], mixed):
            known = rows < many
            for (where, what, whole), (_, _, part) in zip(together, results(rows), strict=True):
                if whole[rows[known]].tobytes() != part[known].tobytes():
                    raise IndependenceError(
                        f"{where}: {what} of an example has other bits in a batch of {len(rows)} "
                        f"than of {many}, which exact arithmetic rules out; write products as "
                        "minidp.exact.arithmetic.product(x, W, self.arithmetic), sums as "
                        "minidp.exact.arithmetic.in_pairs, exp, log and tanh as in "
                        "minidp.exact.elementwise, or train in ordinary arithmetic. Nothing was "
                        "charged"
                    )


def _results(network, loss, x, y, draws):
    """(where, what, host array with a row for each example) in the order in which they are
    computed.
    """
    examples, passed = x.shape[0], []
    for layer, where, trained, below in trial.parts_of(network):
        x, cache = layer.forward(x, rng=draws)
        yield where, "the output", to_host(x)
        passed.append((layer, where, cache, trained, below))
    losses, dy = loss(x, y)
    yield trial.name_of_loss(loss), "the loss", to_host(losses)
    yield trial.name_of_loss(loss), "dz", to_host(dy)
    for layer, where, cache, trained, below in reversed(passed):
        for key, grad in layer.param_grads(dy, cache).items() if trained else ():
            for factor, array in vars(grad).items():
                if getattr(array, "shape", ())[:1] == (examples,):
                    yield where, f"factor {factor} of the gradient of {key}", to_host(array)
        if below:
            dy = layer.backward(dy, cache)
            yield where, "dx", to_host(dy)
