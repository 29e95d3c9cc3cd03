"""Try a network and a loss on random rows before anything is charged, never on the data.

The guarantee needs two properties that types cannot express: each example's output, loss and
gradient depend on that example alone, and nothing is divided by the number of examples. `check`
tests both on 64 rows, in the batch, dtype and device of training (`train.crowd`). On four rows in
float64 it tests that gradients are derivatives. The rows are public: they come from a fixed seed.
Only `check_rows` looks at data: it takes a few rows of `Examples` in two ways and compares them.
`audit.check_layer` and `check_loss` try a layer and a loss by itself, more thoroughly.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of, to_host
from ..errors import MinidpError, TrialError
from ..examples import LabelledExamples
from ..nn.loss import Loss
from ..nn.network import Sequential
from ..streams import Streams
from ..util.lazy import ring
from ..util.text import listed
from . import crowd
from .tried import JITTER, arrays_of, direction, host_copy, targets

ROWS, SEED = 4, 20161024
# A gradient is wrong if a step and half of it agree on another slope of the loss. A small step is
# tried, and a large one, for networks that compute in float32 inside.
STEPS, TOLERANCE = (1e-5, 1e-2), 1e-3
FLOOR = 1e-8  # of the largest loss: smaller slopes may come from rounding


def check(network: Sequential, loss: Loss, y: NDArray) -> None:
    """Raise TrialError unless the trial succeeds. The error names the parameter or the loss and its
    fault, and the layer if `minidp.audit` is installed.

    y: the targets of training, (N, ...); the trial reads only their dtype and the shape of one.

    Rounding and kinks add up over layers. So if only a gradient is in doubt, and `minidp.audit` is
    installed, each layer is tried by itself, and these trials decide.
    """
    rng, plain = np.random.default_rng(SEED), type(network).forward is Sequential.forward
    with np.errstate(all="ignore"):
        mixes, cause = chain(_changed(network, rng), crowd.faults(network, loss, y, rng)), None
        try:
            fault = certain = next(mixes, None)
            if not certain:
                fault = next(_not_derivatives(network, loss, y, rng), None)
        except (MinidpError, MemoryError):
            raise
        except Exception as error:  # whatever a layer of the user's raises
            cause, fault = error, f"{type(error).__name__}: {error}"
            certain = fault
        if fault is None:
            return
        layers = ring("diagnosis")
        named = layers.first_fault(network, loss, y) if layers else None
    if named or certain or not plain or layers is None:
        raise _error(named or fault) from cause


def check_rows(examples: LabelledExamples) -> None:
    """Raise TrialError if a row depends on the other rows; a few of these examples are tried."""
    for fault in crowd.rows_that_mix(examples):
        raise _error(fault)


def _error(fault):
    return TrialError(
        f"{fault}. No step was charged now; minidp.audit.check_layer and check_loss list every test"
    )


def _inputs(network, rng):
    """(a copy on the host in float64, its parameters moved away from zeros; rows; their numbers in
    training).
    """
    tried, numbers = host_copy(network), Streams(ROWS).dropout(0).rows(np.arange(ROWS))
    for array in tried.params.values():
        array += JITTER / 10 * direction(rng, array.shape)
    x = rng.uniform(-1, 1, (ROWS, *network.input_shape))
    finite = np.isfinite(tried.forward(x, rng=numbers)[0]).all()
    return tried, x if finite else abs(x), numbers


def _changed(network: Sequential, rng: np.random.Generator) -> Iterator[str]:
    """Describe what layers keep of a batch or change in place. Layers check their own results."""
    if type(network).forward is not Sequential.forward:
        return
    tried, x, numbers = _inputs(network, rng)
    x, caches = x[::-1].copy(), []  # other rows than before: anything a layer kept changes
    for layer in tried.layers:
        given, before = x.copy(), arrays_of(layer)
        y, cache = layer.forward(x, rng=numbers)
        after = arrays_of(layer)
        if given.tobytes() != x.tobytes():
            yield f"{layer.where}: an argument is changed in place, which others still need"
        if changed := [name for name in after if after[name] != before.get(name)]:
            yield (
                f"{layer.where}: {listed(changed)} changes in a forward pass: what the layer keeps "
                "of a batch may reach other batches and the model's file; keep it in the cache"
            )
        caches.append(cache)
        x = y
    dy, trained = direction(rng, x.shape), {name for name, _ in tried.params}
    above = [layer.name in trained for layer in tried.layers].index(True)
    for number in reversed(range(above, len(caches))):
        layer, cache = tried.layers[number], caches[number]
        if layer.name in trained:
            layer.param_grads(dy, cache)
        if number > above:
            dy = layer.backward(dy, cache)


def _not_derivatives(
    network: Sequential, loss: Loss, y: NDArray, rng: np.random.Generator
) -> Iterator[str]:
    """Describe gradients that are not those of the loss. The loss is computed on the network's
    device.
    """
    tried, x, numbers = _inputs(network, rng)
    z, caches = tried.forward(x, rng=numbers)
    asarray, t = namespace_of(*network.params.values()).asarray, targets(y, z, rng)

    def losses():
        z, _ = tried.forward(x, rng=numbers)
        return to_host(loss(asarray(z), asarray(t))[0])

    before, (_, dz) = losses(), loss(asarray(z), asarray(t))
    grads, rows = tried.param_grads(to_host(dz), caches), (ROWS, -1)
    floor = FLOOR * (1 + np.abs(before).max(initial=0, where=np.isfinite(before)))
    for key, array in tried.params.items():
        kept, v = array.copy(), direction(rng, array.shape)
        gradient = crowd.rows_of(grads[key], range(ROWS))
        says = (gradient * v).reshape(rows).sum(axis=1)
        size = np.sqrt((gradient**2).reshape(rows).sum(axis=1))
        right, wrong = np.zeros((2, ROWS), bool)
        for step in STEPS:
            slopes = []
            for each in (step, step / 2):
                array[...] = kept + each * v
                ahead = losses()
                array[...] = kept - each * v
                slopes.append((ahead - losses()) / (2 * each))
            array[...] = kept
            first, moves = slopes
            off = np.abs(moves - says)
            close = off <= TOLERANCE * np.maximum.reduce([np.abs(moves), np.abs(says), size])
            steady = np.abs(first - moves) <= TOLERANCE * np.abs(moves)
            right |= close | (off <= floor) | ~np.isfinite(off)
            wrong |= steady & ~close
        if (bad := wrong & ~right).any():
            b = int(bad.argmax())
            yield (
                f"{'.'.join(key)}: the per-example gradient is not the derivative of the loss: "
                f"along a random direction example {b} moves by {moves[b]:.6g}, its gradient says "
                f"{says[b]:.6g}"
            )
