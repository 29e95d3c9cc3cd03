"""Ratios of what was measured, against the limits that the project sets itself."""

import itertools
import math
import statistics

from minidp.train.trainer import MAX_BATCH

from .contest import KEPT, OPACUS, PEERS
from .ours import FLOORS, STRATEGIES

# (workload, contender, against, limit); "fastest Opacus" is the fastest of its modes in the same
# contest.
LIMITS = (
    ("W1", "factored", "torch-in-place", 1.15),
    ("W2", "factored", "torch-in-place", 1.2),
    ("W3", "factored", "torch-in-place", 1.1),
    ("W4", "auto", "torch-in-place", 1.0),
    ("W5", "auto", "torch-in-place", 0.45),
    ("W1", "factored", "opacus-ghost", 0.35),
    ("W2", "factored", "opacus-ghost", 0.5),
    ("W3", "factored", "opacus-ghost", 0.5),
    ("W1", "explicit", "opacus", 0.07),
    ("W2", "explicit", "opacus", 0.08),
    ("W3", "explicit", "opacus", 0.08),
    ("W4", "auto", "opacus-ghost", 0.7),
    ("W5", "auto", "fastest Opacus", 0.8),
)
SLOPE = (0.85, 1.15)  # of time against the lot, from LOTS[0] to LOTS[1]
LOTS = (600, 60_000)
FLAT = 1.1  # growth of the peak memory beyond the batch


def ratio(rows, ours, theirs):
    """{"ratio", "low", "high"}: median and quartiles over the rounds in which both ran, or None."""
    pairs = [a / b for a, b in zip(rows[ours]["turns_ms"], rows[theirs]["turns_ms"]) if a and b]
    if not pairs:
        return None
    low, middle, high = statistics.quantiles(pairs, n=4) if len(pairs) > 1 else pairs * 3
    return {"ratio": statistics.median(pairs), "low": low, "high": high}


def ratios(rows):
    """[{"of", "to", "ratio", ...}]: each of ours against the floor and every peer in the same
    contest.
    """
    by_name = {row["contender"]: row for row in rows}
    pairs = itertools.product(STRATEGIES, ("floor", "copy", *PEERS))
    return [
        {"of": ours, "to": theirs, **one}
        for ours, theirs in pairs
        if {ours, theirs} <= by_name.keys() and (one := ratio(by_name, ours, theirs))
    ]


def judged(contests):
    """[{"workload", "of", "to", "limit", "ratio", "met"}] for the limits that the contests can tell
    of.

    Against Opacus each limit has two lines: with the C library's allocator as it is, and keeping
    its pages.
    """
    found = []
    for workload, ours, theirs, limit in LIMITS:
        for contest in contests:
            if (
                contest["workload"] != workload
                or not contest["usual_lot"]
                or contest["device"] != "cpu"
            ):
                continue
            measured = {(one["of"], one["to"]): one["ratio"] for one in contest["ratios"]}
            for kept in ("", KEPT):
                names = OPACUS if theirs == "fastest Opacus" else (theirs,)
                values = [
                    measured[ours, name + kept] for name in names if (ours, name + kept) in measured
                ]
                if values:
                    value = max(values)  # the fastest mode is the one that leaves the largest ratio
                    found.append(
                        {
                            "workload": workload,
                            "of": ours,
                            "to": theirs + kept,
                            "limit": limit,
                            "ratio": value,
                            "met": value <= limit,
                        }
                    )
    return found


def growth(contests):
    """By workload, device and contender: how time and memory grow with the lot.

    slope        of log time against log lot, between LOTS: 1 is linear
    per_example  time per example at the larger over that at the smaller
    memory       peak of the steps at the largest lot over that at the first of two full batches or
                 more
    """
    series = {}
    for contest in contests:
        for row in contest["rows"]:
            if row["contender"] not in FLOORS:
                key = contest["workload"], contest["device"], row["contender"]
                series.setdefault(key, []).append((contest["lot"], row["step_ms"], row["peak_mib"]))
    found = []
    for (workload, device, contender), points in sorted(series.items()):
        times = {lot: ms for lot, ms, _ in points}
        beyond = [mib for lot, _, mib in sorted(points) if lot >= 2 * MAX_BATCH]
        if all(lot in times for lot in LOTS):
            small, large = LOTS
            slope = math.log(times[large] / times[small]) / math.log(large / small)
            found.append(
                {
                    "workload": workload,
                    "device": device,
                    "contender": contender,
                    "lots": sorted(times),
                    "slope": slope,
                    "linear": SLOPE[0] <= slope <= SLOPE[1],
                    "per_example": times[large] / times[small] * small / large,
                    "memory": beyond[-1] / beyond[0] if len(beyond) > 1 and beyond[0] else None,
                    "flat": len(beyond) > 1 and beyond[-1] <= FLAT * beyond[0],
                }
            )
    return found


def summary(contests):
    """The computed part of the JSON."""
    return {"limits": judged(contests), "growth": growth(contests)}


COLUMNS = (
    "workload",
    "lot",
    "contender",
    "step, ms",
    "peak, MiB",
    "factored to it",
    "explicit to it",
    "auto to it",
)


def table(contest):
    """Rows of text for one contest, in the order of COLUMNS."""
    of = {(one["of"], one["to"]): one["ratio"] for one in contest["ratios"]}
    for row in contest["rows"]:
        against = [of.get((ours, row["contender"])) for ours in ("factored", "explicit", "auto")]
        yield (
            contest["workload"],
            f"{contest['lot']:,}",
            row["contender"],
            f"{row['step_ms']:.2f}",
            f"{row['peak_mib']:.0f}",
            *("" if value is None else f"{value:.3g}" for value in against),
        )
