"""Accuracy, or R2, and loss of a network over a data set.

Figures on training data have no noise. They are not private, must be marked as such wherever they
are written, and never affect training.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..backend import to_host
from ..data.arrays import as_rows
from ..data.examples import Examples
from ..host import threads
from ..nn.loss import Loss
from ..nn.network import Sequential
from ..util.validate import count, same_batch

ROWS = 4096  # that `right_answers` predicts at once


@dataclass(frozen=True)
class Metrics:
    """Figures of a network on a data set; None for those that do not apply or have no examples.

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
    spans = [range(*span, batch_size) for span in zip(bounds, bounds[1:])]
    found: dict[str, float] = {}
    for sums in threads.map_parallel(lambda span: _sums(network, loss, x, y, centre, span), spans):
        for name, value in sums.items():
            found[name] = found.get(name, 0) + to_host(value)
    accuracy = r2 = mean_squared_error = None
    if "correct" in found:
        accuracy = int(found["correct"]) / examples
    if "errors" in found:
        errors, spread = float(found["errors"]), float(found["spread"])
        mean_squared_error = errors / (examples * prod(y.shape[1:]))
        if spread > 0:
            r2 = 1 - errors / spread
    return Metrics(accuracy, float(found["loss"]) / examples, examples, r2, mean_squared_error)


@np.errstate(all="ignore")
def _sums(network, loss, x, y, centre, span):
    """Over batches from each start in `span`: losses, correct answers, squared errors, squares
    about the targets' mean.

    Without those that make no sense: logits of one class, targets of another shape than the output.
    """
    sums = {}
    for begin in span:
        batch = slice(begin, min(begin + span.step, span.stop))
        z, _ = network.forward(x[batch])
        target = y[batch]
        losses, _ = loss(z, target)
        found = {"loss": losses.sum(dtype="float64")}
        if centre is not None and prod(z.shape) == prod(target.shape):
            z = z.reshape(target.shape).astype("float64")
            found["errors"] = ((z - target) ** 2).sum()
            found["spread"] = ((target - centre) ** 2).sum()
        elif centre is None and target.ndim == 1 and z.ndim == 2 and z.shape[1] > 1:
            found["correct"] = (z.argmax(axis=1) == target).sum()
        for name, value in found.items():
            sums[name] = sums.get(name, 0) + value
    return sums


def right_answers(model: Sequential, inputs: NDArray | Examples, targets: NDArray) -> NDArray:
    r"""How right each row's prediction is, (N,) float64 in [0, 1]; 0 where it is not finite.

    Labels t: 1 where the largest output is the label's, else 0.

    Forward
        [F1]  v_b = 1 - ((y_b - t_b) / 2)^2, y_b = min(1, max(-1, z_b))    of a regression, output z
              and target t in [-1, 1]

    Source
        own derivation: bounded by 1, so that a sum over rows has sensitivity 1
    """
    values = np.zeros(inputs.shape[0])
    for start in range(0, inputs.shape[0], ROWS):
        span = slice(start, start + ROWS)
        with np.errstate(all="ignore"):
            z, t = to_host(model.predict(inputs[span])), to_host(targets[span])
        if t.dtype.kind == "f":
            right = 1 - ((np.clip(z[:, 0], -1, 1) - t.reshape(len(t))) / 2) ** 2  # [F1]
        else:
            right = z.argmax(axis=1) == t
        values[span] = np.where(np.isfinite(z).all(axis=1), right, 0)
    return values
