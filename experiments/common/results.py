"""The committed results: a JSON for each table or figure, with a row for each run from which its
ledger follows.

A row holds entries of the run's result.json at their own paths, and the name of its setting. In the
file, what all rows share is in "shared", what the seeds of one setting share is in "settings", and
the rest is in "rows".
"""

import csv
import hashlib
import json
import math
from itertools import groupby

from minidp.errors import MinidpError
from minidp.files import read_json
from minidp.mechanism.schedule import SCHEDULES, value_at
from minidp.privacy import (
    BallsInBins,
    Composed,
    FixedSizeSampled,
    Gaussian,
    JointGaussian,
    Ledger,
    NeighbouringRelation,
    PoissonSampled,
    TotalVariation,
)
from minidp.privacy.event_json import event_from_json
from minidp.privacy.ledger import FORMAT, SETUP, STEP

from .verdicts import RESULTS

OWN = ("name", "seed", "commit", "test_accuracy", "seconds_total")  # always in the row itself
ENTRIES = (
    *OWN[1:],
    "experiment",
    "command",
    "config",
    "dataset",
    "dataset_sha256",
    "notice",
    "device",
    "versions",
    "sampler",
    "relation",
    "arithmetic",
    "total_variation",
    "delta",
    "accountant",
    "steps",
    "steps_charged",
    "epochs",
    "stopped",
    "reason",
    "train_accuracy",
    "test_accuracy_over_views",
    "accuracy_before_training",
    "seconds_per_step",
    "tuning",
    "pretrained",
    "pretrained_sha256",
    "ledger_sha256",
    "ledger_format",
)
SETTINGS = (
    "dataset_size",
    "expected_lot_size",
    "sampling_probability",
    "period",
    "optimizer",
    "average",
    "learning_rate",
    "augmentation_multiplicity",
    "pca_noise_multiplier",
    "mean_noise_multiplier",
)
GROUP = ("name", "clip_norm", "noise_multiplier", "sensitivity_factor")
ACCOUNTANTS = ("loss_distribution", "renyi", "moments", "gaussian_clt")  # that tables quote
HISTORY = ("epoch", "step", "test_accuracy", "train_accuracy_not_private", "delta_at_epsilon")
MOST_ROWS = 500  # of a history; every second, third ... row of a longer one


def result_of(folder):
    """What a finished run's folder says: result.json, columns of metrics.csv, and
    `total_variation`.

    The last is the distance that exact arithmetic charges in a step.
    """
    result = read_json(folder / "result.json")
    with open(folder / "metrics.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    every = -(-len(rows) // MOST_ROWS)
    kept = [row for i, row in enumerate(rows, 1) if i % every == 0 or i == len(rows)]
    result["history"] = {
        name: [float(row[name]) if row[name] else None for row in kept]
        for name in HISTORY
        if any(row[name] for row in kept)
    }
    if result.get("arithmetic") == "exact":
        event, _, _ = Ledger.load(folder / "ledger.json").entries()[-1]
        distances = [
            part for part in getattr(event, "events", ()) if isinstance(part, TotalVariation)
        ]
        result |= {"total_variation": vars(part) for part in distances}
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
    first, *others = rows
    return {
        key: value
        for key, value in first.items()
        if key not in OWN and all(key in row and row[key] == value for row in others)
    }


def _without(row, entries):
    return {key: value for key, value in row.items() if key not in entries}


def rows_of(data):
    """The whole rows of a table's JSON; none where it has no runs."""
    return [
        {**data["shared"], **data["settings"][row["name"]], **row} for row in data.get("rows", ())
    ]


def committed():
    """All rows of all committed files."""
    return [row for path in sorted(RESULTS.glob("*.json")) for row in rows_of(read_json(path))]


def ledger_of(row):
    """The ledger that a row's settings give."""
    settings, factors = row["settings"], []
    for group in settings["clip_groups"]:
        factors.append((_number(group["noise_multiplier"]), group["sensitivity_factor"]))
    setup = [(event_from_json(each["event"]), 1, SETUP) for each in settings["setup"]]
    ledger = Ledger(NeighbouringRelation(row["relation"]), setup)
    period, steps = settings["period"], row["steps_charged"]
    changing = any(callable(sigma) for sigma, _ in factors)
    releases = (
        tuple(value_at(sigma, step) / factor for sigma, factor in factors)
        for step in range(steps if changing else 1)
    )
    for multipliers, same in groupby(releases):
        times = len(list(same)) if changing else -(-steps // period)
        ledger.append(_step(row, multipliers), times, STEP)
    return ledger


def _number(value):
    if not isinstance(value, dict):
        return float(value)
    fields = {key: each for key, each in value.items() if key != "schedule"}
    return SCHEDULES[value["schedule"]](**fields)


def _step(row, multipliers):
    """The event of one period of the sampler."""
    settings = row["settings"]
    event = Gaussian(multipliers[0]) if len(multipliers) == 1 else JointGaussian(multipliers)
    match row["sampler"]:
        case "PoissonSampler":
            event = PoissonSampled(settings["sampling_probability"], event)
        case "BallsInBinsSampler":
            event = BallsInBins(settings["period"], event)
        case "FixedSizeSampler":
            event = FixedSizeSampled(settings["dataset_size"], settings["expected_lot_size"], event)
        case "ShuffleSampler":
            pass
        case other:
            raise MinidpError(
                f"{row['name']}: the sampler {other} is not one whose ledger can be rebuilt"
            )
    if "total_variation" in row:
        event = Composed((event, TotalVariation(**row["total_variation"])))
    return event


def sha256_of(ledger, format=FORMAT):
    """The ledger's SHA-256 in a format of ledger.json; format 1 had no purposes."""
    if format == FORMAT:
        return ledger.sha256()
    data = ledger.to_json() | {"format": format}
    for entry in data["entries"]:
        del entry["purpose"]
    return hashlib.sha256(
        json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
