"""Figures of a result beside those that they should reproduce, as experiments/expected.json has them."""
import json
from pathlib import Path
from typing import NamedTuple

from minidp.errors import MinidpError

EXPECTED = Path(__file__).resolve().parents[1] / "expected.json"


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

    The file maps an experiment's name to entries {"quantity", "value", "tolerance", "source", "when"}. The quantity is
    a dotted path into the result ("epsilon.moments.upper"). The entry judges only results that have each value of
    "when" at its own dotted path; a list there names alternatives. With a "side", "at least" or "at most", values on
    that side of the expected one agree too.
    """
    entries = json.loads(Path(expected).read_text(encoding="utf-8")).get(result["experiment"], [])
    verdicts = [found for entry in entries if (found := verdict(result, entry)) is not None]
    for found in verdicts:
        print(found)
    return verdicts


def verdict(result, entry):
    """The Verdict on a result by one entry of expected.json; None where it does not apply, or nothing was measured.

    Raises MinidpError where the entry applies and the result has no such quantity, not even null.
    """
    if not all(_holds(result, path, wanted) for path, wanted in entry["when"].items()):
        return None
    try:
        value = look_up(result, entry["quantity"])
    except KeyError:
        raise MinidpError(f"expected.json: {entry['quantity']} is not in the result of {result['experiment']} that it is "
                          "to judge; mend the path, or say under \"when\" which results have it") from None
    return None if value is None else Verdict(entry["quantity"], float(value), entry["value"], entry["tolerance"],
                                              entry["source"], entry.get("side", ""))


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
