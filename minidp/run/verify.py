"""Whether the files of a run agree with each other, with its ledger, and with what was written.

A verdict is the answer to five questions. An answer names everything that differs.
"""

import csv
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DataError, MinidpError
from ..mechanism.schedule import from_json, value_at
from ..privacy import Composed, Filter, Ledger, TotalVariation
from ..privacy.catalogue import ACCOUNTANTS, all_bounds, make
from ..privacy.event_json import event_from_json
from ..privacy.ledger import SETUP, STEP
from ..util.files import StrPath, read_json
from ..util.text import lower_text, upper_text
from ..util.validate import in_range
from .checkpoint import differences, load_arrays, short
from .folder import (
    CHARGED,
    CONFIG,
    EARLIER,
    FILES,
    KEY,
    LEDGER,
    MANIFEST,
    METRICS,
    MODEL,
    RESULT,
    STATEMENT,
    fingerprint,
)
from .result import MODEL_FACTS, TRAINING_FIGURES, began, derived, not_for_release, plan_of
from .statement import FORMAT, render

# what reading and computing raise for damaged files
UNREADABLE = (
    MinidpError,
    OSError,
    csv.Error,
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
    ArithmeticError,
    RecursionError,
)
UNFINISHED = "Is the run finished?"
CLOSE = 1e-6  # relative: other processors round a little differently
TINY = 1e-12  # in absolute terms, where a figure may be 0
COLUMNS = {  # of metrics.csv: what the result calls the last row's
    "step": "steps",
    "epoch": "epochs",
    "test_accuracy": "test_accuracy",
    "train_accuracy_not_private": "train_accuracy",
    "test_r2": "test_r2",
    "train_r2_not_private": "train_r2",
}
FITTED = {"weighted": "weighted", "check": "rows_checked"}  # flags of `fit`: the result's names


class Finding(NamedTuple):
    """One question put to the run, what its files say, and whether they agree."""

    question: str
    answer: str
    passed: bool


class Report(NamedTuple):
    """findings; accountants: {name: (Bound, kind, note)}; result: what result.json holds, or {}."""

    findings: list[Finding]
    accountants: dict[str, Any]
    result: dict[str, Any]

    @property
    def failed(self) -> list[Finding]:
        """The findings that did not pass."""
        return [finding for finding in self.findings if not finding.passed]


def verify(folder: StrPath) -> Report:
    """A Report on a run's folder: every file compared with manifest.json, every figure computed
    again.

    Of a run that is not finished, the one finding says what is spent so far. It can see what the
    program wrote down, not what it did. Raises DataError, one line, where the folder holds no run,
    or files that cannot be read although they are as they were written.
    """
    folder, sealed = Path(folder), []
    if not (folder / LEDGER).is_file():
        raise DataError(f"{folder / LEDGER}: no such file; name the folder of a run")
    if not (folder / RESULT).is_file() and not (folder / MANIFEST).is_file():
        spent = _so_far(folder, Ledger.load(folder / LEDGER))
        return Report([Finding(UNFINISHED, spent, False)], {}, {})
    try:
        answer = f"{len(FILES)} files"
        sealed.append(_finding("Is every file as it was written?", answer, _changed(folder)))
        run = Files(folder)
        bounds = all_bounds(run.ledger, ACCOUNTANTS, delta=run.result["delta"])
        return Report([*sealed, *run.findings()], bounds, run.result)
    except UNREADABLE as error:
        why = _printable(f"{type(error).__name__}: {str(error)[:200]}")
        text = f"{folder}: not the files of a run of this program ({why})"
        if all(finding.passed for finding in sealed):
            raise DataError(text) from error
        return Report([*sealed, Finding("Can the files be read?", text, False)], {}, {})


def _finding(question: str, fine: str, wrong: Iterable[str]) -> Finding:
    """The answer: `fine`, or everything that is wrong."""
    wrong = list(wrong)
    return Finding(question, _printable("; ".join(wrong) or fine), not wrong)


def _printable(text: str) -> str:
    """The text in one line of characters that any file and terminal can hold."""
    return " ".join(text.split()).encode("utf-8", "backslashreplace").decode()


def _so_far(folder, ledger):
    """What is charged so far to a run that was interrupted, in one sentence; at the delta of its
    config.json.
    """
    try:
        config = read_json(folder / CONFIG)
        delta = config["settings"]["delta"]
        found = all_bounds(ledger, ("moments", "loss_distribution"), delta=delta)
    except (MinidpError, LookupError, TypeError, ArithmeticError) as error:
        return (
            f"not finished (no {RESULT}), and {CONFIG} gives no delta to say what is spent "
            f"({error})"
        )
    spent = ", ".join(f"{upper_text(bound.upper)} by {name}" for name, (bound, *_) in found.items())
    return (
        f"not finished (no {RESULT}): charged so far at delta {delta:g}, for lots that ran or may "
        f"have: epsilon {spent}"
    )


def _changed(folder: Path) -> Iterator[str]:
    """What does not hold what was written."""
    path = folder / MANIFEST
    if not path.is_file():
        yield f"{MANIFEST} is missing"
        return
    text = path.read_text(encoding="utf-8")
    manifest = json.loads(text)
    if not (isinstance(manifest, dict) and isinstance(manifest.get("files"), dict)):
        yield f"{MANIFEST} was changed"
        return
    key = (folder / KEY).read_bytes().strip() if (folder / KEY).is_file() else None
    for name in FILES:
        digests = manifest["files"].get(name, {})
        if not (folder / name).is_file():
            yield f"{name} is missing"
        elif "hmac_sha256" in digests and key is None:
            yield f"{name} cannot be checked without {KEY}"
        elif digests != fingerprint(
            (folder / name).read_bytes(), key if "hmac_sha256" in digests else None
        ):
            yield f"{name} was changed"
    if text != json.dumps(manifest, indent=2) + "\n" or set(manifest["files"]) != set(FILES):
        yield f"{MANIFEST} was changed"


class Files:
    """What a finished run's files hold, and the questions put to them."""

    def __init__(self, folder: Path):
        self.ledger = Ledger.load(folder / LEDGER)
        self.result: dict[str, Any] = read_json(folder / RESULT)
        self.config: dict[str, Any] = read_json(folder / CONFIG)
        self.statement = (folder / STATEMENT).read_text(encoding="utf-8")
        with open(folder / METRICS, encoding="utf-8", newline="") as file:
            self.metrics = list(csv.DictReader(file))
        if self.result["statement_format"] != FORMAT:
            raise DataError(
                f"its result has format {self.result['statement_format']}, and this version reads "
                f"{FORMAT}: verify it with the version that wrote it"
            )
        if not self.metrics:
            raise DataError(f"{METRICS} has no rows")
        self.model = load_arrays(folder / MODEL, "model")[1]
        self.settings: dict[str, Any] = self.result["settings"]
        in_range(0, 1, open_low=True, open_high=True, delta=self.result["delta"])
        self.setup = [
            (each["name"], event_from_json(each["event"]), each["what"])
            for each in self.settings["setup"]
        ]
        self.plan = plan_of(self.result)
        accountant = make(self.settings["accountant"], self.ledger.relation)
        target = from_json(self.settings["target_epsilon"])
        self.budget = Filter(accountant, target, self.settings["delta"], self.ledger)

    def findings(self) -> Iterator[Finding]:
        """The answers to all questions but the first, which reads the files' bytes."""
        result, settings = self.result, self.settings
        yield _finding(
            "Does the statement follow from the result, and do all files say the same?",
            f"statement and model {result['statement_sha256'][:16]}..., {len(self.metrics)} rows",
            [*self._statement(), *self._facts(), *self._last_row()],
        )
        yield _finding(
            "Does the ledger cover the plan?",
            f"{result['steps']} lots ran, {result['steps_charged']} charged, "
            f"{type(self.plan.sampler).__name__} under {self.ledger.relation.value}"
            + self._beyond(),
            self._uncovered(),
        )
        again = derived(
            self.plan,
            self.budget,
            self.setup,
            size=settings["dataset_size"],
            steps=result["steps"],
            group_size=self.config.get("group_size", (result["group"] or {"size": 1})["size"]),
        )
        yield _finding(
            "Do the derived figures come out again?",
            f"epsilon by {', '.join(again['epsilon'])}; noise, sensitivity, counts",
            self._otherwise(again),
        )
        own = again["epsilon"][again["accountant"]]
        yield _finding(
            "Was the target kept?",
            f"{_upper(own['upper'])} of {self.settings['target_epsilon']}",
            self._broken(from_json(own["upper"])),
        )

    def _statement(self):
        """Whichever version wrote the statement: one of the same format renders the same bytes."""
        result = self.result
        if render(result) != self.statement:
            yield f"{STATEMENT} is not what {RESULT} gives"
        if hashlib.sha256(self.statement.encode()).hexdigest() != result["statement_sha256"]:
            yield f"{RESULT} has another statement_sha256"
        # of runs that are old, the model does not name the statement
        about = {"statement_sha256": result["statement_sha256"], **self.model["about"]}
        for key in MODEL_FACTS:
            if about.get(key) != result[key]:
                yield f"{MODEL} has another {key}"
        if self.model["ledger_sha256"] != self.ledger.sha256():
            yield f"{MODEL} has another ledger_sha256"

    def _facts(self):
        """What config.json said before the first charge, and what was asked for."""
        result, config, settings = self.result, self.config, self.settings
        now = began(result)
        kept = config.get("settings", {}).keys()
        now["settings"] = {key: settings.get(key) for key in kept}
        if config.get(CHARGED) is not True:
            yield f"{CONFIG} says that nothing was charged"
        for where, was, is_ in differences({key: config.get(key) for key in now}, now):
            yield f"{where} was {short(was)} in {CONFIG} and is {short(is_)}"
        if result["experiment"] == "fit":
            asked = {name: config[flag] for flag, name in FITTED.items()}
            asked["best_of_measured"] = config["public"] == "validation"
            for name, value in asked.items():
                if result[name] != value:
                    yield f"{name} was {value} in {CONFIG}"
        if result["reproducible"] is not (result["seed"] is not None):
            yield "a run is reproducible exactly if it has a seed"
        made = {
            "sampler": self.plan.sampler.name,
            "lot_size": settings["expected_lot_size"],
            "delta": settings["delta"],
        }
        for group in settings["clip_groups"]:
            made["noise_multiplier"] = value_at(from_json(group["noise_multiplier"]), 0)
            for name, value in made.items():
                if config.get(name) not in (None, value):
                    yield f"{name} was to be {short(config[name])} and is {short(value)}"
        named = set(result["not_private"])
        figures = {key for key in result if key.endswith("_not_private")}
        columns = [column for column in self.metrics[0] if column.endswith("_not_private")]
        if any(row[column] for row in self.metrics for column in columns):
            figures.update(TRAINING_FIGURES)
        for name in sorted(figures - named):
            yield f"{name} is not named as not private"
        if result["not_for_release"] != not_for_release(named):
            yield "not_for_release names other files"

    def _last_row(self):
        """The result's figures are those of the last row; epochs follow the steps."""
        for column, name in COLUMNS.items():
            measured = _number(self.metrics[-1].get(column))
            if not _near(measured, self.result[name]):
                yield f"{name} is {short(self.result[name])}, and {measured} in {METRICS}"
        share = self.settings["expected_lot_size"] / self.settings["dataset_size"]
        for row in self.metrics:
            if not _near(float(row["epoch"]), int(row["step"]) * share):
                yield f"{METRICS}: step {row['step']} is not epoch {row['epoch']}"

    def _uncovered(self):
        """Charges that are missing, and charges of something else.

        Nothing charged is forgotten when a run begins again, so the ledger may hold more than the
        run called for.
        """
        ledger, plan, result = self.ledger, self.plan, self.result
        if ledger.relation is not plan.relation:
            yield f"{LEDGER} is under {ledger.relation.value}, the plan {plan.relation.value}"
            return
        period = plan.sampler.period
        charged = ledger.count_of(STEP) * period
        if result["steps"] > charged:
            yield f"{result['steps']} lots ran, {charged} charged"
            return
        held, events = self._counts(ledger), [event for _, event, _ in self.setup]
        missing = self._counts(plan.ledger(result["steps"], events)) - held
        known = self._counts(plan.ledger(held.total() * period, events))
        entries = ledger.entries()
        before = {event for event, _, purpose in entries if purpose == SETUP}
        if missing:
            yield f"not charged: {_listed(missing)}"
        if held.keys() - known.keys():
            yield f"charged, and not in the plan: {', '.join(sorted(held.keys() - known.keys()))}"
        if before != set(events):
            yield f"{LEDGER} has other releases before the first step"
        if not {purpose for _, _, purpose in entries} <= {SETUP, STEP, EARLIER}:
            yield f"{LEDGER} has charges for another purpose"

    def _beyond(self):
        """What was charged by attempts that were cut off."""
        called = self.plan.ledger(
            self.result["steps_charged"], [event for _, event, _ in self.setup]
        )
        more = self._counts(self.ledger) - self._counts(called)
        return f"; by attempts cut off: {_listed(more)}" if more else ""

    def _counts(self, ledger):
        """{event: how often}. A tau within 1e-12 of the ledger's counts as that: other processors
        round logarithms otherwise.
        """
        taus = {
            part.tau
            for event, _ in self.ledger.items()
            for part in _parts(event)
            if isinstance(part, TotalVariation)
        }
        counts = Counter()
        for event, count in ledger.items():
            counts[repr(_with_taus(event, taus))] += count
        return counts

    def _otherwise(self, again):
        """Derived figures that come out otherwise, and bounds that contradict each other."""
        stated = {key: self.result[key] for key in again}
        stated["settings"] = {key: self.settings.get(key) for key in again["settings"]}
        for where, said, now in differences(stated, again):
            # a note is text of the version that wrote it
            if not where.endswith(".note") and not _near(said, now, where != "delta_added"):
                yield f"{where} is stated as {short(said)} and comes out as {short(now)}"
        bounds = [each for each in again["epsilon"].values() if each["kind"] == "bound"]
        lowers = [from_json(each["lower"]) for each in bounds if each["lower"] is not None]
        uppers = [from_json(each["upper"]) for each in bounds if each["upper"] is not None]
        if max(lowers, default=0.0) > min(uppers, default=math.inf):
            yield f"a bound is below the certified lower end {lower_text(max(lowers), 6)}"

    def _broken(self, total):
        """Targets that were not kept, a stop for another reason, and figures along the run that say
        too little.
        """
        result, budget = self.result, self.budget
        for target in (budget.epsilon, self.config.get("target_epsilon")):
            if target is not None and not total <= from_json(target):
                yield f"epsilon is {_upper(total)}, above the target {target:g}"
        done = result["steps_charged"] >= self.settings["planned_steps"]
        if result["stopped"] != ("finished" if done else "budget"):
            yield (
                f"stopped is {short(result['stopped'])}, after {result['steps_charged']} of "
                f"{self.settings['planned_steps']} lots"
            )
        if self.ledger.relation is not self.plan.relation:
            return  # named by another question
        events, before = [event for _, event, _ in self.setup], (-1, 0.0)
        for row in self.metrics:
            step, epsilon = int(row["step"]), float(row["epsilon"])
            cost = budget.accountant.epsilon(self.plan.ledger(step, events), budget.delta).upper
            if step <= before[0] or epsilon < before[1] or epsilon < cost * (1 - CLOSE):
                yield f"{METRICS}: epsilon {epsilon:g} at step {step}, which cost {_upper(cost)}"
            before = step, epsilon
        if not _near(before[1], total):
            yield f"{METRICS} ends with epsilon {before[1]:g}, not {_upper(total)}"


def _listed(counts):
    return ", ".join(f"{count} x {event}" for event, count in counts.items())


def _parts(event):
    """The events released together."""
    return event.events if isinstance(event, Composed) else (event,)


def _with_taus(event, taus):
    """The event with the first of `taus` that is within 1e-12 of its total variation distance in
    that one's place.
    """
    parts = []
    for part in _parts(event):
        if isinstance(part, TotalVariation):
            near = [tau for tau in taus if math.isclose(tau, part.tau, rel_tol=1e-12)]
            part = replace(part, tau=near[0]) if near else part
        parts.append(part)
    return Composed(parts) if isinstance(event, Composed) else parts[0]


def _number(text):
    """The number in a cell of metrics.csv, None for one that was not measured."""
    if not text:
        return None
    return int(text) if text.isdigit() else float(text)


def _near(a, b, may_be_0=True):
    """Whether two values are equal but for the rounding of other processors; whole numbers
    exactly.
    """
    numbers = all(isinstance(each, (int, float)) for each in (a, b))
    if not numbers or not any(isinstance(each, float) for each in (a, b)):
        return a == b
    return math.isclose(a, b, rel_tol=CLOSE, abs_tol=TINY if may_be_0 else 0.0)


def _upper(epsilon):
    return upper_text(epsilon, 6)
