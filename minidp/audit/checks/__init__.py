"""Checks that measure, now, how far the code is from each labelled equation.

A check is a function of a `Bench` that returns an error, or yields several, the largest of which
counts; relative unless its method says otherwise. It is registered for labels of one card, with the
tolerance that it must not exceed:

    @measures("mechanism.clip.clip_weights", "N2", "loop over examples", 1e-12)
    def weights_equal_the_definition(bench): ...

The expected side of a check is written again from the definition; it never calls the code it
checks.
"""

import math
import pkgutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import numpy as np

from ...backend import Backend, to_host
from ..card import labels_of
from ..equation import sides

PRINTED = "the equation as it is printed"
DERIVED = "derivative of the printed output, by complex steps"
STEPPED = "complex steps through the code"
COMPILED = "each beside its definition"

REGISTRY: dict[tuple[str, str], list] = {}  # (card, label): list of Check
# (card, label): functions that yield the Cases for the printed equation
STATED: dict[tuple[str, str], list] = {}
# (card, label): why its text cannot be evaluated
WORDS: dict[tuple[str, str], str] = {}


@dataclass(frozen=True)
class Check:
    """A measurement of labels. `measure(bench)` returns the error, or yields several."""

    name: str
    method: str
    tolerance: float
    measure: object


@dataclass(frozen=True)
class Bench:
    """The conditions of a check: a generator with its own seed, and the device for its arrays."""

    rng: object
    backend: Backend

    def asarray(self, x):
        """x on the device."""
        return self.backend.asarray(x)


@dataclass(frozen=True)
class Outcome:
    """The result of one check. `problem` says why there is no number, otherwise ""."""

    check: Check
    error: float
    problem: str

    @property
    def passed(self):
        return not self.problem and self.error <= self.check.tolerance

    def nearness(self):
        """Sort key: failures are largest, then results near their tolerance."""
        return not self.passed, self.error / (self.check.tolerance or 1e-300)

    def to_json(self):
        """The entry for a page; an infinite error is None."""
        return {
            "check": self.check.name,
            "method": self.check.method,
            "error": self.error if math.isfinite(self.error) else None,
            "tolerance": self.check.tolerance,
            "problem": self.problem,
            "passed": self.passed,
            "text": str(self),
        }

    def __str__(self):
        found = self.problem or "does not hold"
        if not self.problem and math.isfinite(self.error):
            found = f"{self.error:.1e} (at most {self.check.tolerance:.0e})"
        return f"{found}, {self.check.name.replace('_', ' ')}: {self.check.method}"


def measures(card, labels, method, tolerance, case=None, name=None):
    """Register the decorated function for the labels "F1 F2" of `card`, "package.module.Class"
    below minidp.

    method: what the code is compared with; tolerance: the largest error that passes; case: passed
    to the function after the bench, if it is given.
    """

    def register(function):
        measure = _with_case(function, case)
        check = Check(name or function.__name__, method, tolerance, measure)
        for label in labels.split():
            REGISTRY.setdefault((card, label), []).append(check)
        return function

    return register


def states(card, labels, tolerance=1e-12, case=None, name=None, error=None):
    """Register the decorated function of a bench. It yields Cases: values for the names in the
    labels' equations, computed by the code.

    Each equation is evaluated as it is printed and compared with the code.

    case: passed to the function after the bench, if it is given; error: function of a left and a
    right side; `worst` by default, `excess` if the left bounds the right.
    """

    def register(function):
        cases = _with_case(function, case)
        called = name or function.__name__
        for label in labels.split():
            STATED.setdefault((card, label), []).append(cases)
            as_printed = partial(_as_printed, card=card, label=label, cases=cases, error=error)
            measures(card, label, PRINTED, tolerance, None, called)(as_printed)
        return function

    return register


def _with_case(function, case):
    return function if case is None else partial(function, case=case)


def in_words(card, labels, reason):
    """Mark labels whose text is not evaluated, with a reason."""
    WORDS.update({(card, label): reason for label in labels.split()})


def _as_printed(bench, card, label, cases, error):
    for case in cases(bench):
        yield printed(texts_of(card), label, case, error)


def texts_of(card):
    """{label: equation} for the labels of a card that are evaluated."""
    return {label: text for label, text in labels_of(card).items() if (card, label) in STATED}


def printed(texts, label, case, error=None):
    """The largest error between the sides of an equation in one case; other equations define
    names.
    """
    label = case.through or label
    context = [text for other, text in texts.items() if other != label]
    errors = []
    for relation, left, right in sides(texts[label], case, context):
        if relation in ("<=", ">="):
            low, high = (left, right) if relation == "<=" else (right, left)
            errors.append(holds(np.all(low <= high + 1e-12 * np.abs(high))))
        else:
            errors.append((error or worst)(left, right))
    return max(errors, default=math.inf)


def load():
    """Import every module of this package, which registers its checks; returns {(card, label):
    [Check]}.
    """
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return REGISTRY


def bench_for(name, backend=None):
    """The Bench of a check with this name."""
    return Bench(np.random.default_rng(zlib.crc32(name.encode())), backend or Backend.numpy())


def run(check, backend=None):
    """The Outcome of one check. An exception becomes a problem; NaN, or no result, is an infinite
    error.
    """
    bench = bench_for(check.name, backend)
    try:
        with np.errstate(all="ignore"):
            found = check.measure(bench)
            errors = [float(error) for error in (found if isinstance(found, Iterator) else [found])]
    except Exception as error:  # a broken formula may raise anything
        problem = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return Outcome(check, math.inf, problem)
    return Outcome(check, max(map(_no_nan, errors), default=math.inf), "")


def worst(got, expected):
    """Largest difference of two arrays divided by the largest expected size; infinity if shapes
    differ.
    """
    got, expected = np.asarray(to_host(got)), np.asarray(to_host(expected))
    if got.shape != expected.shape:
        return math.inf
    size, difference = (float(np.abs(a).max(initial=0)) for a in (expected, got - expected))
    return _no_nan(difference / size if size else difference)


def relative(got, expected):
    """|got - expected| / |expected|."""
    return _no_nan(abs(float(got) - float(expected)) / abs(float(expected)))


def excess(bound, truth):
    """Relative excess of bounds over the truths. Raises ArithmeticError if a bound is below by more
    than rounding (1e-13).
    """
    bound, truth = (np.asarray(each, dtype=np.float64) for each in (bound, truth))
    if np.any(bound < truth * (1 - 1e-13)):
        raise ArithmeticError(
            f"the code is below the printed bound ({np.min(bound / truth):.12g} of it)"
        )
    return _no_nan(float(np.max(np.abs(bound / truth - 1))))


def holds(condition):
    """The error of a statement: 0 if it is right, infinity if it is wrong."""
    return 0.0 if condition else math.inf


def slack(claimed, raw, examples):
    """1 - reached / claimed, where an example moves the array raw(example) by `reached` at most;
    infinity if by more than is claimed.
    """
    reached = max(float(np.linalg.norm(raw(one))) for one in examples)
    return math.inf if reached > claimed else 1 - reached / claimed


def _no_nan(error):
    """Replace NaN, which `max` would drop (max(0.0, nan) is 0.0), by infinity."""
    return math.inf if math.isnan(error) else error
