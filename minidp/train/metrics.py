"""Accuracy, or R2, and loss of a network over a data set.

Evaluating on training data looks at it without noise: such figures are not private, and must be
marked as such wherever they are written down. They are never fed back into training.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import to_host
from ..data.arrays import as_rows
from ..data.examples import Examples
from ..host import threads
from ..nn.loss import Loss
from ..nn.network import Sequential
from ..util.validate import count, same_batch


@dataclass(frozen=True)
class Metrics:
    """What a network does on a data set; figures that make no sense there, or have no examples, are
    None.

    accuracy             in [0, 1], of class labels: the share whose logit is the largest
    loss                 the mean
    r2                   of floating point targets: 1 - sum (z - t)^2 / sum (t - mean t)^2, over all
                         outputs
    mean_squared_error   of floating point targets: of each number
    """

    accuracy: float | None
    loss: float | None
    examples: int
    r2: float | None = None
    mean_squared_error: float | None = None


def evaluate(
    network: Sequential, loss: Loss, x: NDArray | Examples, y: NDArray, batch_size: int = 1024
) -> Metrics:
    """Metrics of `network` on x (N, ...) with class labels or floating point targets y (N, ...), in
    bounded memory.

    Raises ShapeError if x and y differ in number.
    """
    x, y = as_rows(
        "evaluate", x, y, like=next(iter(network.params.values()), np.zeros(0, "float32"))
    )
    count(1, batch_size=batch_size)
    same_batch("evaluate", x=x, y=y)
    examples = x.shape[0]
    if examples == 0:
        return Metrics(None, None, 0)
    centre = y.mean(axis=0, dtype="float64") if y.dtype.kind == "f" else None
    shards = threads.shards_for(examples) if isinstance(x, np.ndarray) else 1
    bounds = [examples * shard // shards for shard in range(shards + 1)]
    sums = threads.map_parallel(
        lambda span: _sums(network, loss, x, y, centre, span[0], span[1], batch_size),
        list(zip(bounds, bounds[1:])),
    )
    found: list[Any] = [
        None if column[0] is None else sum(to_host(each) for each in column)
        for column in zip(*sums)
    ]
    total, correct, errors, spread = found
    return Metrics(
        accuracy=None if correct is None else int(correct) / examples,
        loss=float(total) / examples,
        examples=examples,
        r2=None if errors is None or not spread > 0 else 1 - float(errors) / float(spread),
        mean_squared_error=None
        if errors is None
        else float(errors) / (examples * prod(y.shape[1:])),
    )


@np.errstate(all="ignore")
def _sums(network, loss, x, y, centre, start, stop, batch_size):
    """Over the examples start..stop-1: losses, correct answers, squared errors, squares about the
    targets' mean.

    None where they make no sense: logits of one class, targets of another shape than the output.
    """
    parts = []
    for begin in range(start, stop, batch_size):
        span = slice(begin, min(begin + batch_size, stop))
        z, _ = network.forward(x[span])
        target, correct, errors, spread = y[span], None, None, None
        losses, _ = loss(z, target)
        if centre is not None and prod(z.shape) == prod(target.shape):
            z = z.reshape(target.shape).astype("float64")
            errors, spread = ((z - target) ** 2).sum(), ((target - centre) ** 2).sum()
        elif centre is None and target.ndim == 1 and z.ndim == 2 and z.shape[1] > 1:
            correct = (z.argmax(axis=1) == target).sum()
        parts.append((losses.sum(dtype="float64"), correct, errors, spread))
    return [None if column[0] is None else sum(column) for column in zip(*parts)]
