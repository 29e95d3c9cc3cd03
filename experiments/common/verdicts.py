"""Figures of a result beside those that they should reproduce, as experiments/expected.json has
them.
"""

import json
import math
import statistics
from pathlib import Path
from typing import NamedTuple

from minidp.errors import MinidpError

EXPECTED = Path(__file__).resolve().parents[1] / "expected.json"
RESULTS = EXPECTED.parent / "results"  # that are committed
FEWEST = 3  # seeds by which anything is called reproduced


class Verdict(NamedTuple):
    """What the seeds gave together beside what an entry of expected.json says; commits: the
    versions that made them.
    """

    entry: dict
    value: float
    values: list
    commits: set

    @property
    def error(self):
        """The standard error of the mean; None where there is none."""
        several = len(self.values) > 1 and "place" not in self.entry
        return statistics.stdev(self.values) / math.sqrt(len(self.values)) if several else None

    @property
    def few(self):
        """True where the seeds are too few to say anything."""
        return len(self.values) < FEWEST and "deterministic" not in self.entry

    @property
    def reproduced(self):
        """True if the mean agrees, or, where the claim is a place, every seed."""
        return not self.few and all(
            map(self.agrees, self.values if "place" in self.entry else [self.value])
        )

    def agrees(self, value, tolerance=None):
        """True if a value is on the entry's side, or within its tolerance, or another one."""
        off = value - self.entry["value"]
        off = {"at least": -off, "at most": off}.get(self.entry.get("side"), abs(off))
        # .05 - .03 is above .02
        return round(off - (self.entry["tolerance"] if tolerance is None else tolerance), 12) <= 0

    def __str__(self):
        entry, error = self.entry, "" if self.error is None else f" +- {self.error:.2g}"
        word = (
            "agrees"
            if self.agrees(self.value)
            else "above"
            if self.value > entry["value"]
            else "below"
        )
        expected = f"{entry.get('side', '')} {entry['value']:.4g}".strip()
        return (
            f"{entry['quantity']} {self.value:.4g}{error}, expected {expected} +- "
            f"{entry['tolerance']:.2g} ({entry['source']}): "
            f"{word}{', too few seeds to say' * self.few}"
        )


def compare(result, expected=EXPECTED, print=print):
    """Print what a result says beside what expected.json says, and return the list of Verdict.

    The file maps an experiment's name to entries {"quantity", "value", "tolerance", "source",
    "when"}. The quantity is a dotted path into the result ("epsilon.moments.upper"). The entry
    judges only results that have each value of "when" at its own dotted path; a list there names
    alternatives. With a "side", "at least" or "at most", values on that side of the expected one
    agree too. "deterministic": no seed has a part in it; "place": where the top is.
    """
    entries = json.loads(Path(expected).read_text(encoding="utf-8")).get(result["experiment"], [])
    verdicts = [found for entry in entries if (found := verdict([result], entry)) is not None]
    for found in verdicts:
        print(found)
    return verdicts


def verdict(results, entry):
    """The Verdict on results together by one entry of expected.json; None where it applies to none
    that measured it.

    Raises MinidpError where the entry applies and a result has no such quantity, not even null.
    """
    means, values, commits, path = [], [], set(), entry["quantity"]
    first, _, rest = path.partition(".")
    for result in results:
        if not all(
            look_up(result, at, ...) in (wanted if isinstance(wanted, list) else [wanted])
            for at, wanted in entry["when"].items()
        ):
            continue
        if (value := look_up(result, path, ...)) is ...:
            raise MinidpError(
                f"expected.json: {path} is not in the result of {result['experiment']} that it is "
                'to judge; mend the path, or say under "when" which results have it'
            )
        if value is not None:
            means.append(float(value))
            values += look_up(result, f"{path}_by_seed", None) or look_up(
                result, f"{first}_by_seed.{rest}", means[-1:]
            )
            commits.update(commit if isinstance(commit := result.get("commit"), list) else [commit])
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
