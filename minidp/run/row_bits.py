"""A trial of float64 on this machine: do a row's results have the same bits at every place of a
batch, and beside any other rows?

The trial runs before the first step, on random public rows, in batches as large as those of
training. It is evidence, not proof.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of, to_host
from ..examples import Examples, LabelledExamples
from ..grads.forms import PerExampleGrad
from ..host import blas, threads
from ..mechanism import Sanitizer, flat_group
from ..mechanism.sanitizer import Watcher
from ..nn.loss import Loss
from ..nn.network import Sequential
from ..streams import Streams
from ..train.selfcheck import SEED
from ..train.trainer import Trainer
from ..train.tried import direction, targets

STRANGE = (0.0, np.nan, 1e300)  # padding, and values that an unchecked row may hold


def tried(trainer: Trainer, x: NDArray | Examples, y: NDArray) -> dict[str, Any]:
    """A dictionary with "dtype": float64 if all parameters are, otherwise float32. In float64 also
    "rows" per batch, "kernels" of matrix products on the host, and "differ", the names that
    `differing` returns.
    """
    network, batching = trainer.network, trainer.batching
    if not batching.equal:
        return {"dtype": "float32"}
    shards, size = batching.fixed(LabelledExamples(x, y).in_host_memory)
    # as for shards
    with threads.single_blas() if shards > 1 else nullcontext():
        strategy = trainer.plan.sanitizer.strategy
        differ = differing(network, trainer.loss, y, size, batching.rows, strategy)
    on_host = namespace_of(*network.params.values()) is np
    kernels = blas.kernels() if on_host else None
    return {
        "dtype": "float64",
        "rows": size * batching.rows,
        "kernels": kernels,
        "differ": differ,
    }


def differing(
    network: Sequential, loss: Loss, y: NDArray, examples: int, rows: int, strategy: str
) -> list[str]:
    """Names of the layers, and of the loss, for which a bit of an example's output, gradient or
    norm changes with its place in the batch or with the other examples.

    y: the targets of training; only their dtype and the shape of one are used. examples: number per
    batch. rows: number per example. strategy: that of the sanitizer.
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
        for where, at, results in _parts(network, loss, x, y, rng):
            at[-strange:].T[...] = np.repeat(STRANGE, rows)
            before = list(_arrays(results, first, rows, strategy))
            for order in (moved, beside):
                own = order < examples
                after = _arrays(results, order, rows, strategy)
                if any(a[order[own]].tobytes() != b[own].tobytes() for a, b in zip(before, after)):
                    found.append(where)
                    break
    return found


def of_both(before: Mapping[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """Merge the trials made before and after a run was resumed; before: None without a trial."""
    if before == now or "differ" not in now:
        return now
    differ = {"steps before the run was resumed", *(before or {}).get("differ", ()), *now["differ"]}
    return {**now, "differ": sorted(differ)}


def _parts(network, loss, x, y, rng):
    """Yield (name, rows x, function) for each layer, whose x is the output of the layer before, and
    for the loss. The function takes numbers of rows and returns their results. A network with its
    own `forward` is one part.
    """
    whole, below = type(network).forward is not Sequential.forward, False
    asarray, trained = (
        namespace_of(*network.params.values()).asarray,
        {n for n, _ in network.params},
    )
    draws = Streams(len(x)).dropout(0)
    for layer in [network] if whole else network.layers:
        z, _ = layer.forward(asarray(x), rng=draws.rows(np.arange(len(x))))
        dy = direction(rng, z.shape).astype(z.dtype)
        own = whole or layer.name in trained

        def results(rows, layer=layer, x=x, dy=dy, own=own, below=below):
            z, cache = layer.forward(asarray(x[rows]), rng=draws.rows(rows))
            given = asarray(dy[rows])
            found = [z, *(layer.param_grads(given, cache).values() if own else ())]
            return [*found, layer.backward(given, cache)] if below else found

        yield getattr(layer, "where", "network"), x, results
        x, below = to_host(z), below or own
    t = targets(y, x, rng)

    def of_loss(rows):
        return loss(asarray(x[rows]), asarray(t[rows]))

    yield f"loss {getattr(loss, '__name__', type(loss).__name__)}", x, of_loss


def _arrays(results, order, rows, strategy):
    """All results of a part for these examples, which are on the first axis."""
    places = (order[:, None] * rows + np.arange(rows)).ravel()
    for each in results(places):
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
    """A watcher that keeps the squared norms of one batch."""

    def __init__(self):
        self.parts = []

    def take_norms(self, group, sq_norms, example_weight):
        self.parts.append(sq_norms)

    @property
    def found(self):
        return [namespace_of(*self.parts).concatenate(self.parts)]
