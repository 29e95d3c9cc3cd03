"""Accuracy and loss of a network over a data set.

Evaluating on training data looks at it without noise: such figures are not private, and whoever writes them
down has to mark them so. They are never fed back into training.
"""
from dataclasses import dataclass

from ..backend import to_host
from ..validate import count, same_batch


@dataclass(frozen=True)
class Metrics:
    """accuracy in [0, 1], mean loss, number of examples; accuracy and loss are None without examples."""

    accuracy: float
    loss: float
    examples: int


def evaluate(network, loss, x, y, batch_size=4096):
    """Metrics of `network` on x (N, ...) with class labels y (N,), in batches of bounded memory.

    Raises ShapeError if x and y differ in number. The one place that waits for the device.
    """
    count(1, batch_size=batch_size)
    same_batch("evaluate", x=x, y=y)
    examples = x.shape[0]
    if examples == 0:
        return Metrics(None, None, 0)
    correct = total = 0
    for start in range(0, examples, batch_size):
        target = y[start : start + batch_size]
        z, _ = network.forward(x[start : start + batch_size])
        losses, _ = loss.forward(z, target)
        correct = correct + (z.argmax(axis=1) == target).sum()
        total = total + losses.sum(dtype="float64")
    return Metrics(int(to_host(correct)) / examples, float(to_host(total)) / examples, examples)
