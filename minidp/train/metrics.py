"""Accuracy, or R2, and loss of a network over a data set.

Evaluating on training data looks at it without noise: such figures are not private, and must be marked as such wherever
they are written down. They are never fed back into training.
"""
from dataclasses import dataclass

import numpy as np

from ..backend import to_host
from ..host import threads
from ..validate import count, same_batch


@dataclass(frozen=True)
class Metrics:
    """accuracy in [0, 1] of class labels; mean loss, number of examples; R2 and mean squared error of a regression.

    What was not measured is None: all figures without examples, and R2 of targets that are all equal.
    """

    accuracy: float
    loss: float
    examples: int
    r2: float = None
    mean_squared_error: float = None


def evaluate(network, loss, x, y, batch_size=1024):
    """Metrics of `network` on x (N, ...) with class labels y (N,) or targets y (N, K) of a regression, batch by batch.

    Raises ShapeError if x and y differ in number. The one place that waits for the device.
    """
    count(1, batch_size=batch_size)
    same_batch("evaluate", x=x, y=y)
    examples = x.shape[0]
    if examples == 0:
        return Metrics(None, None, 0)
    shards = threads.shards_for(examples) if isinstance(x, np.ndarray) else 1
    bounds = [examples * shard // shards for shard in range(shards + 1)]
    sums = threads.map_parallel(lambda span: _sums(network, loss, x, y, *span, batch_size), list(zip(bounds, bounds[1:])))
    found, total = (float(sum(to_host(each) for each in column)) / examples for column in zip(*sums))
    if y.dtype.kind != "f":
        return Metrics(found, total, examples)
    spread = float(to_host(((y - y.mean(axis=0, dtype="float64")) ** 2).sum())) / examples
    return Metrics(None, total, examples, 1 - found / spread if spread else None, found / y[:1].size)


def _sums(network, loss, x, y, start, stop, batch_size):
    """Correct answers, or squared errors of a regression, and losses: sums over the examples start..stop-1."""
    found = total = 0
    for begin in range(start, stop, batch_size):
        span = slice(begin, min(begin + batch_size, stop))
        z, _ = network.forward(x[span])
        losses, _ = loss(z, y[span])
        found = found + (((z - y[span]) ** 2).sum(dtype="float64") if y.dtype.kind == "f" else
                         (z.argmax(axis=1) == y[span]).sum())
        total = total + losses.sum(dtype="float64")
    return found, total
