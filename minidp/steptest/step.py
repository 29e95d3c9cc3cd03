"""Check a private step of any library: rows in, noisy gradients out, a verdict for each test."""

import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..util.validate import count, in_range, one_of, positive_finite
from ..util.words import check_names, hint
from .step_tests import ANY_SIZE, TESTS
from .step_trials import LEVEL, RAISED, Trials, Undecided

CLAIMS = ("trained", "finite", "bits", "poisson", "processes", "directions")
RELATIONS = ("add_remove", "zero_out")
ON_NOISE = ("sensitivity", "divisor", "independence of rows", "calls", "finite")


@dataclass(frozen=True)
class Stated:
    """The statements about a step; `check_step` takes these fields by name.

    step                  step(rows) takes rows (n, *row_shape), n may be 0, and starts from the
                          same parameters at each call. It returns the noisy sum of clipped
                          gradients divided by the expected lot size, before any optimizer, as one
                          NumPy array
    row_shape             shape of one row, or its length; labels are computed from the row, or are
                          all the same
    clip_norm, noise_multiplier, expected_lot_size  C, sigma and L: noise has std sigma C / L
    sampling_probability  probability that a row is in a lot; needed with lots and claimed_epsilon
    relation              "add_remove" or "zero_out"
    claims                any of "trained" (the rows move every part), "finite" (rows that are not
                          finite), "bits" (the last bits), "poisson", "processes", "directions"
                          (noise in every direction of all coordinates); what fails without its
                          claim is a note, and what is not decided without it does not count
    parts                 {name: (slice, clip_norm, noise_multiplier)} of all coordinates
    make_rows             make_rows(n, seed) gives valid rows, which the tests scale and repeat
    make_step             starts a fresh step as a new process would; `step` is never copied
    per_example           per_example(rows) gives gradients (n, d) of what step releases; with
                          loss and params
    loss                  loss(params, rows) gives one number per row
    params                an array of the parameters that per_example takes
    lots                  lots(rows, steps) gives the lots of a run's start, index arrays
    steps, delta, claimed_epsilon  the epsilon that is claimed for this number of steps
    seed                  of make_rows
    most_releases         of one lot; more releases decide more tests, and take longer
    """

    step: Callable[[Any], Any]
    _: KW_ONLY
    row_shape: Sequence[int] | int
    clip_norm: float
    noise_multiplier: float
    expected_lot_size: float
    sampling_probability: float | None = None
    relation: str = "add_remove"
    claims: Sequence[str] = ()
    parts: Mapping[str, tuple[slice, float, float]] | None = None
    make_rows: Callable[[int, int], Any] | None = None
    make_step: Callable[[], Any] | None = None
    per_example: Callable[[Any], Any] | None = None
    loss: Callable[[Any, Any], Any] | None = None
    params: Any = None
    lots: Callable[[int, int], Any] | None = None
    steps: int | None = None
    delta: float | None = None
    claimed_epsilon: float | None = None
    seed: int = 0
    most_releases: int = 7000

    def __post_init__(self):
        positive_finite(expected_lot_size=self.expected_lot_size)
        if isinstance(self.row_shape, int):
            object.__setattr__(self, "row_shape", (self.row_shape,))
        if isinstance(self.claims, str):
            object.__setattr__(self, "claims", (self.claims,))
        count(2, most_releases=self.most_releases)
        one_of(RELATIONS, relation=self.relation)
        for size in self.row_shape:
            count(1, row_shape=size)
        for name in self.claims:
            one_of(CLAIMS, claims=name)
        if self.sampling_probability is not None:
            in_range(0, 1, open_low=True, sampling_probability=self.sampling_probability)

    @property
    def clipped(self):
        """{name: (slice, clip_norm, noise_multiplier)}."""
        return self.parts or {"all": (slice(None), self.clip_norm, self.noise_multiplier)}

    def rows(self, n):
        """n rows of `make_rows`, or of normal numbers."""
        if self.make_rows:
            return np.asarray(self.make_rows(n, self.seed))
        rng = np.random.default_rng(self.seed)
        return rng.standard_normal((n, *self.row_shape), np.float32)


@dataclass(frozen=True)
class Finding:
    """The result of one test. verdict: "holds", "violated", "not decided" or "note"; claimed: True
    if the step claims the tested property.
    """

    name: str
    verdict: str
    text: str
    level: float
    claimed: bool = True


@dataclass(frozen=True)
class StepReport:
    """The findings of `check_step`. untried: a text on faults that the calls cannot show."""

    findings: tuple[Finding, ...]
    calls: int
    untried: str = ""

    @property
    def passed(self) -> bool | None:
        """False if a finding is violated; None if no finding is, but a claim of the step was not
        decided; otherwise True.
        """
        verdicts = {each.verdict for each in self.findings if each.claimed}
        if "violated" in verdicts:
            return False
        return None if "not decided" in verdicts else True

    def __bool__(self):
        if self.passed is None:
            raise ParameterError(
                "check_step: what the step claims was not decided, so the report is neither true "
                f"nor false; do what each finding says, or ask for .passed, which is None:\n{self}"
            )
        return self.passed

    def __repr__(self):
        lines = (f"{each.verdict:11}  {each.name}: {each.text}" for each in self.findings)
        return "\n".join([*(line.rstrip(": ") for line in lines), self.untried])

    def __getattr__(self, name):
        raise AttributeError(f"StepReport has no {name}; {hint(name, vars(self))}")


def check_step(step: Callable[[Any], Any], **stated: Any) -> StepReport:
    """Test a private step against its statements; the arguments are the fields of `Stated`.

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
    >>> print(wrong.findings[1].text.partition(": ")[2].partition(";")[0])
    the sum is divided by the number of rows at hand, not by the expected lot size
    """
    check_names("check_step", Stated, stated)
    try:
        with np.errstate(all="ignore"):
            trials = Trials(Stated(step, **stated))
    except ParameterError:
        raise
    except RAISED as error:
        what = f"{type(error).__name__} in the arguments or the first call"
        text = str(error).removeprefix("Stated.__init__() ")
        raise ParameterError(f"check_step: {what}: {text}") from error
    tests = [
        test
        for test in TESTS
        if test.claim in trials.stated.claims
        or getattr(trials.stated, test.needs[0], None) is not None
        if trials.varies or test.name not in ANY_SIZE
    ]
    level = LEVEL / len(tests)
    found = [_finding(each, trials, level) for each in tests]
    left_out = [test.name for test in TESTS if test not in tests]
    return StepReport(tuple(_after_noise(found)), trials.calls, trials.untried(left_out))


def _after_noise(findings):
    """The findings; if the noise is not as stated, findings that rely on it say so."""
    verdicts = {each.name: each.verdict for each in findings}
    wrong = verdicts["noise"] == "violated"
    for each in findings:
        if wrong and each.name in ON_NOISE and each.verdict == "violated":
            text = f"{each.text}; or this follows from the noise, which is not as stated"
            each = replace(each, text=text)
        elif (each.name, each.verdict) == ("directions", "holds") and verdicts["noise"] != "holds":
            why = "the noise is not as stated, or was not decided: see there first"
            each = replace(each, verdict="not decided", text=why)
        yield each


def _finding(test, trials, level):
    found, undecided, stated = [], "", trials.stated
    claimed = not test.claim or test.claim in stated.claims
    trials.short = 0
    missing = [each for each in test.needs if getattr(stated, each, each) is None]
    try:
        if missing:
            raise Undecided(f"give {', '.join(missing)}")
        with np.errstate(all="ignore"):
            found.extend(test.run(trials))
        if trials.short:
            raise Undecided(f"{trials.short} releases of a lot would decide: raise most_releases")
    except Undecided as why:
        undecided = str(why)
    except RAISED as error:
        undecided = (
            f"{type(error).__name__} after {trials.calls} calls: {error}; mend the step, or give "
            "make_rows with rows that it takes in lots of any size"
        )
    # a chance that is no number comes of releases that are none
    found = [(p if p >= 0 else 0.0, text) for p, text in found]
    p, text = min(found, key=itemgetter(0), default=(1.0, ""))
    if p * max(1, len(found)) < level:
        return Finding(test.name, "violated" if claimed else "note", text, level, claimed)
    verdict = "not decided" if undecided else "holds"
    text = undecided or trials.remarks.get(test.name, "")
    return Finding(test.name, verdict, text, level, claimed)


def checked_file(where: str) -> StepReport:
    """check_step with the arguments in FILE.py[:NAME], a dictionary; NAME is `check` by default."""
    path, mark, name = where.rpartition(".py:")
    path = path + ".py" if mark else where
    try:
        found = runpy.run_path(path).get(name if mark else "check")
    except RAISED as error:
        raise ParameterError(f"--step {path}: {type(error).__name__}: {error}") from None
    if not isinstance(found, Mapping) or "step" not in found:
        raise ParameterError(
            f"--step {where}: expected a dictionary called check in the file, of the arguments of "
            "minidp.audit.check_step, or its name after a colon"
        )
    return check_step(**found)
