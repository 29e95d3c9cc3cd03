"""The library's tests of a layer and of a loss, for a class of one's own."""

import inspect
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np

from ..errors import DtypeError, ShapeError
from ..train.selfcheck import SEED, targets
from ..train.trial import THOROUGH, LayerTrial, LossTrial, host_copy
from .card import card_of_class
from .checks import WORDS, printed
from .checks.layers_and_losses import card_of, printed_gradient
from .layer_case import case_of
from .notation import names_in, parse

ROWS = 5
PRINTED_ERROR = 1e-9  # of an equation beside the code, both in float64


@dataclass(frozen=True)
class Report:
    """What was tried, as (name, problem) pairs; the problem is "" where the test passed. True if
    all passed.

    subject: the class, or the function that is a loss; errors: {"B1", "P1", ...: (gradient, its
    relative error)}; note: what was not tried, and why.
    """

    rows: tuple
    subject: object
    errors: dict
    note: str = ""

    def __bool__(self):
        return not any(problem for _, problem in self.rows)

    def __repr__(self):
        lines = [
            f"FAIL  {name}: {problem}" if problem else f"ok    {name}"
            for name, problem in self.rows
        ]
        return "\n".join([*lines, f"note  {self.note}"] if self.note else lines)


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
            ("dy of a wrong shape", ShapeError, own.backward, [np.zeros((2, 17, 1)), cache]),
        ]
        if not own.takes_ids:
            wrong.append(("integers", DtypeError, own.forward, [np.zeros((2, *shape), int)]))
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

    texts, unread, notes = _texts(type(layer))
    outputs = ["y", "dx", *(f"d{name}" for name in layer.params)]

    def printed_equations():
        case = case_of(tried(2))
        yield from unread
        for label, text in texts.items():
            names = _computed(text)
            others = (each for other, each in texts.items() if other != label)
            used = {name for each in others for part in parse(each) for name in _bases(part)}
            if {"", *case.given}.intersection(names):
                error = partial(printed, texts, label, case)
                yield from _faults(label, text, error, "differs from the code")
            elif names[0][0] == "d" and names[0][1:] in case.given:
                notes.append(f"[{label}] is not measured: this layer trains no {names[0][1:]}")
            elif not used.intersection(names):
                given = ", ".join(outputs)
                yield f"[{label}] {text}: compared with nothing; the code gives {given}"

    def printed_gradients():
        case = case_of(tried(1), computed=False)
        labels = [label for label, text in texts.items() if _computed(text)[0] in outputs[1:]]
        if not labels:
            yield f"no label is an equation of {', '.join(outputs[1:])}"
        for label in labels:
            error = partial(printed_gradient, texts, label, case, rng)
            what = "is not the derivative of the printed output"
            yield from _faults(label, texts[label], error, what)

    tests = [
        ("backward called late and twice", late),
        ("wrong inputs are refused by name", refusals),
    ]
    if texts or unread:
        tests.append(("the card's equations equal the code", printed_equations))
    if any(label[0] in "BP" for label in texts):
        tests.append(("the card's gradients are derivatives of its output", printed_gradients))
    return _report(type(layer), tried, *tests, notes=notes)


def _texts(cls):
    """({label: equation} of the card of a class, what is wrong with those that cannot be read, [why
    others are not evaluated]).
    """
    texts, unread, notes = {}, [], []
    try:
        card = card_of_class(cls)[0]
    except (OSError, TypeError, SyntaxError):
        notes.append(f"the source of {cls.__name__} is not known, so no card was read")
        return texts, unread, notes
    if card is None:
        notes.append(
            f"{cls.__name__} has no card: with labelled equations in its docstring, such as [F1] "
            "y_bi = x_bi w_i under Forward, they are compared with the code too"
        )
    elif find_spec("lark") is None:
        notes.append("the card's equations are compared too after pip install 'minidp[audit]'")
        card = None
    for label, text in card.labels.items() if card else ():
        if text.startswith("in words:") or (card_of(cls), label) in WORDS:
            notes.append(f"[{label}] is in words: not evaluated")
            continue
        try:
            parse(text)
            texts[label] = text
        except ValueError as error:
            unread.append(f"[{label}] {text}: {error}")
    return texts, unread, notes


def _computed(text):
    """The names on the left sides of an equation's parts, "" for more than a name."""
    lefts = [part.children[0] for part in parse(text)]
    return [_bases(left)[0] if left.data == "name" else "" for left in lefts]


def _bases(tree):
    """The names in a tree, without their indices."""
    return [name.partition("_")[0] for name in names_in(tree)]


def _faults(label, text, measure, what):
    """What is wrong with an equation, if measure() raises or gives too large an error."""
    try:
        error = measure()
        problem = "" if error <= PRINTED_ERROR else f"{what} (relative error {error:.2g})"
    except (NameError, ValueError, IndexError) as raised:
        problem = str(raised)
    if problem:
        yield f"[{label}] {text}: {problem}"


def check_loss(loss, classes=3, target=None):
    """Test a loss for z (B, classes) at random numbers; returns a Report.

    classes: an integer, or the shape of one example's z, as (T, K) of a loss over positions.
    target: None for class labels; an array whose dtype and shape of one row the targets have; or a
    function (rng, B, shape of one example's z) that draws them.

    >>> import numpy
    >>> from minidp import nn
    >>> bool(check_loss(nn.SquaredError(), classes=2, target=numpy.zeros((1, 2))))
    True
    """
    shape = (classes,) if isinstance(classes, int) else tuple(classes)
    rng, like = np.random.default_rng(SEED), np.zeros(1, int) if target is None else target

    def tried(rows=ROWS, dtype="float64"):
        z = rng.uniform(-2, 2, (rows, *shape)).astype(dtype)
        drawn = target(rng, rows, shape) if callable(target) else targets(np.asarray(like), z, rng)
        drawn = drawn.astype(dtype) if drawn.dtype.kind == "f" else drawn
        return LossTrial(loss, z, drawn, rng, how=THOROUGH)

    return _report(loss if inspect.isfunction(loss) else type(loss), tried)


def _report(subject, tried, *more, notes=()):
    """The Report of tried(rows, dtype), a trial, and of more (name, function that yields
    problems); notes: to which these may add.
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
    return Report(tuple(report), subject, errors, "; ".join(notes))
