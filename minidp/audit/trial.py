"""One trial of a layer or a loss at a few rows: it lists faults, and none if the code is right.

Gradients are compared with differences of the forward pass along a random direction, example by
example. With central differences an example passes if one of several steps agrees, so that a kink
on the way does not matter. The complex step knows no cancellation and is right to about 1e-15; it
needs layers that take complex numbers.
"""

from collections.abc import Iterator
from functools import partial
from traceback import walk_tb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of, to_host
from ..errors import TrialError
from ..grads.forms import PerExampleGrad
from ..nn.layer import Layer
from ..nn.loss import Loss
from ..nn.network import Sequential
from ..streams import Streams
from ..train.selfcheck import ROWS, SEED
from ..train.tried import JITTER, arrays_of, direction, host_copy, targets
from ..util.text import listed
from .differences import CENTRAL, QUICK, Differences, compare, per_example

THOROUGH = Differences(CENTRAL, 1e-6)
COMPLEX_STEP = Differences((1e-200j,), 1e-13)
RETURNS = {
    "compute_y": "(y, kept)",
    "compute_dx": "dx of the input's shape",
    "compute_grads": "{name: PerExampleGrad} of all parameters",
    "_both": "(losses (B,), dz)",
}


def first_fault(network: Sequential, loss: Loss, y: NDArray) -> str | None:
    """The first fault of a layer, with its name, or of the loss, in words; None if each of them is
    right. The loss is computed on the network's device.

    y: the targets of training, (N, ...); their dtype and the shape of one are read.
    """
    rng, tried = np.random.default_rng(SEED), host_copy(network)
    asarray = namespace_of(*network.params.values()).asarray
    x = rng.uniform(-1, 1, (ROWS, *network.input_shape))
    with np.errstate(all="ignore"):
        try:
            for trial in _trials(tried, loss, x, y, rng, asarray):
                for fault in trial.faults():
                    return fault
        except Exception as error:  # whatever a class of the user's raises
            return raised(error)
    return None


def raised(error: Exception) -> str:
    """An exception in words. If a layer or a loss raised it: where, for which shape, and what is
    expected instead.
    """
    said = f"{type(error).__name__}: {error}"
    for frame, _ in walk_tb(error.__traceback__):
        part, method = frame.f_locals.get("self"), frame.f_code.co_name
        if isinstance(part, (Layer, LossTrial)) and method in RETURNS:
            where = f"{part.where}: {method}" if isinstance(part, Layer) else part.where
            name = frame.f_code.co_varnames[1]
            shape = getattr(frame.f_locals.get(name), "shape", None)
            said = f"{where} raised {said}, for {name} of shape {shape}; expected {RETURNS[method]}"
            if shape and not shape[0]:
                said += ", of no rows too: write reshape((len(x), n)), never reshape(..., -1)"
    return said


def _trials(network, loss, x, y, rng, asarray) -> "Iterator[LayerTrial | LossTrial]":
    """Trials of each layer at the output of the one before, and then of the loss. A network with
    its own `forward` is tried as a whole.
    """
    own_kind = type(network).forward is not Sequential.forward
    names, below = {name for name, _ in network.params}, False
    parts: Any = [network] if own_kind else network.layers
    for part in parts:
        trained = own_kind or part.name in names
        trial = LayerTrial(part, x, rng, trained, below, training=True)
        yield trial
        x, below = trial.y, below or trained
    yield LossTrial(loss, x, targets(y, x, rng), rng, asarray)


class Trial:
    """Faults of a function at rows x, in words.

    A subclass gives `found(rows)`, {what: array or PerExampleGrad} of these examples by themselves;
    `shapes` of one; `arguments`, which have to stay as they are; `forward(x)`; and `moved`, {what:
    the array by which it differentiates}, of which `ahead()` is the function's value.
    """

    def __init__(self, where, x, rng, how, asarray, jitter=JITTER):
        self.where, self.rng, self.how, self.asarray = where, rng, how, asarray
        self.errors = {}
        for self.x in (x + rng.uniform(-jitter, jitter, x.shape).astype(x.dtype), x, abs(x)):
            self.y = self.forward(self.x.copy())
            if np.isfinite(self.y).all():
                break
        # a copy where the step is complex
        self.at = self.x.astype(np.result_type(self.x, how.steps[0]), copy=False)

    def faults(self):
        """All faults, without those that follow from others."""
        return list(self.forms()) or list(self.independence()) or list(self.derivatives())

    def results(self, rows=slice(None)):
        """{what: array} of some of the examples by themselves."""
        return {what: _array(each) for what, each in self.found(rows).items()}

    def forms(self):
        """Faults of shapes, for one example and several, and of norms and sums, compared with
        materialised gradients.
        """
        for rows in (slice(1), slice(None)):
            count, found = len(self.x[rows]), self.found(rows)
            for what in {**self.shapes, **found}:
                expected = (count, *self.shapes[what]) if what in self.shapes else None
                got = _array(found[what]).shape if what in found else None
                if got != expected:
                    yield (
                        f"{what}: expected shape {expected}, got {got}; nothing sums or averages "
                        "over examples"
                    )
                    return
        weights = self.rng.uniform(0.5, 1, count)
        for what, grad in found.items():
            if isinstance(grad, PerExampleGrad):
                g = to_host(grad.materialise())
                norms = per_example(g**2)
                for quantity, got, expected in (
                    ("squared norms", grad.sq_norms(), norms),
                    ("squared norms, rounded up,", grad.sq_norms_upper(), norms),
                    (
                        "weighted sum",
                        grad.weighted_sum(self.asarray(weights)),
                        np.tensordot(weights, g, 1),
                    ),
                ):
                    got = to_host(got)
                    if not _close(got, expected, self.how.apart):
                        yield (
                            f"{what}: {quantity}: expected shape {expected.shape} and "
                            f"{expected.ravel()[:3]}, got {got.shape} and {got.ravel()[:3]}"
                        )

    def independence(self):
        """Results of an example that differ by itself and among others, and arguments that are
        changed in place.
        """
        before, count = [each.tobytes() for each in self.arguments], len(self.x)
        together = self.results()
        alone = [self.results(slice(b, b + 1)) for b in range(count)]
        if before != [each.tobytes() for each in self.arguments]:
            yield (
                f"{self.where}: an argument is changed in place, which others still need; work on "
                "a copy"
            )
            return
        for what, whole in together.items():
            parts = np.concatenate([each[what] for each in alone])
            if _close(whole, parts, self.how.apart):
                continue
            off = [_size(each) for each in whole - parts]
            b = int(np.argmax(off))
            sizes = f"{_size(whole[b]):.3g} among {count} examples, {_size(parts[b]):.3g} by itself"
            if _close(whole * count, parts, self.how.apart):
                yield (
                    f"{what} shrinks with the batch size: {sizes}. It carries a 1/B; leave it out, "
                    "the trainer divides by the expected lot size"
                )
                return
            yield (
                f"{what} of example {b} changes with the other examples of the batch (by "
                f"{off[b]:.2g}: {sizes}); each example has to be computed by itself"
            )

    def derivatives(self):
        """Compare the gradients (B, *shape) with differences of sum y dy (B,) by the arrays, which
        are restored; sets `errors`.
        """
        results = self.results()
        for what, array in self.moved.items():
            kept = to_host(array).copy()
            moved = partial(self._moved, array, kept)
            found = compare(self.how, self.rng, kept.shape, moved, self.y, self.dy, results[what])
            self.errors[what] = float(found.best.max(initial=0))
            if not self.errors[what] <= self.how.tolerance:
                b = int((found.best <= self.how.tolerance).argmin())
                yield (
                    f"{what} is not the derivative of the forward pass: along a random direction "
                    f"example {b} moves by {found.slopes[b]:.6g}, its gradient says "
                    f"{found.expected[b]:.6g} (relative error {found.error[b]:.2g})"
                )

    def _moved(self, array, kept, move):
        """The function's value with kept + move in the array, which is then restored."""
        put = namespace_of(array).asarray
        array[...] = put(kept + move)
        value = self.ahead() + 0  # a copy: a layer may return a view of x
        array[...] = put(kept)
        return value


class LayerTrial(Trial):
    """Faults of a layer, or of a whole network: of its gradients if `trained`, of its dx if one
    `below` is trained.

    asarray moves arrays to where the layer's are; training: forward gets the numbers of its rows,
    as in training.
    """

    def __init__(
        self, layer, x, rng, trained=True, below=True, how=QUICK, asarray=np.asarray, training=False
    ):
        self.layer, self.trained, self.below = layer, trained, below
        self.draws = Streams(len(x)).dropout(0) if training else None
        jitter = JITTER if below else 0  # else x is not moved, and may stand on kinks
        super().__init__(getattr(layer, "where", "network"), x, rng, how, asarray, jitter)
        self.dy = direction(rng, self.y.shape).astype(self.y.dtype)
        self.arguments = self.x, self.dy
        complex_step = self.at is not self.x
        self.twin = host_copy(layer, self.at.dtype, asarray) if complex_step else layer
        self.moved = {f"{self.where}: dx": self.at} if below else {}
        if trained:
            self.moved |= {self._named(name): array for name, array in self.twin.params.items()}
        shape = layer.output_shape
        output = shape(x.shape[1:]) if callable(shape) else shape
        self.shapes = {f"{self.where}: the output": tuple(output)}
        self.shapes |= {what: array.shape[array is self.at :] for what, array in self.moved.items()}

    def forward(self, x):
        """The output, on the host."""
        return to_host(self._forward(self.layer, x)[0])

    def ahead(self):
        """The output with the moved arrays."""
        return to_host(self._forward(self.twin, self.at)[0])

    def _forward(self, layer, x, rows=slice(None)):
        """(y, cache) of a layer at these rows, whose numbers do not change with the others."""
        numbers = None
        if self.draws is not None:
            numbers = self.draws.rows(np.arange(len(self.x))[rows])
        return layer.forward(self.asarray(x), rng=numbers)

    def independence(self):
        """Also report arrays of the layer that change or are created."""
        before = arrays_of(self.layer)
        yield from super().independence()
        after = arrays_of(self.layer)
        if changed := [name for name in after if after[name] != before.get(name)]:
            yield (
                f"{self.where}: {listed(changed)} changes in a forward pass: what the layer keeps "
                "of a batch may reach other batches and the model's file; keep it in the cache"
            )

    def _named(self, name):
        name = ".".join(name) if isinstance(name, tuple) else f"{self.where}.{name}"
        return f"{name}: the per-example gradient"

    def found(self, rows):
        """The output, dx and the gradients; another batch goes forward between, as in threads."""
        y, cache = self._forward(self.layer, self.x[rows], rows)
        self._forward(self.layer, np.roll(self.x, 1, axis=0)[rows], rows)
        found, dy = {f"{self.where}: the output": y}, self.asarray(self.dy[rows])
        if self.below:
            found[f"{self.where}: dx"] = self.layer.backward(dy, cache)
        for name, grad in self.layer.param_grads(dy, cache).items() if self.trained else ():
            found[self._named(name)] = grad
            if not isinstance(grad, PerExampleGrad):
                raise TrialError(
                    f"{self._named(name)}: expected a PerExampleGrad such as grads.Explicit, got "
                    f"{type(grad).__name__}: a sum over examples cannot be clipped per example"
                )
        return found


class LossTrial(Trial):
    """Faults of a loss near z (B, K), for targets (B, ...)."""

    def __init__(self, loss, z, target, rng, asarray=np.asarray, how=QUICK):
        self.loss, self.target = loss, target
        where = f"loss {getattr(loss, '__name__', type(loss).__name__)}"
        super().__init__(where, z, rng, how, asarray)
        self.arguments, self.dy = (self.x, target), np.ones(len(z))
        self.moved = {f"{where}: dz": self.at}
        self.shapes = {f"{where}: the loss": (), f"{where}: dz": z.shape[1:]}

    def forward(self, z, rows=slice(None)):
        """The losses."""
        return self._both(z, rows)[0]

    def ahead(self):
        """The losses at the moved z."""
        return self.forward(self.at)

    def found(self, rows):
        """The losses and dz."""
        return dict(zip(self.shapes, self._both(self.x[rows], rows)))

    def _both(self, z, rows):
        losses, dz = self.loss(*map(self.asarray, (z, self.target[rows])))
        return to_host(losses), to_host(dz)


def _array(found):
    return to_host(found.materialise() if isinstance(found, PerExampleGrad) else found)


def _close(found, expected, apart):
    """True if all numbers agree to `apart` times the largest, and are infinite or NaN at the same
    places.
    """
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)):
        return False
    found, expected = found[finite], expected[finite]
    return _size(found - expected) <= apart * max(_size(found), _size(expected))


def _size(array):
    """The largest absolute value; 0 for an empty array."""
    return float(np.abs(array).max(initial=0))
