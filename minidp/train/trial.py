"""Try a network and a loss on a few random rows before anything is charged.

The guarantee rests on what no type can say: each example's output, loss and gradient depend on that example alone, and
nothing is divided by the number of examples. The rows are public: they come from a fixed seed, never from the data.
The trial works on a copy of the network, on the host in float64; a loss is tried on the network's own device.
`audit.check_layer` and `audit.check_loss` run the same functions on a class by itself.

Each function yields the faults that it finds, in words. Gradients are compared with central differences, example by
example; an example passes if one direction and one step agree, so that a kink on the way does not matter.
"""
import copy

import numpy as np

from ..backend import namespace_of, to_host
from ..errors import TrialError
from ..grads import PerExampleGrad
from ..nn.network import Sequential

ROWS = 2
SEED = 20161024
JITTER = 0.1                # moves inputs away from the ties and kinks that exact zeros sit on
STEPS = (1e-8, 1e-5, 1e-2)  # of differences: small beside the distance to kinks; large for what is float32 inside
DIRECTIONS = 2
KNOWN = ("minidp.grads", "minidp.nn.conv")  # their classes' norms and sums are measured by the audit
APART, DERIVATIVE = 1e-6, 1e-3      # largest relative differences that pass for rounding


def check(network, loss, y):
    """Raise TrialError, which names the layer or the loss and what is wrong with it, unless the trial succeeds.

    y: the targets of training, (N, ...); the trial reads their dtype and the shape of one only.
    """
    rng, tried = np.random.default_rng(SEED), host_copy(network)
    with np.errstate(all="ignore"):
        for fault in _faults(tried, loss, y, rng, namespace_of(*network.params.values()).asarray):
            raise TrialError(f"{fault}. Nothing was charged; minidp.audit.check_layer and check_loss list every test")


def _faults(network, loss, y, rng, asarray):
    """Layer by layer, so that a fault has a name; a network of another kind as a whole."""
    z, below = rng.uniform(-1, 1, (ROWS, *network.input_shape)), False  # below: whether a layer below it is trained
    plain = isinstance(network, Sequential) and type(network).forward is Sequential.forward
    trained = {name for name, _ in network.params}
    for part in network.layers if plain else [network]:
        where, own = (part.where, part.name in trained) if plain else ("network", True)
        tried = LayerTrial(part, where, z, rng, own, below, jitter=plain and part is not network.layers[0])
        yield from tried.faults()
        z, below = tried.y, below or own
    yield from LossTrial(loss, z, targets(y, z, rng), rng, asarray).faults()


def host_copy(network, dtype="float64"):
    """A copy of a network or a layer whose arrays are on the host, floating point in `dtype`."""
    found = {}
    _collect(network, found, set())
    memo = {id(array): _moved(array, dtype) for array in found.values()}
    try:
        return copy.deepcopy(network, memo)
    except (TypeError, copy.Error, RecursionError) as error:
        raise TrialError(f"the network cannot be copied to be tried ({error}); give its layers __deepcopy__") from error


def _collect(value, arrays, seen):
    """Find the arrays of a network: in its layers, their attributes, and lists and dictionaries among these."""
    if id(value) in seen or isinstance(value, (type, np.generic)):
        return
    seen.add(id(value))
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        arrays[id(value)] = value
        return
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    for each in vars(value).values() if hasattr(value, "params") else inner:
        _collect(each, arrays, seen)


def _moved(array, dtype):
    host = to_host(array)
    return np.array(host, dtype=dtype if host.dtype.kind == "f" else host.dtype)


def usable(forward, x, jitter, rng):
    """(x, forward(x)) for an x, moved a little if `jitter`, at which the first result is finite, if there is one."""
    candidates = (x + rng.uniform(-JITTER, JITTER, x.shape), x) if jitter else (x, abs(x))
    for at in candidates:
        found = tuple(forward(at.copy()))
        if np.isfinite(found[0]).all():
            break
    return at, found


def targets(y, z, rng):
    """Random targets for z (B, K), with the dtype of y and the shape of its rows: classes, or numbers in (0, 1)."""
    shape, kind = (len(z), *y.shape[1:]), y.dtype.kind
    if kind == "f":
        return rng.uniform(0, 1, shape).astype(y.dtype.name)
    classes = max(z.shape[-1], 2) if len(shape) == 1 and kind in "iu" else 2
    return rng.integers(0, classes, shape).astype(y.dtype.name) if kind in "iub" else np.zeros(shape, y.dtype)


class LayerTrial:
    """Faults of a layer, or of a whole network, at rows x: of its gradients if `trained`, of its dx if `below`."""

    def __init__(self, layer, where, x, rng, trained=True, below=True, jitter=True, tolerance=DERIVATIVE,
                 thorough=False):
        """thorough: measure the forms of the library's own gradient classes too, which the audit does once for all."""
        self.layer, self.where, self.rng, self.tolerance, self.thorough = layer, where, rng, tolerance, thorough
        self.trained, self.below = trained, below
        self.x, (self.y, self.cache) = usable(layer.forward, x, jitter, rng)
        self.dy = rng.uniform(0.5, 1.5, self.y.shape) * rng.choice([-1.0, 1.0], self.y.shape)
        self.grads = layer.param_grads(self.dy, self.cache) if trained else {}

    def faults(self):
        """All of them, but none that only follows from another."""
        return list(self.forms()) or list(self.independence()) or list(self.derivatives())

    def forms(self):
        """The gradients as such: of which parameters, their shapes, and that their forms agree."""
        params = self.layer.params if self.trained else {}
        if set(self.grads) != set(params):
            yield f"{self.where}: expected gradients of the parameters {sorted(params)}, got {sorted(self.grads)}"
            return
        for name, grad in self.grads.items():
            known = type(grad).__module__ in KNOWN and not self.thorough
            yield from _grad_faults(self._called(name), grad, (len(self.x), *params[name].shape), self.rng, known)

    def independence(self):
        """Every result of an example, by itself and among others; and arguments that are changed in place."""
        x, dy, whole = self.x.copy(), self.dy.copy(), self._results(self.y, self.cache, self.dy, self.grads)
        alone = [self._alone(slice(b, b + 1)) for b in range(len(x))]
        if not (np.array_equal(x, self.x, equal_nan=True) and np.array_equal(dy, self.dy)):
            yield f"{self.where}: forward or backward changes x or dy in place, which others still need; work on a copy"
            return
        for what, together in whole.items():
            yield from apart(what, together, [row[what] for row in alone])

    def derivatives(self):
        """dx and the per-example gradients against differences of the output."""
        if getattr(self.layer, "surrogate", False):
            return
        gradients = {f"{self.where}: dx": (self.x, self.layer.backward(self.dy, self.cache))} if self.below else {}
        for name, grad in self.grads.items():
            what = f"{self._called(name)}: the per-example gradient"
            gradients[what] = self.layer.params[name], grad.materialise()
        for what, (array, gradient) in gradients.items():
            forward = lambda: self.layer.forward(self.x)[0]
            yield from derivative(what, forward, array, self.y, self.dy, gradient, self.rng, self.tolerance)

    def _called(self, name):
        return ".".join(name) if isinstance(name, tuple) else f"{self.where}.{name}"

    def _alone(self, rows):
        (y, cache), dy = self.layer.forward(self.x[rows]), self.dy[rows]
        return self._results(y, cache, dy, self.layer.param_grads(dy, cache) if self.trained else {})

    def _results(self, y, cache, dy, grads):
        dx = {f"{self.where}: dx": self.layer.backward(dy, cache)} if self.below else {}
        return {f"{self.where}: the output": y, **dx,
                **{f"{self._called(name)}: the gradient": grad.materialise() for name, grad in grads.items()}}


def _grad_faults(where, grad, shape, rng, known):
    if not isinstance(grad, PerExampleGrad):
        yield (f"{where}: expected one gradient per example (a PerExampleGrad such as grads.Explicit), got "
               f"{type(grad).__name__}: a sum over examples cannot be clipped per example")
        return
    g = grad.materialise()
    if (grad.n_examples, *grad.shape) != shape or g.shape != shape:
        yield f"{where}: expected gradients of shape {shape}, examples first, got {tuple(g.shape)}"
    if known or g.shape != shape:
        return
    weights, norms = rng.uniform(0.5, 1, shape[0]), per_example(g * g)
    for strategy in ("explicit", "factored"):
        form = grad.form(strategy)
        for what, found, expected in (("squared norms", form.sq_norms(), norms),
                                      ("squared norms, rounded up,", form.sq_norms_upper(), norms),
                                      ("weighted sum", form.weighted_sum(weights), np.tensordot(weights, g, 1))):
            if found.shape != expected.shape:
                yield f"{where}: expected {what} of shape {expected.shape}, got {found.shape}"
            elif not close(found, expected, APART):
                yield (f"{where}: {what} of the {strategy} form: off by {size(found - expected):.2g} of "
                       f"{size(expected):.2g} from what the materialised gradients give")


class LossTrial:
    """Faults of a loss near z (B, K), for targets (B, ...)."""

    def __init__(self, loss, z, target, rng, asarray=np.asarray, tolerance=DERIVATIVE):
        self.where = f"loss {getattr(loss, '__name__', type(loss).__name__)}"
        self.loss, self.target, self.rng, self.asarray, self.tolerance = loss, target, rng, asarray, tolerance
        self.z, (self.losses, self.dz) = usable(self.at, z, True, rng)

    def at(self, z, rows=slice(None)):
        """(losses, dz) of some of the rows, on the host."""
        return [to_host(found) for found in self.loss(self.asarray(z[rows]), self.asarray(self.target[rows]))]

    def faults(self):
        """All of them, but none that only follows from another."""
        return list(self.independence()) or list(self.derivatives())

    def independence(self):
        """Shapes, a 1/B, and examples that mix."""
        size_, shape = len(self.z), self.z.shape
        if self.losses.shape != (size_,) or self.dz.shape != shape:
            yield (f"{self.where}: expected one loss per example, of shape {(size_,)}, and dz of shape {shape}, got "
                   f"{self.losses.shape} and {self.dz.shape}; nothing sums or averages over examples")
            return
        alone = [self.at(self.z, slice(b, b + 1)) for b in range(size_)]
        for name, together, rows in (("dz", self.dz, [row[1] for row in alone]),
                                     ("the loss", self.losses, [row[0] for row in alone])):
            by_itself = np.concatenate(rows)
            if not close(together, by_itself, APART) and close(together * size_, by_itself, APART):
                yield (f"{self.where}: {name} shrinks with the batch size: {size(together[0]):.3g} for example 0 among "
                       f"{size_}, {size(by_itself[0]):.3g} by itself. It carries a 1/B; leave it out, the trainer "
                       "divides by the expected lot size")
                return
            yield from apart(f"{self.where}: {name}", together, rows)

    def derivatives(self):
        """dz against differences of the losses."""
        if not getattr(self.loss, "surrogate", False):
            yield from derivative(f"{self.where}: dz", lambda: self.at(self.z)[0], self.z, self.losses,
                                  np.ones(len(self.z)), self.dz, self.rng, self.tolerance)


def apart(what, together, alone):
    """A fault if an example's part of `together` (B, ...) is not what it is `alone`, a list of (1, ...)."""
    for b, row in enumerate(alone):
        if row.shape[1:] != together.shape[1:]:
            yield f"{what} of one example has the shape {row.shape[1:]} by itself and {together.shape[1:]} among others"
            return
    by_itself = np.concatenate(alone)
    if not close(together, by_itself, APART):
        off = np.abs(together - by_itself).reshape(len(alone), by_itself[0].size).max(axis=1)
        b = int(off.argmax())
        yield (f"{what} of example {b} changes with the other examples of the batch (by {off[b]:.2g}, "
               f"of {size(by_itself[b]):.2g}); each example has to be computed by itself")


def derivative(what, forward, array, y, dy, gradients, rng, tolerance):
    """A fault if `gradients` (B, *shape) do not differentiate sum y dy (B,), y = forward(), by `array`.

    The array, (*shape) or (B, *shape), is moved in place, and put back. Examples whose y is not finite are left out.
    """
    kept, norms, floor = array.copy(), np.sqrt(per_example(gradients**2)), 1e-5 * np.abs(per_example(y * dy))
    error, found = np.where(np.isfinite(floor), np.inf, 0.0), np.zeros((2, len(dy)))
    for step in (step for step in STEPS for _ in range(DIRECTIONS)):
        v = rng.uniform(0.5, 1.5, array.shape) * rng.choice([-1.0, 1.0], array.shape)
        array[...] = kept + step * v
        ahead = forward() + 0  # a copy: a layer may return a view of x
        array[...] = kept - step * v
        slopes, expected = per_example((ahead - forward()) * dy) / (2 * step), per_example(gradients * v)
        array[...] = kept
        scale = np.maximum.reduce([np.abs(slopes), np.abs(expected), norms, floor])
        now = np.abs(slopes - expected) / np.where(scale > 0, scale, 1)
        found, error = np.where(now < error, (slopes, expected), found), np.fmin(error, now)
        if not (error > tolerance).any():
            return
    b = int(error.argmax())
    yield (f"{what} is not the derivative of the forward pass: along a random direction example {b} moves by "
           f"{found[0, b]:.6g}, its gradient says {found[1, b]:.6g} (relative error {error[b]:.2g}); if that is meant, "
           "set surrogate = True on the class")


def close(found, expected, tolerance):
    """Whether all numbers agree to `tolerance` of the largest; what is not finite has to be so in both."""
    if found.size == 0 or (np.isfinite(found).all() and np.isfinite(expected).all()):
        return size(found - expected) <= tolerance * max(size(found), size(expected))
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)):
        return False
    return close(found[finite], expected[finite], tolerance)


def per_example(array):
    """(B,) sums over everything but the examples."""
    return array.sum(axis=tuple(range(1, array.ndim)))


def size(array):
    """The largest absolute value, 0 of nothing."""
    return float(np.abs(array).max(initial=0))
