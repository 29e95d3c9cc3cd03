"""Check that the files of a run agree with each other, with its ledger, and with manifest.json.

A verdict is the answer to five questions. An answer names everything that differs.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DataError, MinidpError
from ..privacy import Filter, Ledger
from ..privacy.accountants import all_bounds, called, every, make, short_names
from ..privacy.ledger import UNKNOWN
from ..util.atomic import StrPath
from ..util.files import read_json
from ..util.text import lower_text, upper_text
from .checkpoint import differences, load_arrays, short
from .covered import uncovered
from .figures import (
    TRAINING_FIGURES,
    computed_then,
    derived,
    first_events,
    measured,
    plan_of,
)
from .folder import (
    CHARGED,
    CONFIG,
    FILES,
    KEY,
    LEDGER,
    LOCK,
    MANIFEST,
    METRICS,
    MODEL,
    RESULT,
    STATEMENT,
    UNNAMED,
    VERSION,
    changed_files,
)
from .progress import read_metrics
from .record import MODEL_FACTS, Record, Tested
from .schedules import from_json
from .statement import FORMATS, render
from .versions import FALSE_WEIGHTS, weights_were_false

READ = (CONFIG, MODEL, STATEMENT, RESULT, METRICS)  # beside the ledger
UNFINISHED = "Is the run finished?"
CLOSE = 1e-6  # relative, because processors round a little differently
TINY = 1e-12  # absolute, for figures that may be 0


class Finding(NamedTuple):
    """A question about the run, the answer of its files, and whether they agree."""

    question: str
    answer: str
    passed: bool


class Report(NamedTuple):
    """findings; accountants: {name: (Bound, kind, note)}; record: that of result.json, or None."""

    findings: list[Finding]
    accountants: dict[str, Any]
    record: Record | None

    @property
    def failed(self) -> list[Finding]:
        """The findings that did not pass."""
        return [finding for finding in self.findings if not finding.passed]


def verify(folder: StrPath) -> Report:
    """A Report on a run's folder: every file is compared with manifest.json, every figure
    recomputed.

    For an unfinished run, the only finding says what is spent so far. The report judges what the
    program wrote, not what it did. Raises DataError if the folder holds no run, or if this version
    cannot read files that are unchanged.
    """
    folder, sealed = Path(folder), []
    if not (folder / LEDGER).is_file():
        raise DataError(
            f"{folder} holds no {LEDGER}, so it is not the folder of a run; name the folder that "
            "the run printed"
        )
    if not (folder / RESULT).is_file() and not (folder / MANIFEST).is_file():
        return Report([Finding(UNFINISHED, _so_far(folder), False)], {}, None)
    try:
        changed = changed_files(folder)
        others = sorted({each.name for each in folder.iterdir()} - {*FILES, MANIFEST, KEY, LOCK})
        unread = f"; not checked: {', '.join(others)}" if others else ""
        sealed.append(
            _finding("Is every file as it was written?", ", ".join(FILES) + unread, changed)
        )
        if not all((folder / name).is_file() for name in READ):
            return Report(sealed, {}, None)
        run = Files(folder)
        bounds = all_bounds(run.ledger, [each.name for each in every()], delta=run.record.delta)
        return Report([*sealed, *run.findings()], bounds, run.record)
    except ImportError:  # a missing library says nothing about the files
        raise
    except Exception as error:  # edited files can make readers and formulas fail in any way
        why = str(error)
        if not isinstance(error, MinidpError):
            why = f"not a run of this program ({type(error).__name__}: {why[:200]})"
        text = _printable(f"{folder} cannot be verified: {why}")
        if all(finding.passed for finding in sealed):
            raise DataError(text) from error
        return Report([*sealed, Finding("Can the files be read?", text, False)], {}, None)


def _not_then(record):
    """Names the accountants that are newer than the version that wrote the record."""
    later = [called(name) for name in short_names().values() if not computed_then(name, record)]
    return f"; not computed then: {', '.join(later)}" if later else ""


def _finding(question, fine, wrong):
    """The answer: `fine`, or all that is wrong."""
    wrong = list(wrong)
    return Finding(question, _printable("; ".join(wrong) or fine), not wrong)


def _printable(text):
    """The text as one line, in characters that any file and terminal can hold."""
    return " ".join(text.split()).encode("utf-8", "backslashreplace").decode()


def _so_far(folder):
    """One sentence on the charges so far of an interrupted run, at the delta of its config.json."""
    ledger = Ledger.load(folder / LEDGER)
    try:
        delta = read_json(folder / CONFIG)["settings"]["delta"]
        found = all_bounds(ledger, ("moments", "rdp", "pld"), delta=delta)
    except (MinidpError, LookupError, TypeError, ArithmeticError) as error:
        return (
            f"not finished (no {RESULT}); what is spent so far is unknown, because {CONFIG} gives "
            f"no delta ({error})"
        )
    spent = ", ".join(
        f"{upper_text(each.upper)} by {called(name)}" for name, (each, *_) in found.items()
    )
    return (
        f"not finished (no {RESULT}); charged so far, for lots that ran or may have run: epsilon "
        f"{spent} at delta {delta:g}"
    )


class Files:
    """The files of a finished run, and the questions about them. Config, record and ledger are each
    compared with what follows from the others.
    """

    def __init__(self, folder: Path):
        self.ledger = Ledger.load(folder / LEDGER)
        self.record = Record.from_json(read_json(folder / RESULT))
        self.config = read_json(folder / CONFIG)
        self.statement = (folder / STATEMENT).read_text(encoding="utf-8")
        self.metrics = read_metrics(folder / METRICS)
        if self.record.statement_format not in FORMATS:
            raise DataError(
                f"its result has format {self.record.statement_format}, and this version reads "
                f"{' and '.join(map(str, FORMATS))}: verify it with the version that wrote it"
            )
        if not self.metrics:
            raise DataError(f"{METRICS} has no rows")
        self.arrays, self.model = load_arrays(folder / MODEL, "model")
        settings = self.record.settings
        self.plan, self.before = plan_of(self.record), first_events(settings.setup)
        accountant = make(settings.accountant, self.ledger.relation)
        target = from_json(settings.target_epsilon)
        self.budget = Filter(accountant, target, settings.delta, self.ledger)

    def findings(self) -> Iterator[Finding]:
        """Yield the answers to all questions except the first, which reads the files' bytes."""
        record = self.record
        yield _finding(
            "Does the statement follow from the result, and do all files agree?",
            f"{STATEMENT}, {MODEL}, {CONFIG} and {METRICS}",
            self._contradictions(),
        )
        unsaid = ""
        if self.ledger.unit == UNKNOWN:
            unsaid = f", which {LEDGER}, of an older format, does not say"
        false_weights = [
            FALSE_WEIGHTS
            for version in {self.config.get(VERSION, UNNAMED), record.versions["minidp"]}
            if weights_were_false(version, record.rows_per_person, record.weighted)
        ]
        yield _finding(
            "Does the ledger charge all that the run released?",
            f"{record.steps} lots ran, {record.steps_charged} are charged, and "
            f"{record.earlier_lots_charged} of earlier attempts; {record.sampler} under "
            f"{record.relation} of {record.unit}s{unsaid}",
            [*false_weights, *uncovered(record, self.ledger, self.plan, self.before)],
        )
        group_size = self.config.get("group_size", record.group.size if record.group else 1)
        again = derived(record, self.plan, self.budget, group_size)
        yield _finding(
            "Do all figures come out the same when computed again?",
            f"epsilon by {', '.join(map(called, again.epsilon))}{_not_then(record)}",
            self._otherwise(again),
        )
        spent = again.epsilon[again.accountant].upper
        target = "without a target"
        if record.target_epsilon is not None:
            target = f"target {record.settings.target_epsilon}"
        yield _finding(
            "Is epsilon within the target?",
            f"epsilon {upper_text(spent, 6)}, {target}",
            self._broken(spent),
        )

    def _contradictions(self):
        """Describe contradictions between files.

        Whichever version wrote the statement, one of the same format renders the same bytes.
        """
        if render(self.record) != self.statement:
            yield f"{STATEMENT} is not what {RESULT} gives"
        if self.config.get(CHARGED) is not True:
            yield f"{CONFIG} says that nothing was charged"
        config = self.record.began.to_json()
        yield from _unlike(config, {key: self.config.get(key) for key in config}, CONFIG)
        versions = {**self.record.versions, "begun_by": self.config.get(VERSION)}
        yield from self._unlike(CONFIG, versions=versions)
        yield from self._unlike(
            STATEMENT, statement_sha256=hashlib.sha256(self.statement.encode()).hexdigest()
        )
        yield from self._within_the_record()
        yield from self._of_the_model()
        yield from self._of_the_metrics()

    def _unlike(self, source, close=0.0, **found):
        """Describe where the record differs from the fields `found`, which come from `source`."""
        again = replace(self.record, **found)
        yield from _unlike(self.record.to_json(), again.to_json(), source, close)

    def _within_the_record(self):
        """Describe fields of the record that contradict each other."""
        record = self.record
        ran = {name for names in record.gradients_ran.values() for name in names}
        if ran and ran != set(record.parameters):
            yield "gradients_ran is of other parameters than the clip groups"
        figures = {key for key in record.more if key.endswith("_not_private")}
        exact = [name for name in self.metrics[-1] if name.endswith("_not_private")]
        if any(row[name] is not None for row in self.metrics for name in exact):
            figures.update(TRAINING_FIGURES)
        for name in sorted(figures - set(record.not_private)):
            yield f"{name} is not named as not private"
        bits = record.row_bits
        if bits.dtype == "float32" and (bits.rows or bits.kernels or bits.differ is not None):
            yield "row_bits of a float32 run hold a trial that only float64 has"
        if record.settings.planned_steps < record.steps:
            yield f"{record.steps} lots ran, and {record.settings.planned_steps} were planned"
        facts = {"public": record.public, "disclosed": record.disclosed}
        if record.facts is not None:
            yield from _unlike({"facts": record.facts}, {"facts": facts}, RESULT)
        tested = record.test
        if tested is not None and tested.shares is not None:
            again = Tested.of_shares(tested.loss, tested.shares)
            yield from self._unlike("its shares of the classes", CLOSE, test=again)
        asked = record.config
        found = {
            "weighted": record.weighted,
            "dtype": bits.dtype,
            "seed": record.seed,
            "shared_ledger": record.shared_ledger is not None,
        }
        for name in found.keys() & asked.keys():
            if asked[name] != found[name]:
                yield f"{name} is {short(asked[name])} in config, {short(found[name])} else"
        if asked.get("check") and not record.rows_checked:
            yield "rows_checked is false, and config asks for the check"

    def _of_the_model(self):
        """Describe contradictions to the model file: facts, and parameters with their shapes."""
        about = self.model["about"]
        yield from self._unlike(
            MODEL,
            ledger_sha256=self.model["ledger_sha256"],
            **{name: about.get(name) for name in MODEL_FACTS},
        )
        held = {name: list(array.shape) for name, array in self.arrays.items()}
        shapes = {name: held.get(name) for name in self.record.parameters}
        for name, shape in shapes.items():
            if shape is None:
                yield f"{name} is clipped, and {MODEL} has no such parameter"
        stated = self.record.config.get("shapes", shapes)
        yield from _unlike({"shapes": stated}, {"shapes": shapes}, MODEL)
        kinds = {array.dtype.name for name, array in self.arrays.items() if name in shapes}
        dtype = "float64" if kinds == {"float64"} else "float32"
        yield from self._unlike(MODEL, row_bits=replace(self.record.row_bits, dtype=dtype))

    def _of_the_metrics(self):
        """Describe contradictions to the rows of the metrics."""
        settings = self.record.settings
        yield from self._unlike(METRICS, CLOSE, **measured(self.metrics[-1]))
        if self.record.test is not None:
            test = replace(self.record.test, loss=self.metrics[-1]["test_loss"])
            yield from self._unlike(METRICS, CLOSE, test=test)
        share = settings.expected_lot_size / settings.dataset_size
        for row in self.metrics:
            if not math.isclose(row["epoch"], row["step"] * share, rel_tol=CLOSE):
                yield f"{METRICS}: step {row['step']} is not epoch {row['epoch']}"

    def _otherwise(self, again):
        """Describe derived figures that differ when recomputed, and contradictory bounds."""
        yield from _unlike(self.record.to_json(), again.to_json(), "computed again", CLOSE)
        bounds = [each for each in again.epsilon.values() if each.kind == "bound"]
        lowers = [each.lower for each in bounds if each.lower is not None]
        uppers = [each.upper for each in bounds if each.upper is not None]
        if lowers and max(lowers) > min(uppers):
            yield f"a bound is below the certified lower end {lower_text(max(lowers), 6)}"

    def _broken(self, total):
        """Yield targets that epsilon exceeds, a wrong reason for the stop, and epsilons along the
        run that are too small.
        """
        record, budget = self.record, self.budget
        shared = record.shared_ledger
        if shared is not None and not shared >= total * (1 - CLOSE):
            yield f"shared_ledger is {short(shared)}, below the run's own {upper_text(total, 6)}"
        if not total <= budget.epsilon:
            yield f"epsilon is {upper_text(total, 6)}, above the target {budget.epsilon:g}"
        done = record.steps_charged >= record.settings.planned_steps
        yield from self._unlike(LEDGER, stopped="finished" if done else "budget")
        if self.ledger.relation is not self.plan.relation:
            return  # another question names it
        last, spent = -1, 0.0
        for row in self.metrics:
            step, epsilon = row["step"], row["epsilon"]
            cost = budget.accountant.epsilon(
                self.plan.ledger(step, self.before), budget.delta
            ).upper
            if step <= last or epsilon < spent or epsilon < cost * (1 - CLOSE):
                yield f"{METRICS}: epsilon {epsilon:g} at step {step}, cost {upper_text(cost, 6)}"
            last = step
            spent = epsilon
        if not math.isclose(spent, total, rel_tol=CLOSE):
            yield f"{METRICS} ends with epsilon {spent:g}, not {upper_text(total, 6)}"


def _unlike(stated, found, source, close=0.0):
    """Describe every place where `stated` differs from `found`, which comes from `source`; both are
    dictionaries of JSON.

    Floats may differ by the relative tolerance `close`, whole numbers may not.
    """
    for where, said, now in differences(stated, found):
        tiny = TINY if close else 0.0
        kinds = {type(said), type(now)}
        near = (
            float in kinds
            and kinds <= {int, float}
            and math.isclose(said, now, rel_tol=close, abs_tol=tiny)
        )
        # notes are texts, which differ between versions
        if not near and not where.endswith(".note"):
            yield f"{where} is {short(said)} ({source}: {short(now)})"
