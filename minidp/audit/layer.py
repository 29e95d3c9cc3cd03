"""The library's tests of a layer and of a loss, for a class of one's own."""
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import DtypeError, ShapeError
from ..train import trial

ROWS = 5
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Report:
    """What was tried, as (name, problem) pairs; the problem is "" where the test passed. True if all passed."""

    rows: tuple

    def __bool__(self):
        return not self.problems

    def __str__(self):
        return "\n".join(f"FAIL  {name}: {problem}" if problem else f"ok    {name}" for name, problem in self.rows)

    __repr__ = __str__

    @property
    def problems(self):
        """The problems alone."""
        return [problem for _, problem in self.rows if problem]


def check_layer(layer, input_shape):
    """Test a layer for inputs of (B, *input_shape), on the host, at random numbers; returns a Report.

    Shapes, batches of none and of one, dtypes, arguments left as they are, backward called late, errors with the
    layer's name, independence of the examples, and every gradient against differences of the output (relative 1e-6).
    The layer is not changed.

    >>> import numpy
    >>> from minidp import nn
    >>> print(check_layer(nn.Dense(4, 3, rng=numpy.random.default_rng(0)), (4,)))    # doctest: +ELLIPSIS
    ok    shapes of y and dx
    ok    batches of 0 and 1
    ...
    """
    shape = (input_shape,) if isinstance(input_shape, int) else tuple(input_shape)
    tests = _LayerTests(trial.host_copy(layer), trial.host_copy(layer, "float32"), shape)
    found = [("shapes of y and dx", tests.shapes), ("batches of 0 and 1", tests.small_batches),
             ("float32 stays float32, float64 float64", tests.dtypes), ("backward called late and twice", tests.late),
             ("wrong inputs are refused by name", tests.refusals), ("the gradients' norms and sums", tests.forms),
             ("examples are independent, arguments unchanged", tests.independence), ("gradients", tests.derivatives)]
    return _report(found)


def check_loss(loss, classes=3, target=None):
    """Test a loss for z (B, classes) at random numbers; returns a Report.

    target: None for class labels; an array whose dtype and shape of one row the targets have; or a function
    (rng, B, classes) that draws them.

    >>> import numpy
    >>> from minidp import nn
    >>> bool(check_loss(nn.SquaredError(), classes=2, target=numpy.zeros((1, 2))))
    True
    """
    rng = np.random.default_rng(trial.SEED)
    template = np.zeros(1, int) if target is None else target

    def draw(rows):
        z = rng.uniform(-2, 2, (rows, classes))
        return z, target(rng, rows, classes) if callable(target) else trial.targets(np.asarray(template), z, rng)

    def small_batches():
        for rows in (0, 1):
            z, t = draw(rows)
            losses, dz = loss(z, t)
            if losses.shape != (rows,) or dz.shape != z.shape:
                yield f"of {rows}: expected shapes {(rows,)} and {z.shape}, got {losses.shape} and {dz.shape}"

    def dtypes():
        for dtype in ("float32", "float64"):
            z, t = draw(ROWS)
            found = {each.dtype.name for each in loss(z.astype(dtype), t.astype(dtype) if t.dtype.kind == "f" else t)}
            if found != {dtype}:
                yield f"{dtype} gives {', '.join(sorted(found))}"

    def unchanged():
        z, t = draw(ROWS)
        kept = z.copy(), t.copy()
        loss(z, t)
        if not (np.array_equal(z, kept[0]) and np.array_equal(t, kept[1])):
            yield "z or the target is changed in place"

    tried = lambda: trial.LossTrial(loss, *draw(ROWS), rng, tolerance=TOLERANCE)
    return _report([("batches of 0 and 1", small_batches), ("float32 stays float32, float64 float64", dtypes),
                    ("arguments unchanged", unchanged),
                    ("one loss per example, no 1/B, examples are independent", lambda: tried().independence()),
                    ("dz", lambda: tried().derivatives())])


def _report(tests):
    rows = []
    for name, test in tests:
        try:
            with np.errstate(all="ignore"):
                problem = "; ".join(test())
        except Exception as error:  # a user's class may raise anything: that is what is reported
            problem = f"{type(error).__name__}: {error}"
        rows.append((name, problem))
    return Report(tuple(rows))


class _LayerTests:
    """Each method yields the problems of one test."""

    def __init__(self, layer, layer32, shape):
        self.layer, self.layer32, self.shape, self.rng = layer, layer32, shape, np.random.default_rng(trial.SEED)

    @cached_property
    def tried(self):
        where, x = self.layer.where, self.x(ROWS)
        return trial.LayerTrial(self.layer, where, x, self.rng, tolerance=TOLERANCE, thorough=True)

    def x(self, rows):
        return self.rng.uniform(-1, 1, (rows, *self.shape))

    def independence(self):
        return self.tried.independence()

    def derivatives(self):
        return self.tried.derivatives()

    def forms(self):
        return self.tried.forms()

    def shapes(self):
        wanted, y = self.layer.output_shape(self.shape), self.tried.y
        dx = self.layer.backward(self.tried.dy, self.tried.cache)
        if y.shape != (ROWS, *wanted):
            yield f"output_shape says {tuple(wanted)} of an example, forward gives {y.shape[1:]}"
        if dx.shape != self.tried.x.shape:
            yield f"expected dx of shape {self.tried.x.shape}, got {dx.shape}"

    def small_batches(self):
        for rows in (0, 1):
            x = self.x(rows)
            y, cache = self.layer.forward(x)
            found = {"y": y.shape, "dx": self.layer.backward(y.copy(), cache).shape}
            expected = {"y": (rows, *self.layer.output_shape(self.shape)), "dx": x.shape}
            for name, grad in self.layer.param_grads(y.copy(), cache).items():
                found[name], expected[name] = grad.sq_norms().shape, (rows,)
                found[f"sum of {name}"] = grad.weighted_sum(np.ones(rows)).shape
                expected[f"sum of {name}"] = self.layer.params[name].shape
            for name in found:
                if found[name] != expected[name]:
                    yield f"of {rows}: expected {name} of shape {expected[name]}, got {found[name]}"

    def dtypes(self):
        for layer, dtype in ((self.layer32, "float32"), (self.layer, "float64")):
            y, cache = layer.forward(self.x(ROWS).astype(dtype))
            dy = y.copy()
            found = {"y": y, "dx": layer.backward(dy, cache),
                     **{name: grad.sq_norms() for name, grad in layer.param_grads(dy, cache).items()}}
            for name, array in found.items():
                if array.dtype.name != dtype:
                    yield f"{name} of {dtype} is {array.dtype}"

    def late(self):
        first = self.layer.backward(self.tried.dy, self.tried.cache)
        self.layer.forward(self.x(2))
        if not np.array_equal(first, self.layer.backward(self.tried.dy, self.tried.cache), equal_nan=True):
            yield "backward changes after another forward: keep what it needs in the cache, not in the layer"

    def refusals(self):
        layer, cache = self.layer, self.tried.cache
        wrong = [(DtypeError, lambda: layer.forward(np.zeros((2, *self.shape), int)), "integers"),
                 (ShapeError, lambda: layer.backward(np.zeros((2, 17, 1)), cache), "dy of a wrong shape")]
        if self.layer.input_shape is not None:
            wrong.append((ShapeError, lambda: layer.forward(self.x(2)[..., None]), "x with an axis too many"))
        for error, call, what in wrong:
            try:
                call()
            except error as raised:
                if self.layer.where not in str(raised):
                    yield f"{what}: the {error.__name__} does not name {self.layer.where}"
            except Exception as raised:
                yield f"{what}: expected a {error.__name__}, got {type(raised).__name__}: {raised}"
            else:
                yield f"{what}: expected a {error.__name__}, nothing was raised"
