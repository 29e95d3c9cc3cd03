"""What the files of a finished run are asked: whether they say the same, and what the ledger
gives.
"""

import csv
import hashlib
import io
import math
from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from ..errors import DataError
from ..mechanism import ClipGroup, Plan, PoissonSampler, Sanitizer, schedule
from ..mechanism.sampling import SAMPLERS
from ..privacy import Composed, Ledger, TotalVariation
from ..privacy.event_json import event_from_json
from ..privacy.ledger import SETUP
from ..util.files import read_json
from ..util.validate import in_range
from .checkpoint import differences, load_arrays
from .figures import cell, course, epsilons, near, setting
from .folder import CHARGED, CONFIG, KEY, LEDGER, MAY_BE_PRIVATE, METRICS, MODEL, RESULT, STATEMENT
from .record import MODEL_FACTS, TRAINING_FIGURES, noise_of, settings_of
from .statement import FORMAT, render

FLAGS = {sampler.__name__: flag for flag, sampler in SAMPLERS.items()}  # --sampler of each class


class Finding(NamedTuple):
    """One question put to the run, what its files say, and whether they agree."""

    question: str
    answer: str
    passed: bool


class Files:
    """What a finished run's files hold, and the questions put to them."""

    def __init__(self, folder):
        self.ledger, self.result, self.config = (
            Ledger.load(folder / LEDGER),
            *(read_json(folder / name) for name in (RESULT, CONFIG)),
        )
        self.statement = (folder / STATEMENT).read_text(encoding="utf-8")
        rows = io.StringIO((folder / METRICS).read_text(encoding="utf-8"))
        self.metrics = list(csv.DictReader(rows))
        if self.result["statement_format"] != FORMAT:
            raise DataError(
                f"its result has format {self.result['statement_format']}, and this version reads "
                f"{FORMAT}: verify it with the version that wrote it"
            )
        if not self.metrics:
            raise DataError(f"{METRICS} has no rows")
        self.model = load_arrays(folder / MODEL, "model")[1]
        self.settings = settings = self.result["settings"]
        in_range(0, 1, open_low=True, open_high=True, delta=self.result["delta"])
        self.setup = [event_from_json(each["event"]) for each in settings["setup"]]
        self.arithmetic = self.result["arithmetic"]
        size, lot = settings["dataset_size"], settings["expected_lot_size"]
        self.flag = FLAGS.get(self.result["sampler"])
        groups = [
            ClipGroup(
                group["name"],
                [key.rsplit(".", 1) for key in group["parameters"]],
                setting(group["clip_norm"]),
                setting(group["noise_multiplier"]),
                group["coordinates"],
            )
            for group in settings["clip_groups"]
        ]
        self.taus = {
            part.tau
            for event, _ in self.ledger.items()
            for part in _parts(event)
            if isinstance(part, TotalVariation)
        }
        sanitizer = Sanitizer(groups, self.result["gradients"], self.arithmetic)
        sampler = _sampler(self.flag, size, lot, settings["period"])
        self.plan = sampler and Plan(sampler, sanitizer, 0, lot)  # None: no sampler of the library

    def findings(self):
        """Every Finding about the run."""
        own = (
            self._statement,
            self._ledger,
            self._model,
            self._releases,
            self._metrics,
            self._settings,
            self._configuration,
            self._facts,
            self._not_private,
        )
        answered = chain.from_iterable((*(ask() for ask in own), epsilons(self), course(self)))
        return [
            Finding(question, printable(answer), bool(passed))
            for question, answer, passed in answered
        ]

    def _statement(self):
        """Whichever version wrote the statement: one of the same format renders the same bytes."""
        digest = hashlib.sha256(self.statement.encode()).hexdigest()
        same = render(self.result) == self.statement
        yield (
            "Does the statement follow from the result?",
            "rendered again, byte for byte" if same else "rendered again, it differs",
            same and self.result["statement_sha256"] == digest,
        )

    def _ledger(self):
        digest, result = self.ledger.sha256(), self.result
        yield (
            "Is the ledger the one the result was computed from, and the statement names?",
            f"{digest[:16]}...",
            digest == result["ledger_sha256"] and digest in self.statement,
        )
        yield (
            "Is the sampler used the one accounted for?",
            f"{result['sampler']} under {self.ledger.relation.value}",
            self.plan
            and self.plan.relation.value == self.ledger.relation.value == result["relation"]
            and self.config.get("sampler") in (None, self.flag)
            and f"| {result['sampler']} |" in self.statement,
        )

    def _model(self):
        """The model's file names its ledger and, of runs that are not old, the statement."""
        expected = {**self.result, "ledger_sha256": self.ledger.sha256()}
        found = {
            "statement_sha256": expected["statement_sha256"],
            **self.model["about"],
            "ledger_sha256": self.model["ledger_sha256"],
        }
        off = [key for key in (*MODEL_FACTS, "ledger_sha256") if found.get(key) != expected[key]]
        differs = f"{MODEL} has another {', '.join(off)}"
        yield (
            "Is the model the one of this ledger, result and statement?",
            differs if off else f"{expected['ledger_sha256'][:16]}...",
            not off,
        )

    def _releases(self):
        """Nothing charged is forgotten when a run begins again, so the ledger may hold more than
        the run called for.
        """
        question, held, result = (
            "Is every release in the ledger, and nothing else?",
            self._counts(self.ledger),
            self.result,
        )
        if self.plan is None:
            yield question, f"{held.total()} events", False
            return
        period = self.plan.sampler.period
        ran, called, known = (
            self._counts(self.plan.ledger(steps, self.setup))
            for steps in (result["steps"], result["steps_charged"], held.total() * period)
        )
        named = ", ".join(f"{count} x {event}" for event, count in (held - called).items())
        more = f", of which beyond this run's own, by attempts cut off: {named}" if named else ""
        setup = {event for event, _, purpose in self.ledger.entries() if purpose == SETUP}
        yield (
            question,
            f"{held.total()} events{more}",
            self.ledger.relation is self.plan.relation
            and ran <= held
            and called.total() <= held.total()
            and held.keys() <= known.keys()
            and setup == set(self.setup),
        )
        stated = (
            result["setup_charged"]
            + (result["earlier_lots_charged"] + result["steps_charged"]) / period
        )
        yield (
            "Does the result count every charge?",
            f"{stated:g} of {held.total()}",
            stated == held.total() and result["setup_charged"] == self.ledger.count_of(SETUP),
        )
        yield (
            "Did any step run uncharged?",
            f"{result['steps']} ran, {result['steps_charged']} charged",
            result["steps"] <= result["steps_charged"],
        )

    def _counts(self, ledger):
        """{event: how often}. A tau within 1e-12 of the ledger's counts as that: other processors
        round logarithms otherwise.
        """
        counts = Counter()
        for event, count in ledger.items():
            counts[repr(_with_taus(event, self.taus))] += count
        return counts

    def _metrics(self):
        last, settings, result = self.metrics[-1], self.settings, self.result
        for what, column in (
            ("test accuracy", "test_accuracy"),
            ("training accuracy", "train_accuracy_not_private"),
            ("test R2", "test_r2"),
            ("training R2", "train_r2_not_private"),
        ):
            if column in last:
                yield (
                    f"Is the {what} the last one measured?",
                    last[column] or "not measured",
                    near(cell(last[column]), result[column.removesuffix("_not_private")]),
                )
        epoch = cell(last["epoch"])
        share = settings["expected_lot_size"] / settings["dataset_size"]
        follow = all(near(cell(row["epoch"]), int(row["step"]) * share) for row in self.metrics)
        yield (
            "Do the metrics follow the steps, up to the last?",
            f"step {last['step']}, epoch {epoch:.4g}",
            int(last["step"]) == result["steps"] and near(result["epochs"], epoch) and follow,
        )

    def _settings(self):
        settings = self.settings
        lot, size, flag = (
            settings["expected_lot_size"],
            settings["dataset_size"],
            self.config.get("noise_multiplier"),
        )
        again = settings_of(self.plan, size) if self.plan else {"clip_groups": []}
        off = [
            f"{key} is {stated[key]} and should be {value}"
            for stated, found in (
                (settings, again),
                *zip(settings["clip_groups"], again["clip_groups"]),
            )
            for key, value in found.items()
            if key != "clip_groups" and not near(stated[key], value)
        ]
        for event, stated in zip(self.setup, settings["setup"]):
            noise = noise_of(event)
            both = stated["noise_multiplier"], settings[f"{stated['name']}_noise_multiplier"]
            if not all(near(each, noise) for each in both):
                off.append(f"the noise of {stated['name']} is {both} and should be {noise}")
        yield (
            "Do q, the groups' noise and their sensitivity follow from size, lot, sigma and C?",
            "; ".join(off) or f"q = {lot} / {size}, {len(settings['clip_groups'])} groups",
            self.plan and not off,
        )
        yield (
            "Are lot and noise the ones asked for?",
            f"lot {lot}, sigma {'as the defaults say' if flag is None else flag}",
            self.config.get("lot_size") in (None, lot)
            and (
                flag is None
                or all(
                    schedule.value_at(setting(group["noise_multiplier"]), 0) == flag
                    for group in settings["clip_groups"]
                )
            ),
        )

    def _configuration(self):
        result, config = self.result, self.config
        asked = dict(result["config"])
        if asked.get("dataset") == "auto":
            asked["dataset"] = result["dataset"]
        same = (
            config.get("dataset", result["dataset"]) == result["dataset"]
            and config.get(CHARGED) is True
            and all(
                asked[key] == value
                for key, value in config.items()
                if key in asked and key != "device"
            )
        )
        began = config.get("settings", {})
        same = same and not list(differences(began, {key: self.settings[key] for key in began}))
        same = same and config.get("arithmetic") == self.arithmetic
        yield (
            "Is delta the one asked for, and the configuration the recorded one?",
            f"{result['delta']:g}",
            same and result["delta"] == config.get("delta", began.get("delta")),
        )
        seed = result["config"].get("seed", result["seed"])
        yield (
            "Is the run called reproducible exactly if it has a seed?",
            "no seed" if seed is None else f"seed {seed}",
            result["reproducible"] is (seed is not None)
            and result["seed"] == seed
            and ("Seeded run (seed" in self.statement) is (seed is not None),
        )

    def _facts(self):
        """What config.json said before the first charge."""
        result, config = self.result, self.config
        asked = {key: config.get(key, result[key]) for key in ("device", "dataset_sha256")}
        if result["experiment"] == "fit":
            asked["weighted"] = config["weighted"]
            asked["rows_checked"] = config["check"]
            asked["best_of_measured"] = config["public"] == "validation"
        off = [key for key, value in asked.items() if result[key] != value]
        yield (
            "Are the run's facts those that its configuration began with?",
            f"{', '.join(off)} differ" if off else ", ".join(asked),
            not off,
        )

    def _not_private(self):
        result, named = self.result, self.result["not_private"]
        measured = any(
            cell
            for row in self.metrics
            for column, cell in row.items()
            if column.endswith("_not_private")
        )
        figures = {key for key in result if key.endswith("_not_private")}
        expected = figures | {*(TRAINING_FIGURES if measured else ())}
        kept = [*(MAY_BE_PRIVATE if named else ()), KEY]
        yield (
            "Is every figure that is not private named, and its file not for release?",
            ", ".join(named) or "there is none",
            expected <= set(named) and result["not_for_release"] == kept,
        )


def printable(text):
    """The text in one line of characters that any file and terminal can hold."""
    return " ".join(str(text).split()).encode("utf-8", "backslashreplace").decode()


def _sampler(flag, size, lot, period):
    """The sampler of a run; None without a flag."""
    if flag == "poisson":
        return PoissonSampler(lot / size)
    if flag == "balls-in-bins":  # the lot size that was asked for follows from the number of lots
        lot = size // period
    return SAMPLERS[flag](size, lot) if flag else None


def _parts(event):
    """The events released together."""
    return event.events if isinstance(event, Composed) else (event,)


def _with_taus(event, taus):
    """The event with the first of `taus` that is within 1e-12 of its total variation distance in
    that one's place.
    """
    parts = [
        replace(
            part,
            tau=next((tau for tau in taus if math.isclose(tau, part.tau, rel_tol=1e-12)), part.tau),
        )
        if isinstance(part, TotalVariation)
        else part
        for part in _parts(event)
    ]
    return Composed(parts) if isinstance(event, Composed) else parts[0]
