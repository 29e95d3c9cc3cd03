"""Accuracy and loss of a network over a data set.

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
    """accuracy in [0, 1], mean loss, number of examples; accuracy and loss are None without examples."""

    accuracy: float
    loss: float
    examples: int


def evaluate(network, loss, x, y, batch_size=1024):
    """Metrics of `network` on x (N, ...) with class labels y (N,), in batches of bounded memory.

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
    correct, total = (sum(to_host(each) for each in column) for column in zip(*sums))
    return Metrics(int(correct) / examples, float(total) / examples, examples)


def _sums(network, loss, x, y, start, stop, batch_size):
    """Correct answers and losses, added up over the examples start..stop-1."""
    correct = total = 0
    for begin in range(start, stop, batch_size):
        span = slice(begin, min(begin + batch_size, stop))
        z, _ = network.forward(x[span])
        losses, _ = loss(z, y[span])
        correct = correct + (z.argmax(axis=1) == y[span]).sum()
        total = total + losses.sum(dtype="float64")
    return correct, total
