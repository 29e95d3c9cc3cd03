"""Check a private step of any library: rows in, noisy gradients out, a verdict for each test."""

import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Any

from ..errors import ParameterError
from ..util.files import atomic_write
from ..util.validate import count, one_of, positive_finite, probability
from . import html, step_given, step_tests
from .step_trials import LEVEL, Finding, Trials, Undecided

CLAIMS = ("finite", "bits", "poisson", "processes")
REQUIRED = ("row_shape", "clip_norm", "noise_multiplier", "expected_lot_size")
RELATIONS = ("add_remove", "replace_one", "zero_out")


@dataclass(frozen=True)
class Stated:
    """What a step states about itself; `check_step` takes these by name.

    step                  step(rows) takes rows (n, *row_shape), n may be 0, and starts from the
                          same parameters at each call. It returns the noisy sum of clipped
                          gradients divided by the expected lot size, before any optimizer, as one
                          NumPy array
    row_shape             of one row; labels are computed from the row, or are all the same
    clip_norm, noise_multiplier, expected_lot_size  C, sigma and L: noise has std sigma C / L
    sampling_probability  of a row in a lot; needed with lots and claimed_epsilon
    relation              "add_remove", "replace_one" or "zero_out"
    claims                any of "finite" (rows that are not finite), "bits" (the last bits),
                          "poisson", "processes"; what fails without its claim is a note
    parts                 {name: (slice, clip_norm, noise_multiplier)} of all coordinates
    make_rows             make_rows(n, seed) gives valid rows, which the tests scale and repeat
    make_step             starts a fresh step as a new process would; `step` is never copied
    per_example           per_example(rows) gives gradients (n, d); with loss and params
    loss                  loss(params, rows) gives one number per row
    params                an array of the parameters that per_example takes
    lots                  lots(rows, steps) gives the lots of a run's start, index arrays
    steps, delta, claimed_epsilon  the epsilon that is claimed for so many steps
    seed                  of make_rows
    most_releases         of one lot; more decide more, and take longer
    """

    step: Callable[[Any], Any]
    _: KW_ONLY
    row_shape: Sequence[int]
    clip_norm: float
    noise_multiplier: float
    expected_lot_size: float
    sampling_probability: float | None = None
    relation: str = "add_remove"
    claims: Sequence[str] = ()
    parts: Mapping[str, tuple[slice, float, float]] | None = None
    make_rows: Callable[[int, int], Any] | None = None
    make_step: Callable[[], Callable[[Any], Any]] | None = None
    per_example: Callable[[Any], Any] | None = None
    loss: Callable[[Any, Any], Any] | None = None
    params: Any = None
    lots: Callable[[int, int], Any] | None = None
    steps: int | None = None
    delta: float | None = None
    claimed_epsilon: float | None = None
    seed: int | None = None
    most_releases: int = 6000

    def __post_init__(self):
        positive_finite(
            clip_norm=self.clip_norm,
            noise_multiplier=self.noise_multiplier,
            expected_lot_size=self.expected_lot_size,
        )
        count(2, most_releases=self.most_releases)
        one_of(RELATIONS, relation=self.relation)
        for name in self.claims:
            one_of(CLAIMS, claims=name)
        if self.sampling_probability is not None:
            probability(sampling_probability=self.sampling_probability)
        for name, others in {
            "lots": "sampling_probability",
            "per_example": "loss params",
            "claimed_epsilon": "sampling_probability steps delta",
        }.items():
            for other in others.split():
                if getattr(self, name) is not None and getattr(self, other) is None:
                    raise ParameterError(f"check_step: {name} needs {other}")


@dataclass(frozen=True)
class StepReport:
    """The findings of `check_step`; true if nothing is violated."""

    findings: tuple[Finding, ...]
    calls: int

    def __bool__(self):
        return all(found.verdict != "violated" for found in self.findings)

    def __repr__(self):
        return "\n".join(
            f"{found.verdict:11}  {found.name}{f': {found.text}' * bool(found.text)}"
            for found in self.findings
        )

    def write_html(self, path: str | Path) -> None:
        """Write the report as one page."""
        kinds = {"holds": "ok", "violated": "fail"}
        rows = [
            ((each.verdict, kinds.get(each.verdict, "")), each.name, each.text, f"{each.level:.1e}")
            for each in self.findings
        ]
        text = (
            f"<p>{self.calls} calls of the step. Together, the tests accuse a right step in at "
            f"most one of {1 / LEVEL:,.0f} reports.</p>\n"
        )
        with atomic_write(path) as file:
            table = html.table(("verdict", "test", "finding", "level"), rows)
            file.write(html.page("A private step, checked", text + table))


def check_step(step: Callable[[Any], Any], **stated: Any) -> StepReport:
    """Test a private step against what it states; the arguments are the fields of `Stated`.

    A right step is accused in at most 1 of 10,000 reports: each test has an equal share.

    >>> import numpy
    >>> rng = numpy.random.default_rng()
    >>> def step(rows):    # rows are gradients here: clip, add, noise, divide by L = 8
    ...     norms = numpy.linalg.norm(rows, axis=1, keepdims=True)
    ...     total = (rows / numpy.maximum(1, norms)).sum(axis=0, dtype=float)
    ...     return (total + rng.normal(0, 1.5, 20)) / 8
    >>> stated = dict(row_shape=(20,), clip_norm=1, noise_multiplier=1.5, expected_lot_size=8)
    >>> report = check_step(step, **stated)
    >>> bool(report)
    True
    >>> wrong = check_step(lambda rows: step(rows) * 8 / max(1, len(rows)), **stated)
    >>> print(wrong.findings[1].name, wrong.findings[1].verdict)
    divisor violated
    >>> print(wrong.findings[1].text.partition(": ")[2])
    the sum is divided by the number of rows at hand, not by the expected lot size
    """
    for name in stated:
        one_of([field.name for field in fields(Stated)], **{"argument of check_step": name})
    missing = [each for each in REQUIRED if each not in stated]
    if missing:
        raise ParameterError(f"check_step: expected {', '.join(missing)} as well")
    given = Stated(step, **stated)
    trials = Trials(given)
    wanted = _wanted(given)
    level = LEVEL / len(wanted)
    findings = tuple(_finding(name, test, trials, level, given) for name, test in wanted.items())
    return StepReport(findings, trials.calls)


def _wanted(given):
    """{name: test} that have something to test."""
    found = {
        "sensitivity": step_tests.sensitivity,
        "divisor": step_tests.divisor,
        "noise": step_tests.noise,
        "empty lot": step_tests.empty_lot,
        "independence of rows": step_tests.independence,
        "finite": step_tests.finite,
        "bits": step_tests.bits,
    }
    if given.make_step or "processes" in given.claims:
        found["processes"] = step_given.processes
    if given.per_example:
        found["gradients"] = step_given.gradients
    if given.lots or "poisson" in given.claims:
        found["sampler"] = step_given.sampler
    if given.claimed_epsilon is not None:
        found["claim"] = step_given.claim
    return found


def _finding(name, test, trials, level, given):
    found, undecided = [], ""
    try:
        for each in test(trials):
            found.append(each)
    except Undecided as why:
        undecided = str(why)
    except Exception as error:  # the user's code may raise anything: that is what is reported
        undecided = f"{type(error).__name__}: {error}"
    p, text = min(found, key=lambda each: each[0], default=(1.0, ""))
    if found and p * len(found) < level:
        return Finding(name, _blame(name, trials, given), text, level)
    return Finding(name, "not decided" if undecided else "holds", undecided, level)


def _blame(name, trials, given):
    """ "violated", or "note" where the step does not claim what fails."""
    fixed = given.relation != "add_remove" and name in ("divisor", "independence of rows")
    claim = {"sampler": "poisson"}.get(name, name)
    if name == "empty lot" and (trials.empty or given.relation != "add_remove"):
        claim = "poisson"
    unclaimed = claim in CLAIMS and claim not in given.claims
    return "note" if fixed or unclaimed else "violated"


def checked_file(where: str) -> StepReport:
    """check_step of FILE.py[:NAME], where NAME, by default `check`, is a dictionary of its
    arguments.
    """
    path, mark, name = where.rpartition(".py:")
    path = path + ".py" if mark else where
    try:
        found = runpy.run_path(path).get(name if mark else "check")
    except Exception as error:  # the user's file may raise anything
        raise ParameterError(f"--step {path}: {type(error).__name__}: {error}") from None
    if not isinstance(found, Mapping) or not callable(found.get("step")):
        raise ParameterError(
            f"--step {where}: expected check = dict(step=..., row_shape=..., ...) in the file, the "
            "arguments of minidp.audit.check_step, or its name after a colon"
        )
    return check_step(**found)
