"""The library's tests of a layer and of a loss, for your own classes."""

from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np

from ..errors import DtypeError, ParameterError, ShapeError
from ..nn.layer import check_written
from ..train.crowd import spread
from ..train.selfcheck import SEED
from ..train.tried import targets
from .card import card_of_class
from .checks import WORDS, printed
from .checks.layers_and_losses import printed_gradient
from .differences import QUICK
from .layer_case import case_of
from .layer_rows import NO_CLASS, LayerRows, LossRows, both_signs
from .layer_rows import ROWS as MANY
from .names import card_of
from .notation import names_in, parse
from .trial import THOROUGH, LayerTrial, LossTrial, raised

ROWS, SPREAD = 5, 20
WIDE = THOROUGH._replace(tolerance=1e-5)  # of rows of many sizes
MOSTLY = 0.5  # of the outputs
LOUD = 100  # times the usual gradient of an output
PRINTED_ERROR = 1e-9  # of an equation beside the code, both in float64


@dataclass(frozen=True)
class Report:
    """The tests as (name, problem) pairs; the problem is "" if the test passed. The report is true
    if all passed.

    note: tests that were not made, and why; undecided: a question that was not decided, and what to
    do.
    """

    rows: tuple
    note: str = ""
    undecided: str = ""

    @property
    def passed(self) -> bool | None:
        """False if a test failed; None if no test failed but something was not decided; otherwise
        True.
        """
        if any(problem for _, problem in self.rows):
            return False
        return None if self.undecided else True

    def __bool__(self):
        if self.passed is None:
            raise ParameterError(
                f"{self.undecided}; the report is neither true nor false: ask for .passed"
            )
        return self.passed

    def __repr__(self):
        lines = [
            f"FAIL  {name}: {problem}" if problem else f"ok    {name}"
            for name, problem in self.rows
        ]
        lines += [f"not decided  {self.undecided}"] if self.undecided else []
        return "\n".join([*lines, f"note  {self.note}"] if self.note else lines)


def check_layer(layer, input_shape):
    """Test a layer for inputs of (B, *input_shape), on the host, at random numbers; returns a
    Report.

    It tests shapes, empty batches and batches of one, norms and sums of gradients, dtypes,
    independence of the examples, unchanged arguments, every gradient against differences of the
    output (relative 1e-6), a late call of backward, and errors with the layer's name. The layer is
    not changed. Raises ParameterError for a layer that is not written as `nn.Layer` says.

    >>> import numpy
    >>> from minidp import nn
    >>> layer = nn.Dense(4, 3, rng=numpy.random.default_rng(0))
    >>> print(check_layer(layer, (4,)))    # doctest: +ELLIPSIS
    ok    shapes, norms and sums, of batches of 5, 1 and 0
    ok    float32 stays float32, float64 float64
    ...
    """
    check_written(layer)
    shape = (input_shape,) if isinstance(input_shape, int) else tuple(input_shape)
    return _LayerTests(layer, shape).report()


def check_loss(loss, classes=3, target=None):
    """Test a loss for z (B, classes) at random numbers; returns a Report.

    classes: an integer, or the shape of one example's z, as (T, K) of a loss over positions.
    target: None for class labels (B,), 0 to K - 1, and -1 for no class; an array whose dtype and
    shape of one row the targets have, such as np.zeros((1, T), int) for z (B, T, K); or a function
    (rng, B, shape of one example's z) that draws them.

    >>> import numpy
    >>> from minidp import nn
    >>> bool(check_loss(nn.SquaredError(), classes=2, target=numpy.zeros((1, 2))))
    True
    """
    shape = (classes,) if isinstance(classes, int) else tuple(classes)
    return _LossTests(loss, shape, np.zeros(1, int) if target is None else target).report()


class _Tests:
    """The tests of a layer or a loss, each of which yields problems.

    A subclass gives `trial(rows, dtype)`, a new one at random numbers from `rng`, and may add tests
    to `tests` and sentences to `notes`.
    """

    def __init__(self):
        self.rng = np.random.default_rng(SEED)
        self.notes, self.undecided = [], ""
        self.tests = {
            f"shapes, norms and sums, of batches of {ROWS}, 1 and 0": self.forms,
            "float32 stays float32, float64 float64": self.dtypes,
            "examples are independent, no 1/B, arguments unchanged": self.independence,
            "gradients are the derivatives": self.derivatives,
            f"{MANY} rows of sizes 1e-3 to 1e3, with zeros, ties and NaN, in batches of several "
            "sizes: each row in float32 gives what it gives alone in float64": self.many,
        }

    def forms(self):
        for rows in (ROWS, 1, 0):
            yield from self.trial(rows).forms()

    def dtypes(self):
        for dtype in ("float32", "float64"):
            for what, array in self.trial(dtype=dtype).results().items():
                if array.dtype != dtype:
                    yield f"{what} of {dtype} is {array.dtype}"

    def independence(self):
        for trial in self.both():
            yield from trial.independence()

    def derivatives(self):
        for trial in self.both():
            yield from self.derived(trial)
            if trial.y.size and not np.isfinite(trial.y).any():
                self.undecided = (
                    "no output is finite at the numbers tried, so no gradient was compared: give "
                    "inputs or targets that the formulas take"
                )

    def many(self):
        digits = not _single(self.trial())  # else differences of large rows have none
        yield from self.rows().problems(digits)
        for trial in self.spread() if digits else ():
            yield from trial.derivatives()

    def derived(self, trial):
        """Problems of the derivatives, with a larger tolerance if a layer rounds to float32."""
        problems = list(trial.derivatives())
        if problems and _single(trial):
            trial.how = QUICK
            problems = list(trial.derivatives())
            self.notes.append("computed in float32: derivatives are compared to 1e-3")
        return problems

    def both(self):
        """Trials in training and in evaluation; for a loss the two are the same."""
        yield self.trial()

    def report(self):
        rows, said = [], set()
        for name, test in self.tests.items():
            problems = []
            try:
                with np.errstate(all="ignore"):
                    problems.extend(test())
            except Exception as error:  # report whatever a user's class raises
                problems.append(raised(error))
            text = "; ".join(problems)
            rows.append((name, "as above" if text and text in said else text))
            said.add(text)
        notes = "; ".join(dict.fromkeys(self.notes))
        return Report(tuple(rows), notes, self.undecided)


class _LossTests(_Tests):
    def __init__(self, loss, shape, target):
        super().__init__()
        self.loss, self.shape, self.target = loss, shape, target

    def trial(self, rows=ROWS, dtype="float64"):
        return self.at(self.rng.uniform(-2, 2, (rows, *self.shape)).astype(dtype))

    def at(self, z):
        drawn = self.targets(z)
        drawn = drawn.astype(z.dtype) if drawn.dtype.kind == "f" else drawn
        return LossTrial(self.loss, z, drawn, self.rng, how=THOROUGH)

    def targets(self, z):
        if callable(self.target):
            return self.target(self.rng, len(z), self.shape)
        return targets(np.asarray(self.target), z, self.rng)

    def rows(self):
        return LossRows(self.loss, self.shape, self.rng, self.targets)

    def spread(self):
        trial = self.at(spread(self.rng, (SPREAD, *self.shape)))
        if trial.target.dtype.kind == "i":
            trial.target[::NO_CLASS] = -1
            trial.y = trial.forward(trial.x)
        trial.how = WIDE
        yield trial


class _LayerTests(_Tests):
    """texts: {label: equation} of the layer's card; unread: messages on equations that cannot be
    read.
    """

    def __init__(self, layer, shape):
        super().__init__()
        self.layer, self.shape = layer, shape
        self.outputs = ["y", "dx", *(f"d{name}" for name in layer.params)]
        self.texts, self.unread = {}, []
        self.read_card()
        self.look_at_attributes()
        self.tests["backward called late and twice"] = self.late
        self.tests["wrong inputs are refused by name"] = self.refusals
        if self.texts or self.unread:
            self.tests["the card's equations equal the code"] = self.printed_equations
        if any(label[0] in "BP" for label in self.texts):
            name = "the card's gradients are derivatives of its output"
            self.tests[name] = self.printed_gradients

    def both(self):
        yield self.trial(training=True)
        yield self.trial()

    def trial(self, rows=ROWS, dtype="float64", training=False):
        x = self.rng.uniform(-1, 1, (rows, *self.shape)).astype(dtype)
        # at 0 or 1, where a parameter may begin, a gradient may lack it
        layer = both_signs(self.layer)[dtype]
        return LayerTrial(layer, x, self.rng, how=THOROUGH, training=training)

    def rows(self):
        return LayerRows(self.layer, self.shape, self.rng)

    def spread(self):
        for first in (1, -1):
            layer = both_signs(self.layer, first)["float64"]
            x = spread(self.rng, (SPREAD, *self.shape))
            for below in (True, False):
                trial = LayerTrial(layer, x, self.rng, below=below, how=WIDE)
                trial.dy *= LOUD
                yield trial

    def look_at_attributes(self):
        """Add notes on arrays and settings that a model file with this layer would lack."""
        kept = self.layer.params, self.layer.constants
        held = {id(array) for arrays in kept for array in arrays.values()}
        for name, value in vars(self.layer).items():
            if isinstance(getattr(value, "shape", None), tuple) and id(value) not in held:
                self.notes.append(
                    f"the array {name} is neither in params, which are trained, nor in constants: "
                    "a model file will not hold it"
                )
        try:
            self.layer.settings()
        except ParameterError as error:
            self.notes.append(f"a model file cannot hold this layer: {error}; or write settings()")

    def read_card(self):
        """Set texts and unread, and add notes on equations that are not evaluated."""
        cls = type(self.layer)
        try:
            card = card_of_class(cls)[0]
        except (OSError, TypeError, SyntaxError):
            self.notes.append(f"the source of {cls.__name__} is not known, so no card was read")
            return
        if card is None:
            self.notes.append(
                f"{cls.__name__} has no card: with labelled equations in its docstring, such as "
                "[F1] y_bi = x_bi w_i under Forward, they are compared with the code too"
            )
            return
        if find_spec("lark") is None:
            self.notes.append(
                "the card's equations are compared too after pip install 'minidp[audit]'"
            )
            return
        if sum(label[0] == "P" for label in card.labels) < len(self.layer.params):
            self.notes.append(
                "the card has fewer gradients [P1], [P2], ... than there are parameters"
            )
        for label, text in card.labels.items():
            if text.startswith("in words:") or (card_of(cls), label) in WORDS:
                self.notes.append(f"[{label}] is in words: not evaluated")
                continue
            try:
                parse(text)
                self.texts[label] = text
            except ValueError as error:
                self.unread.append(f"[{label}] {text}: {error}")

    def late(self):
        one = self.trial()
        cache = one.layer.forward(one.x)[1]
        first = one.layer.backward(one.dy, cache)
        one.layer.forward(one.x[:2] / 2)
        if not np.array_equal(first, one.layer.backward(one.dy, cache), equal_nan=True):
            yield (
                "backward changes after another forward: keep what it needs in the cache, not in "
                "the layer"
            )

    def refusals(self):
        layer = self.trial().layer
        _, cache = layer.forward(self.rng.uniform(-1, 1, (2, *self.shape)))
        wrong = [
            ("dy of a wrong shape", ShapeError, layer.backward, [np.zeros((2, 17, 1)), cache]),
        ]
        if not layer.takes_ids:
            integers = np.zeros((2, *self.shape), int)
            wrong.append(("integers", DtypeError, layer.forward, [integers]))
        if layer.input_shape is not None:
            more = np.zeros((2, *self.shape, 1))
            wrong.append(("x with an axis too many", ShapeError, layer.forward, [more]))
        for what, error, call, arguments in wrong:
            got = "nothing was raised"
            try:
                call(*arguments)
            except Exception as raised:
                if isinstance(raised, error) and layer.where in str(raised):
                    continue
                got = f"got {raised!r}"
            yield f"{what}: expected a {error.__name__} that names {layer.where}, {got}"

    def printed_equations(self):
        case = case_of(self.trial(2))
        yield from self.unread
        for label, text in self.texts.items():
            names = _computed(text)
            others = (each for other, each in self.texts.items() if other != label)
            used = {name for each in others for part in parse(each) for name in _bases(part)}
            if {"", *case.given}.intersection(names):
                error = partial(printed, self.texts, label, case)
                yield from self.faults(label, error, "differs from the code")
            elif names[0][0] == "d" and names[0][1:] in case.given:
                self.notes.append(f"[{label}] is not measured: this layer trains no {names[0][1:]}")
            elif not used.intersection(names):
                given = ", ".join(self.outputs)
                yield f"[{label}] {text}: compared with nothing; the code gives {given}"

    def printed_gradients(self):
        case = case_of(self.trial(1), computed=False)
        gradients = self.outputs[1:]
        labels = [label for label, text in self.texts.items() if _computed(text)[0] in gradients]
        if not labels:
            yield f"no label is an equation of {', '.join(gradients)}"
        for label in labels:
            error = partial(printed_gradient, self.texts, label, case, self.rng)
            yield from self.faults(label, error, "is not the derivative of the printed output")

    def faults(self, label, measure, what):
        """Yield a message on an equation if measure() raises or gives too large an error."""
        try:
            error = measure()
            problem = "" if error <= PRINTED_ERROR else f"{what} (relative error {error:.2g})"
        except (NameError, ValueError, IndexError) as raised:
            problem = str(raised)
        if problem:
            yield f"[{label}] {self.texts[label]}: {problem}"


def _single(trial):
    """Whether the function computes in float32: where it changes with x, it does not where x
    changes by less than float32 holds.
    """
    less, more = (trial.forward(trial.x * (1 + by)) == trial.y for by in (1e-11, 1e-2))
    return bool(less[~more].mean() > MOSTLY) if not more.all() else False


def _computed(text):
    """The names on the left sides of an equation's parts; "" if a left side is more than a name."""
    lefts = [part.children[0] for part in parse(text)]
    return [_bases(left)[0] if left.data == "name" else "" for left in lefts]


def _bases(tree):
    """The names in a tree, without their indices."""
    return [name.partition("_")[0] for name in names_in(tree)]
