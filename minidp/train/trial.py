"""Try a network and a loss on a few random rows before anything is charged.

The guarantee rests on what no type can say: each example's output, loss and gradient depend on that
example alone, and nothing is divided by the number of examples. The rows are public: they come from
a fixed seed, never from the data. The trial works on a copy of the network, on the host in float64;
a loss is tried on the network's own device. `audit.check_layer` and `audit.check_loss` run the same
trials on a class by itself.

Gradients are compared with central differences, example by example; an example passes if one random
direction agrees, so that a kink on the way does not matter.
"""

import copy

import numpy as np

from ..backend import namespace_of, to_host
from ..errors import TrialError
from ..exact.arithmetic import ORDINARY
from ..grads.forms import PerExampleGrad
from ..nn.network import Sequential

ROWS, SEED = 2, 20161024
JITTER = 0.1  # moves inputs away from the ties and kinks that exact zeros sit on
# 1e-8 is small beside the distance to kinks, 1e-2 large for what is float32 inside
STEPS = (
    1e-8,
    1e-5,
    1e-2,
    1e-5,
)
APART, DERIVATIVE = 1e-6, 1e-3  # largest relative differences that pass for rounding


def check(network, loss, y):
    """Raise TrialError, which names the layer or the loss and what is wrong with it, unless the
    trial succeeds.

    y: the targets of training, (N, ...); the trial reads their dtype and the shape of one only.
    """
    # exact products differentiate coarsely
    rng, tried = (
        np.random.default_rng(SEED),
        host_copy(network).use(ORDINARY),
    )
    with np.errstate(all="ignore"):
        for fault in _faults(tried, loss, y, rng, namespace_of(*network.params.values()).asarray):
            raise TrialError(
                f"{fault}. Nothing was charged; minidp.audit.check_layer and check_loss list every "
                "test"
            )


def _faults(network, loss, y, rng, asarray):
    """Layer by layer, so that a fault has a name; a network with a forward of its own as a
    whole.
    """
    x = rng.uniform(-1, 1, (ROWS, *network.input_shape))
    for part, _, trained, below in parts_of(network):
        tried = LayerTrial(part, x, rng, trained, below)
        yield from tried.faults()
        x = tried.y
    yield from LossTrial(loss, x, targets(y, x, rng), rng, asarray).faults()


def parts_of(network):
    """Yield (part, its name in messages, whether it is trained, whether one before it is): layers,
    or a network of its own kind.
    """
    own_kind = type(network).forward is not Sequential.forward
    names, below = {name for name, _ in network.params}, False
    for part in [network] if own_kind else network.layers:
        trained = own_kind or part.name in names
        yield part, getattr(part, "where", "network"), trained, below
        below = below or trained


def name_of_loss(loss):
    """The loss's name in messages."""
    return f"loss {getattr(loss, '__name__', type(loss).__name__)}"


def host_copy(network, dtype="float64"):
    """A copy whose arrays, in layers, their attributes, lists and dictionaries, are on the host,
    floats in `dtype`.
    """
    moved, seen, todo = {}, set(), [network]
    for value in todo:  # which grows
        inner = vars(value) if hasattr(value, "params") else value
        inner = list(inner.values()) if isinstance(inner, dict) else inner
        if isinstance(inner, (list, tuple)):
            todo += [each for each in inner if id(each) not in seen]
            seen.update(map(id, inner))
        elif hasattr(value, "dtype") and isinstance(getattr(value, "shape", None), tuple):
            host = to_host(value)
            moved[id(value)] = np.array(host, dtype=dtype if host.dtype.kind == "f" else host.dtype)
    try:
        return copy.deepcopy(network, moved)
    except (TypeError, copy.Error, RecursionError) as error:
        raise TrialError(
            f"the network cannot be copied to be tried ({error}); give its layers __deepcopy__"
        ) from error


def targets(y, z, rng):
    """Random targets for z (B, K), with the dtype of y and the shape of its rows: classes, or
    numbers in (0, 1).
    """
    shape, kind = (len(z), *y.shape[1:]), y.dtype.kind
    if kind == "f":
        return rng.uniform(0, 1, shape).astype(y.dtype.name)
    classes = max(z.shape[-1], 2) if len(shape) == 1 and kind in "iu" else 2
    return (
        rng.integers(0, classes, shape).astype(y.dtype.name)
        if kind in "iub"
        else np.zeros(shape, y.dtype)
    )


class Trial:
    """Faults of a function at rows x, in words.

    A subclass gives `found(rows)`, {what: array or PerExampleGrad} of these examples by themselves,
    `shapes` of one, `moved`, {what: the array by which it differentiates}, and `arguments`, which
    have to stay as they are.
    """

    def __init__(self, where, forward, x, rng, tolerance):
        self.where, self.forward, self.rng, self.tolerance, self.errors = (
            where,
            forward,
            rng,
            tolerance,
            {},
        )
        for self.x in (x + rng.uniform(-JITTER, JITTER, x.shape).astype(x.dtype), x, abs(x)):
            self.y = forward(self.x.copy())[0]
            if np.isfinite(self.y).all():
                break

    def faults(self):
        """All of them, but none that only follows from another."""
        return list(self.forms()) or list(self.independence()) or list(self.derivatives())

    def results(self, rows=slice(None)):
        """{what: array} of some of the examples by themselves."""
        return {what: _array(each) for what, each in self.found(rows).items()}

    def forms(self):
        """The shapes of one and of several; and norms and sums of gradients against their
        materialised numbers.
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
                g = grad.materialise()
                norms, total = _per_example(g**2), np.tensordot(weights, g, 1)
                for quantity, got, expected in (
                    ("squared norms", grad.sq_norms(), norms),
                    ("squared norms, rounded up,", grad.sq_norms_upper(), norms),
                    ("weighted sum", grad.weighted_sum(weights), total),
                ):
                    if not _close(got, expected):
                        yield (
                            f"{what}: {quantity}: expected shape {expected.shape} and "
                            f"{expected.ravel()[:3]}, got {got.shape} and {got.ravel()[:3]}"
                        )

    def independence(self):
        """Every result of an example, by itself and among others; and arguments that are changed in
        place.
        """
        before = [each.tobytes() for each in self.arguments]
        together, alone = (
            self.results(),
            [self.results(slice(b, b + 1)) for b in range(len(self.x))],
        )
        if before != [each.tobytes() for each in self.arguments]:
            yield (
                f"{self.where}: an argument is changed in place, which others still need; work on "
                "a copy"
            )
            return
        for what, whole in together.items():
            parts = np.concatenate([each[what] for each in alone])
            if _close(whole, parts):
                continue
            off, count = [_size(each) for each in whole - parts], len(whole)
            b = int(np.argmax(off))
            sizes = f"{_size(whole[b]):.3g} among {count} examples, {_size(parts[b]):.3g} by itself"
            if _close(whole * count, parts):
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
        """The gradients, (B, *shape), against differences of sum y dy (B,) by the arrays, which are
        put back; sets `errors`.
        """
        results, floor = self.results(), 1e-5 * np.abs(_per_example(self.y * self.dy))
        for what, array in self.moved.items():
            kept, norms, best = (
                array.copy(),
                np.sqrt(_per_example(results[what] ** 2)),
                np.where(np.isfinite(floor), np.inf, 0),
            )
            for step in STEPS:
                v = direction(self.rng, array.shape)
                array[...] = kept + step * v
                ahead = self.forward(self.x)[0] + 0  # a copy: a layer may return a view of x
                array[...] = kept - step * v
                slopes = _per_example((ahead - self.forward(self.x)[0]) * self.dy) / (2 * step)
                array[...] = kept
                expected = _per_example(results[what] * v)
                scale = np.maximum.reduce([np.abs(slopes), np.abs(expected), norms, floor])
                error = np.abs(slopes - expected) / np.where(scale > 0, scale, 1)
                best = np.fmin(best, error)
                self.errors[what] = float(best.max(initial=0))
                if self.errors[what] <= self.tolerance:
                    break
            else:
                b = int((best <= self.tolerance).argmin())
                yield (
                    f"{what} is not the derivative of the forward pass: along a random direction "
                    f"example {b} moves by {slopes[b]:.6g}, its gradient says {expected[b]:.6g} "
                    f"(relative error {error[b]:.2g})"
                )


class LayerTrial(Trial):
    """Faults of a layer, or of a whole network: of its gradients if `trained`, of its dx if one
    `below` is trained.
    """

    def __init__(self, layer, x, rng, trained=True, below=True, tolerance=DERIVATIVE):
        super().__init__(getattr(layer, "where", "network"), layer.forward, x, rng, tolerance)
        self.layer, self.trained, self.below = layer, trained, below
        self.dy = direction(rng, self.y.shape).astype(self.y.dtype)
        self.arguments, self.moved = (
            (self.x, self.dy),
            {f"{self.where}: dx": self.x} if below else {},
        )
        self.moved.update(
            {self._named(name): array for name, array in layer.params.items() if trained}
        )
        shape = (
            layer.output_shape(x.shape[1:]) if callable(layer.output_shape) else layer.output_shape
        )
        self.shapes = {f"{self.where}: the output": tuple(shape)}
        self.shapes.update(
            {what: array.shape[array is self.x :] for what, array in self.moved.items()}
        )

    def _named(self, name):
        name = ".".join(name) if isinstance(name, tuple) else f"{self.where}.{name}"
        return f"{name}: the per-example gradient"

    def found(self, rows):
        """Output, dx and gradients."""
        (y, cache), dy = self.forward(self.x[rows]), self.dy[rows]
        found = {f"{self.where}: the output": y}
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

    def __init__(self, loss, z, target, rng, asarray=np.asarray, tolerance=DERIVATIVE):
        where = name_of_loss(loss)
        # (losses, dz)
        self.at = lambda z, rows: [
            to_host(each) for each in loss(asarray(z), asarray(target[rows]))
        ]
        super().__init__(where, lambda z: self.at(z, slice(None)), z, rng, tolerance)
        self.arguments, self.dy, self.moved = (
            (self.x, target),
            np.ones(len(z)),
            {f"{where}: dz": self.x},
        )
        self.shapes = {f"{where}: the loss": (), f"{where}: dz": z.shape[1:]}

    def found(self, rows):
        """The losses and dz."""
        return dict(zip(self.shapes, self.at(self.x[rows], rows)))


def _array(found):
    return found.materialise() if isinstance(found, PerExampleGrad) else found


def _close(found, expected):
    """Whether all numbers agree to APART of the largest; what is not finite has to be so in
    both.
    """
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)):
        return False
    found, expected = found[finite], expected[finite]
    return _size(found - expected) <= APART * max(_size(found), _size(expected))


def direction(rng, shape):
    """Numbers of either sign, none near 0."""
    return rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)


def _per_example(array):
    """(B,) sums over everything but the examples."""
    return array.sum(axis=tuple(range(1, array.ndim)))


def _size(array):
    """The largest absolute value, 0 of nothing."""
    return float(np.abs(array).max(initial=0))
