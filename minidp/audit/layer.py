"""The library's tests of a layer and of a loss, for a class of one's own."""

import inspect
from dataclasses import dataclass

import numpy as np

from ..errors import DtypeError, ShapeError
from ..train.selfcheck import SEED, targets
from ..train.trial import THOROUGH, LayerTrial, LossTrial, host_copy

ROWS = 5


@dataclass(frozen=True)
class Report:
    """What was tried, as (name, problem) pairs; the problem is "" where the test passed. True if
    all passed.

    subject: the class, or the function that is a loss; errors: {"B1", "P1", ...: (gradient, its
    relative error)}.
    """

    rows: tuple
    subject: object
    errors: dict

    def __bool__(self):
        return not any(problem for _, problem in self.rows)

    def __repr__(self):
        return "\n".join(
            f"FAIL  {name}: {problem}" if problem else f"ok    {name}"
            for name, problem in self.rows
        )


def check_layer(layer, input_shape):
    """Test a layer for inputs of (B, *input_shape), on the host, at random numbers; returns a
    Report.

    Shapes and batches of none and of one, norms and sums of gradients, dtypes, independence of the
    examples, arguments left as they are, every gradient against differences of the output (relative
    1e-6), backward called late, errors with the layer's name. The layer is not changed.

    >>> import numpy
    >>> from minidp import nn
    >>> layer = nn.Dense(4, 3, rng=numpy.random.default_rng(0))
    >>> print(check_layer(layer, (4,)))    # doctest: +ELLIPSIS
    ok    shapes, norms and sums, of batches of 5, 1 and 0
    ok    float32 stays float32, float64 float64
    ...
    """
    shape = (input_shape,) if isinstance(input_shape, int) else tuple(input_shape)
    rng = np.random.default_rng(SEED)

    def tried(rows=ROWS, dtype="float64"):
        x = rng.uniform(-1, 1, (rows, *shape)).astype(dtype)
        return LayerTrial(host_copy(layer, dtype), x, rng, how=THOROUGH)

    def late():
        one = tried()
        cache = one.layer.forward(one.x)[1]
        first = one.layer.backward(one.dy, cache)
        one.layer.forward(one.x[:2] / 2)
        if not np.array_equal(first, one.layer.backward(one.dy, cache), equal_nan=True):
            yield (
                "backward changes after another forward: keep what it needs in the cache, not in "
                "the layer"
            )

    def refusals():
        own = tried().layer
        _, cache = own.forward(rng.uniform(-1, 1, (2, *shape)))
        wrong = [
            ("integers", DtypeError, own.forward, [np.zeros((2, *shape), int)]),
            ("dy of a wrong shape", ShapeError, own.backward, [np.zeros((2, 17, 1)), cache]),
        ]
        if own.input_shape is not None:
            more = np.zeros((2, *shape, 1))
            wrong.append(("x with an axis too many", ShapeError, own.forward, [more]))
        for what, error, call, arguments in wrong:
            got = "nothing was raised"
            try:
                call(*arguments)
            except Exception as raised:
                if isinstance(raised, error) and own.where in str(raised):
                    continue
                got = f"got {raised!r}"
            yield f"{what}: expected a {error.__name__} that names {own.where}, {got}"

    return _report(
        type(layer),
        tried,
        ("backward called late and twice", late),
        ("wrong inputs are refused by name", refusals),
    )


def check_loss(loss, classes=3, target=None):
    """Test a loss for z (B, classes) at random numbers; returns a Report.

    target: None for class labels; an array whose dtype and shape of one row the targets have; or a
    function (rng, B, classes) that draws them.

    >>> import numpy
    >>> from minidp import nn
    >>> bool(check_loss(nn.SquaredError(), classes=2, target=numpy.zeros((1, 2))))
    True
    """
    rng, like = np.random.default_rng(SEED), np.zeros(1, int) if target is None else target

    def tried(rows=ROWS, dtype="float64"):
        z = rng.uniform(-2, 2, (rows, classes)).astype(dtype)
        drawn = (
            target(rng, rows, classes) if callable(target) else targets(np.asarray(like), z, rng)
        )
        drawn = drawn.astype(dtype) if drawn.dtype.kind == "f" else drawn
        return LossTrial(loss, z, drawn, rng, how=THOROUGH)

    return _report(loss if inspect.isfunction(loss) else type(loss), tried)


def _report(subject, tried, *more):
    """The Report of tried(rows, dtype), a trial, and of more (name, function that yields
    problems).
    """
    errors = {}

    def derivatives():
        one = tried()
        yield from one.derivatives()
        errors.update(one.labelled())

    def dtypes():
        for dtype in ("float32", "float64"):
            for what, array in tried(dtype=dtype).results().items():
                if array.dtype != dtype:
                    yield f"{what} of {dtype} is {array.dtype}"

    tests = [
        (
            f"shapes, norms and sums, of batches of {ROWS}, 1 and 0",
            lambda: (fault for rows in (ROWS, 1, 0) for fault in tried(rows).forms()),
        ),
        ("float32 stays float32, float64 float64", dtypes),
        ("examples are independent, no 1/B, arguments unchanged", lambda: tried().independence()),
        ("gradients are the derivatives", derivatives),
        *more,
    ]
    report = []
    for name, test in tests:
        problems = []
        try:
            with np.errstate(all="ignore"):
                problems.extend(test())
        except Exception as error:  # a user's class may raise anything: that is what is reported
            problems.append(f"{type(error).__name__}: {error}")
        report.append((name, "; ".join(problems)))
    return Report(tuple(report), subject, errors)
