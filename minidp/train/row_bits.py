"""A trial of float64 on this machine: does a row have the same bits at every place of a batch, and
beside any other rows?

The trial runs before the first step, on random public rows, in batches as large as those of
training. It is evidence and no proof.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of, to_host
from ..grads.forms import PerExampleGrad
from ..mechanism import Sanitizer, flat_group
from ..mechanism.sanitizer import Watcher
from ..nn.loss import Loss
from ..nn.network import Sequential
from .selfcheck import SEED, trials

STRANGE = (0.0, np.nan, 1e300)  # padding, and what a row may hold that nobody checked


def differing(
    network: Sequential, loss: Loss, y: NDArray, examples: int, rows: int, strategy: str
) -> list[str]:
    """Names of the layers, and of the loss, for which a bit of an example's output, gradient or
    norm changes with its place in the batch or with the other examples.

    y: the targets of training, of which only the dtype and the shape of one are used. examples: how
    many a batch has. rows: how many an example has. strategy: that of the sanitizer.
    """
    rng, spare = np.random.default_rng(SEED), examples // 2
    known, strange = examples + spare, len(STRANGE) * rows
    x = rng.uniform(-1, 1, (known * rows + strange, *network.input_shape))
    first = np.arange(examples)
    moved = rng.permutation(known)[:examples]
    beside = first[::-1].copy()
    beside[1::2] = known + np.arange(spare) % len(STRANGE)
    found = []
    with np.errstate(all="ignore"):
        asarray = namespace_of(*network.params.values()).asarray
        for trial in trials(network, loss, x, y, rng, asarray, asarray):
            trial.x[-strange:].T[...] = np.repeat(STRANGE, rows)
            before = list(_results(trial, first, rows, strategy))
            for order in (moved, beside):
                own = order < examples
                after = _results(trial, order, rows, strategy)
                if any(a[order[own]].tobytes() != b[own].tobytes() for a, b in zip(before, after)):
                    found.append(trial.where)
                    break
    return found


def of_both(before: Mapping[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """Merge the trials made before and after a run was resumed; before: None without a trial."""
    if before == now or "differ" not in now:
        return now
    differ = {"steps before the run was resumed", *(before or {}).get("differ", ()), *now["differ"]}
    return {**now, "differ": sorted(differ)}


def _results(trial: Any, order: NDArray, rows: int, strategy: str) -> Iterator[NDArray]:
    """Everything that the trial's function gives for these examples, with an axis of them first."""
    places = (order[:, None] * rows + np.arange(rows)).ravel()
    for each in trial.found(places).values():
        arrays = [each]
        if isinstance(each, PerExampleGrad):
            grad = each if rows == 1 else each.sum_over_views(rows)
            norms = _Norms()
            group = flat_group([("a", "b")], 1.0, 0.0)
            Sanitizer(group, strategy, watcher=norms).add_clipped({("a", "b"): grad})
            arrays = [*grad.arrays, *norms.found]
        for array in map(to_host, arrays):
            yield array.reshape((len(order), -1))


class _Norms(Watcher):
    """Keeps the squared norms of one batch."""

    def __init__(self):
        self.parts = []

    def take_norms(self, group, sq_norms):
        self.parts.append(sq_norms)

    @property
    def found(self):
        return [namespace_of(*self.parts).concatenate(self.parts)]
