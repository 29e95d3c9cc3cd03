"""A result beside what it should reproduce."""
import json
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = ROOT / "experiments" / "expected.json"


class Verdict(NamedTuple):
    """One figure beside the one it should reproduce."""

    quantity: str
    value: float
    expected: float
    tolerance: float
    source: str
    side: str = ""

    @property
    def agrees(self):
        off = self.value - self.expected
        return {"at least": -off, "at most": off, "": abs(off)}[self.side] <= self.tolerance

    @property
    def word(self):
        """"agrees", or where the value lies instead."""
        return "agrees" if self.agrees else "above" if self.value > self.expected else "below"

    def __str__(self):
        side = f"{self.side} " if self.side else ""
        return (f"{self.quantity} {self.value:.4g}, expected {side}{self.expected:.4g} +- {self.tolerance:.2g} "
                f"({self.source}): {self.word}")


def compare(result, expected=EXPECTED, print=print):
    """Print what a result says beside what expected.json says, and return the list of Verdict.

    The file maps an experiment's name to entries {"quantity", "value", "tolerance", "source", "when"}: the
    quantity is a dotted path into the result ("epsilon.moments.upper"), and the entry counts only for results
    that hold each value of "when" at its own dotted path. With a "side", "at least" or "at most", values on that
    side of the expected one agree too.
    """
    entries = json.loads(Path(expected).read_text(encoding="utf-8")).get(result["experiment"], [])
    verdicts = [found for entry in entries if (found := verdict(result, entry)) is not None]
    for found in verdicts:
        print(found)
    return verdicts


def verdict(result, entry):
    """The Verdict on a result by one entry of expected.json, None where it does not apply."""
    value = _at(result, entry["quantity"])
    if value is None or any(_at(result, path) != want for path, want in entry.get("when", {}).items()):
        return None
    return Verdict(entry["quantity"], float(value), entry["value"], entry["tolerance"], entry["source"],
                   entry.get("side", ""))


def _at(result, path):
    for key in path.split("."):
        if not isinstance(result, dict) or key not in result:
            return None
        result = result[key]
    return result
