"""Figures of a result beside those that they should reproduce, as experiments/expected.json has them."""
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
    """What the seeds gave, all of them together, beside what they should reproduce.

    entry       of expected.json; values: one a seed; commits: the versions of the code that made them
    """

    entry: dict
    value: float
    values: tuple
    commits: frozenset

    @property
    def error(self):
        """The standard error of the mean; None where there is none."""
        several = len(self.values) > 1 and not self.entry.get("place")
        return statistics.stdev(self.values) / math.sqrt(len(self.values)) if several else None

    @property
    def few(self):
        """True where the seeds are too few to say anything, which a number without chance needs none of."""
        return len(self.values) < FEWEST and not self.entry.get("deterministic")

    @property
    def agreeing(self):
        """How many seeds agree, each by itself."""
        return sum(self.agrees(value) for value in self.values)

    def agrees(self, value=None, tolerance=None):
        """True if the mean, or another value, is on the entry's side or within its tolerance, or another one."""
        off = (self.value if value is None else value) - self.entry["value"]
        by = {"at least": -off, "at most": off}.get(self.entry.get("side"), abs(off))
        return by <= (self.entry["tolerance"] if tolerance is None else tolerance)

    @property
    def reproduced(self):
        """True if enough seeds agree: in the mean, or, where a place is the claim, every one."""
        return not self.few and (self.agreeing == len(self.values) if self.entry.get("place") else self.agrees())

    def __str__(self):
        side = f"{self.entry['side']} " if "side" in self.entry else ""
        error = "" if self.error is None else f" +- {self.error:.2g}"
        word = "agrees" if self.agrees() else "above" if self.value > self.entry["value"] else "below"
        return (f"{self.entry['quantity']} {self.value:.4g}{error}, expected {side}{self.entry['value']:.4g} +- "
                f"{self.entry['tolerance']:.2g} ({self.entry['source']}): {word}{', too few seeds to say' if self.few else ''}")


def compare(result, expected=EXPECTED, print=print):
    """Print what a result says beside what expected.json says, and return the list of Verdict.

    The file maps an experiment's name to entries {"quantity", "value", "tolerance", "source", "when"}. The quantity is
    a dotted path into the result ("epsilon.moments.upper"). The entry judges only results that have each value of
    "when" at its own dotted path; a list there names alternatives. With a "side", "at least" or "at most", values on
    that side of the expected one agree too. "deterministic": no seed has a part in it; "place": where something is best.
    """
    entries = json.loads(Path(expected).read_text(encoding="utf-8")).get(result["experiment"], [])
    verdicts = [found for entry in entries if (found := verdict([result], entry)) is not None]
    for found in verdicts:
        print(found)
    return verdicts


def verdict(results, entry):
    """The Verdict on some results together by one entry of expected.json; None where it applies to none that measured it.

    Raises MinidpError where the entry applies and a result has no such quantity, not even null.
    """
    means, values, commits = [], [], set()
    for result in results:
        if not all(_holds(result, path, wanted) for path, wanted in entry["when"].items()):
            continue
        try:
            value = look_up(result, entry["quantity"])
        except KeyError:
            raise MinidpError(f"expected.json: {entry['quantity']} is not in the result of {result['experiment']} that it is "
                              "to judge; mend the path, or say under \"when\" which results have it") from None
        if value is not None:
            means.append(float(value))
            values += by_seed(result, entry["quantity"]) or means[-1:]
            commit = result.get("commit")
            commits.update(commit if isinstance(commit, list) else [commit])
    return Verdict(entry, statistics.mean(means), tuple(values), frozenset(commits)) if means else None


def by_seed(result, path):
    """The values, one a seed, of a mean at a dotted path: at PATH_by_seed, or for "quantities.NAME" in quantities_by_seed."""
    first, _, rest = path.partition(".")
    for place in (f"{path}_by_seed", f"{first}_by_seed.{rest}"):
        try:
            return look_up(result, place)
        except KeyError:
            pass
    return None


def look_up(data, path):
    """The value at a dotted path, whose parts are keys or places in a list. Raises KeyError, naming the path."""
    for part in path.split("."):
        try:
            data = data[int(part)] if isinstance(data, list) else data[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise KeyError(path) from None
    return data


def _holds(result, path, wanted):
    try:
        return look_up(result, path) in (wanted if isinstance(wanted, list) else [wanted])
    except KeyError:
        return False
