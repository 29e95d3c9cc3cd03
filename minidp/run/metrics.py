"""Accuracy, or R2, and loss of a network over a data set.

Figures on training data have no noise, so they are not private. They must be marked as such
wherever they are written, and they never affect training.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..backend import to_host
from ..data.arrays import as_rows
from ..examples import Examples
from ..host import threads
from ..nn.loss import Loss
from ..nn.network import Sequential
from ..util.validate import count, same_batch

HOST_ROWS, DEVICE_ROWS = 1024, 16_384  # rows computed at once


@dataclass(frozen=True)
class Metrics:
    """Figures of a network on a data set; None for those that do not apply or have no examples.

    accuracy             in [0, 1], of class labels: the share whose logit is the largest
    loss                 the mean
    r2                   of floating point targets: 1 - sum (z - t)^2 / sum (t - mean t)^2, over all
                         outputs
    """

    accuracy: float | None
    loss: float | None
    examples: int
    r2: float | None = None


def evaluate(
    network: Sequential,
    loss: Loss,
    x: NDArray | Examples,
    y: NDArray,
    batch_size: int | None = None,
    limit: float | None = None,
) -> Metrics:
    """Metrics of `network` on x (N, ...) with class labels or floating point targets y (N, ...), in
    bounded memory.

    batch_size: rows computed at once; None for 1,024, or 16,384 on a device, where each start of a
    kernel takes time. limit: outputs are limited to [-limit, limit] for R2, as in a model with
    target bounds.

    Raises ShapeError if x and y differ in number.
    """
    like = next(iter(network.params.values()), np.zeros(0, "float32"))
    x, y = as_rows("evaluate", x, y, like=like)
    if batch_size is None:
        batch_size = HOST_ROWS if isinstance(like, np.ndarray) else DEVICE_ROWS
    count(1, batch_size=batch_size)
    same_batch("evaluate", x=x, y=y)
    examples = x.shape[0]
    if examples == 0:
        return Metrics(None, None, 0)
    centre = y.mean(axis=0, dtype="float64") if y.dtype.kind == "f" else None

    @np.errstate(all="ignore")
    def figures(start):
        batch = slice(start, start + batch_size)
        return _sums(loss, network.forward(x[batch])[0], y[batch], centre, limit)

    compute = threads.map_parallel if isinstance(x, np.ndarray) else map
    found: dict[str, float] = {}
    for sums in compute(figures, range(0, examples, batch_size)):
        for name, value in sums.items():
            found[name] = found.get(name, 0) + to_host(value)
    accuracy = r2 = None
    if "correct" in found:
        accuracy = int(found["correct"]) / examples
    if found.get("spread", 0) > 0:
        r2 = 1 - float(found["errors"]) / float(found["spread"])
    return Metrics(accuracy, float(found["loss"]) / examples, examples, r2)


def _sums(loss, z, target, centre, limit):
    """Sums over a batch: losses, correct answers, squared errors, squares about the mean target.

    Figures that make no sense are left out: accuracy with a single logit, errors of targets of
    another shape than the output.
    """
    losses, _ = loss(z, target)
    found = {"loss": losses.sum(dtype="float64")}
    if centre is not None and prod(z.shape) == prod(target.shape):
        z = z.reshape(target.shape).astype("float64")
        z = z if limit is None else z.clip(-limit, limit)
        found["errors"] = ((z - target) ** 2).sum()
        found["spread"] = ((target - centre) ** 2).sum()
    elif centre is None and target.ndim == 1 and z.ndim == 2 and z.shape[1] > 1:
        found["correct"] = (z.argmax(axis=1) == target).sum()
    return found
