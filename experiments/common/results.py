"""The committed results, one JSON file per table or figure, and their comparison with
experiments/expected.json.

A file has a row for each run. A row holds entries of the run's result.json at their own paths, and
the name of its setting; the run's ledger follows from it. In the file, entries that all rows share
are in "shared", those that the seeds of one setting share are in "settings", and the rest is in
"rows".
"""

import hashlib
import json
import math
import statistics
from pathlib import Path
from typing import NamedTuple

from minidp.mechanism.samplers import sampler_from
from minidp.mechanism.schedule import value_at
from minidp.privacy import (
    Gaussian,
    JointGaussian,
    Ledger,
    NeighbouringRelation,
)
from minidp.privacy.event_json import event_from_json
from minidp.privacy.ledger import SETUP, STEP, unit_text
from minidp.run.progress import read_metrics
from minidp.run.schedules import from_json
from minidp.util.files import read_json

EXPECTED = Path(__file__).resolve().parents[1] / "expected.json"
RESULTS = EXPECTED.parent / "results"  # that are committed
FEWEST = 3  # seeds by which anything is called reproduced
OWN = ("name", "seed", "commit", "test_accuracy", "seconds_total")  # always in the row itself
ENTRIES = """
    seed commit test_accuracy seconds_total experiment command config dataset dataset_sha256 notice
    device versions sampler relation arithmetic delta accountant steps
    steps_charged epochs stopped reason train_accuracy test_accuracy_over_views
    accuracy_before_training seconds_per_step tuning pretrained pretrained_sha256 ledger_sha256
    ledger_format rows_per_person
""".split()
SETTINGS = """
    dataset_size expected_lot_size sampling_probability period optimizer average learning_rate
    augmentation_multiplicity pca_noise_multiplier mean_noise_multiplier
""".split()
GROUP = ("name", "clip_norm", "noise_multiplier", "sensitivity_factor")
ACCOUNTANTS = ("loss_distribution", "renyi", "moments", "gaussian_clt")  # that tables quote
HISTORY = ("epoch", "step", "test_accuracy", "train_accuracy_not_private", "delta_at_epsilon")
MOST_ROWS = 500  # of a history; every second, third ... row of a longer one


def result_of(folder):
    """The result.json of a finished run, with "history", columns of its metrics.csv."""
    result = read_json(folder / "result.json")
    rows = read_metrics(folder / "metrics.csv")
    every = -(-len(rows) // MOST_ROWS)
    kept = [row for i, row in enumerate(rows, 1) if i % every == 0 or i == len(rows)]
    result["history"] = {
        name: [None if row[name] is None else float(row[name]) for row in kept]
        for name in HISTORY
        if any(row[name] is not None for row in kept)
    }
    return result


def row_of(name, result):
    """The row of a finished run, by the name of its setting."""
    row = {"name": name} | {key: result[key] for key in ENTRIES if key in result}
    if "config" in row:
        row["config"] = {key: value for key, value in row["config"].items() if key != "seed"}
    if "settings" in result:
        settings = result["settings"]
        row["settings"] = {key: settings[key] for key in SETTINGS if key in settings} | {
            "clip_groups": [
                {key: group[key] for key in GROUP} for group in settings["clip_groups"]
            ],
            "setup": [{"name": each["name"], "event": each["event"]} for each in settings["setup"]],
        }
        row["epsilon"] = {
            by: {end: result["epsilon"][by][end] for end in ("lower", "upper")}
            for by in dict.fromkeys((*ACCOUNTANTS, result["accountant"]))
        }
    return row


def packed(rows):
    """The rows as entries of a table's JSON."""
    shared = _common(rows)
    rows = [_without(row, shared) for row in rows]
    names = dict.fromkeys(row["name"] for row in rows)
    settings = {name: _common([row for row in rows if row["name"] == name]) for name in names}
    return {
        "shared": shared,
        "settings": settings,
        "rows": [_without(row, settings[row["name"]]) for row in rows],
    }


def _common(rows):
    return {
        key: value
        for key, value in rows[0].items()
        if key not in OWN and all(key in row and row[key] == value for row in rows)
    }


def _without(row, entries):
    return {key: value for key, value in row.items() if key not in entries}


def rows_of(data):
    """The whole rows of a table's JSON; none where it has no runs."""
    return [
        {**data["shared"], **data["settings"][row["name"]], **row} for row in data.get("rows", ())
    ]


def ledger_of(row):
    """The ledger that a row's settings give."""
    settings, steps = row["settings"], row["steps_charged"]
    sampler = sampler_from({**settings, "sampler": row["sampler"]})
    groups = [
        (from_json(group["noise_multiplier"]), group["sensitivity_factor"])
        for group in settings["clip_groups"]
    ]

    def event(step):
        """The charge for a step, or for the sampler's period that it begins."""
        multipliers = [value_at(sigma, step) / factor for sigma, factor in groups]
        made = JointGaussian(multipliers) if multipliers[1:] else Gaussian(*multipliers)
        return sampler.wrap(made)

    setup = [(event_from_json(each["event"]), 1, SETUP) for each in settings["setup"]]
    ledger = Ledger(NeighbouringRelation(row["relation"]), setup)
    if any(callable(sigma) for sigma, _ in groups):
        for step in range(steps):
            ledger.append(event(step), 1, STEP)
    else:
        ledger.append(event(0), -(-steps // sampler.period), STEP)
    return ledger


def hashes_of(ledger, rows_per_person=None):
    """{the ledger's SHA-256 in each format of ledger.json}: 1 had no purposes, 2 no unit."""
    data = ledger.to_json() | {"format": 1}
    for entry in data["entries"]:
        del entry["purpose"]
    first = json.dumps(data, sort_keys=True, separators=(",", ":"))
    latest = Ledger(ledger.relation, ledger.entries(), unit_text(rows_per_person))
    return {hashlib.sha256(first.encode()).hexdigest(), ledger.sha256(), latest.sha256()}


class Verdict(NamedTuple):
    """The seeds' results compared with an entry of expected.json; commits: the versions that made
    them.
    """

    entry: dict
    value: float
    values: list
    commits: set

    @property
    def error(self):
        """The standard error of the mean; None where there is none."""
        if len(self.values) == 1 or "place" in self.entry:
            return None
        return statistics.stdev(self.values) / math.sqrt(len(self.values))

    @property
    def few(self):
        """True if there are too few seeds for a verdict."""
        return len(self.values) < FEWEST and "deterministic" not in self.entry

    @property
    def reproduced(self):
        """True if the mean agrees, or, where the claim is a place, every seed."""
        judged = self.values if "place" in self.entry else [self.value]
        return not self.few and all(map(self.agrees, judged))

    def agrees(self, value, tolerance=None):
        """True if a value is on the entry's side, or within its tolerance, or another one."""
        off = value - self.entry["value"]
        off = {"at least": -off, "at most": off}.get(self.entry.get("side"), abs(off))
        # .05 - .03 is above .02
        return round(off - (self.entry["tolerance"] if tolerance is None else tolerance), 12) <= 0

    def __str__(self):
        entry, count = self.entry, len(self.values)
        percent, off = entry.get("unit") == "%", self.value - entry["value"]
        error = "" if self.error is None else f" +- {_difference(self.error, percent)}"
        source = entry["source"]
        word = f"{_difference(abs(off), percent)} {'above' if off > 0 else 'below'}"
        if self.agrees(self.value):
            exact = self.agrees(self.value, 0.0)
            word = "agrees" if exact else f"within {_difference(entry['tolerance'], percent)}"
        if self.few:
            word += "; one seed decides" if count == 1 else f"; {count} seeds decide"
            word += " nothing"
        return (
            f"{entry['quantity'].replace('_', ' ').replace('.', ' ')} "
            f"{f'{self.value:.2%}' if percent else f'{self.value:.4g}'}{error}; "
            f"{'the paper' if source.startswith('Abadi') else source}: "
            f"{100 * entry['value'] if percent else entry['value']:.4g}{'%' if percent else ''} "
            f"({word})"
        )


def _difference(value, percent):
    return f"{100 * value:.2g} points" if percent else f"{value:.2g}"


def compare(result):
    """Compare a result with expected.json: print and return the list of Verdict.

    The file maps an experiment's name to entries {"quantity", "value", "tolerance", "source",
    "when"}. The quantity is a dotted path into the result ("epsilon.moments.upper"). The entry
    judges only results that have each value of "when" at its own dotted path; a list there names
    alternatives. With a "side", "at least" or "at most", values on that side of the expected one
    agree too. "deterministic": no seed has a part in it; "place": where the top is.
    """
    entries = read_json(EXPECTED).get(result["experiment"], [])
    verdicts = [found for entry in entries if (found := verdict([result], entry)) is not None]
    for found in verdicts:
        print(found)
    return verdicts


def verdict(results, entry):
    """The Verdict on results together by one entry of expected.json; None where it applies to none
    that measured it.

    Raises KeyError where the entry applies and a result has no such quantity, not even null.
    """
    means, values, commits, path = [], [], set(), entry["quantity"]
    first, _, rest = path.partition(".")
    for result in results:
        if not all(
            look_up(result, at, ...) in (wanted if isinstance(wanted, list) else [wanted])
            for at, wanted in entry["when"].items()
        ):
            continue
        value = look_up(result, path)
        if value is not None:
            means.append(float(value))
            values += look_up(result, f"{path}_by_seed", None) or look_up(
                result, f"{first}_by_seed.{rest}", means[-1:]
            )
            commit = result.get("commit")
            commits.update(commit if isinstance(commit, list) else [commit])
    return Verdict(entry, statistics.mean(means), values, commits) if means else None


def look_up(data, path, *default):
    """The value at a dotted path, whose parts are keys or places in a list. Raises KeyError without
    a default.
    """
    for part in path.split("."):
        try:
            data = data[int(part)] if isinstance(data, list) else data[part]
        except (KeyError, IndexError, TypeError, ValueError):
            if default:
                return default[0]
            raise KeyError(path) from None
    return data
