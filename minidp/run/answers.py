"""Results of the accountants for people: a table of bounds, and the dictionaries that
`minidp.epsilon` and `minidp.calibrate` return.
"""

import math
from collections.abc import Mapping
from typing import Any

from ..privacy.accountants import called, row_to_quote, short_names
from ..privacy.ledger import Ledger
from ..util.text import estimate_text, lower_text, upper_text
from .attacker import in_words, meaning_of

Rows = Mapping[str, Mapping[str, Any]]  # {accountant: its figures, kind and note}
UNBOUNDED = {"lower": None, "upper": math.inf}


class ByAccountant(dict[str, dict[str, Any]]):
    """{name in JSON: figures, kind and note}, in which short names such as "pld" also work as
    keys.
    """

    def __missing__(self, name: str) -> dict[str, Any]:
        key = short_names().get(name, name)
        if key not in self:
            raise KeyError(name)
        return self[key]


def rows_of(found: Mapping[str, Any]) -> ByAccountant:
    """The rows of a result of `all_bounds`."""
    return ByAccountant(
        (name, {**bound.as_dict(), "kind": kind, "note": note})
        for name, (bound, kind, note) in found.items()
    )


def text_rows(
    rows: Rows, mark: str = "", digits: int = 4, below: float = math.inf
) -> list[tuple[str, ...]]:
    """[(name, lower, estimate, upper, kind, note)] as texts, with lower ends rounded down and upper
    ends up. `mark` follows the note of the row to quote, if its bound is below `below`.
    """
    quoted = row_to_quote(rows, below)
    return [
        (
            called(name, exact=row["lower"] is not None),
            lower_text(row["lower"], digits),
            estimate_text(row["estimate"], digits),
            upper_text(row["upper"], digits),
            row["kind"],
            (row["note"] or "") + (mark if name == quoted else ""),
        )
        for name, row in rows.items()
    ]


def table(rows: Rows, what: str, below: float = math.inf) -> list[str]:
    """The lines of a comparison of accountants."""
    head = ("accountant", f"{what} lower", "estimate", "upper", "kind", "")
    texts = [head, *text_rows(rows, "  <- quote this", 6, below)]
    widths = [max(map(len, column)) for column in [*zip(*texts)][:5]]
    return ["  ".join([*map(str.ljust, row, widths), row[5]]).rstrip() for row in texts]


class Answer(dict[str, Any]):
    """A dictionary of figures that prints as text for people. Its attributes describe the epsilon:
    `upper` and `lower` are the ends of the interval, `accountant` computed it, and `meaning` says
    what an attacker can reach.

    found  {key: JSON value}; epsilon is for `group_size` rows of one person together
    """

    def __init__(self, found: Mapping[str, Any], group_size: int = 1):
        super().__init__(found)
        self.group_size = group_size

    @property
    def _bound(self) -> Mapping[str, Any]:
        """The figures of epsilon."""
        return self["epsilon"]

    @property
    def upper(self) -> float:
        """The upper end of epsilon, infinite if nothing is guaranteed."""
        return self._bound["upper"]

    @property
    def lower(self) -> float | None:
        """The lower end of epsilon, None if unknown."""
        return self._bound["lower"]

    @property
    def accountant(self) -> str | None:
        """The name of the accountant; None if nothing is guaranteed."""
        return called(self["accountant"], exact=self.lower is not None)

    @property
    def meaning(self) -> str:
        """What an attacker can reach, in a sentence or two; "" if nothing is guaranteed."""
        said = self.get("meaning") or meaning_of(
            Ledger.from_json(self["ledger"]), self["delta"], self.group_size
        )
        return in_words(said, self.group_size) if said else ""


class Cost(Answer):
    """The cost of a run: epsilon at a delta, by each requested accountant. float() gives `upper` of
    the smallest certified bound. For delta at an epsilon it can only be printed.
    """

    @property
    def _bound(self):
        return self["accountants"].get(self["quote"], UNBOUNDED)

    @property
    def accountant(self):
        return self["quote"] and called(self["quote"])

    def __float__(self):
        return self.upper

    def __repr__(self):
        what, below = ("epsilon", math.inf) if "delta" in self else ("delta", 1.0)
        lines = table(self["accountants"], what, below)
        return "\n".join([*lines, self.meaning] if "meaning" in self else lines)


class Calibration(Answer):
    """The answer of `calibrate`: float() gives the noise multiplier or the number of steps."""

    def __float__(self):
        return float(self["steps"] if "steps" in self else self["noise_multiplier"])

    def __repr__(self):
        if "steps" in self:
            found = f"steps  {self['steps']}"
        else:  # rounded up, so that it costs no more
            found = f"noise multiplier  {upper_text(float(self), 6)}"
        whom = "each row by itself"
        if self.group_size > 1:
            whom = f"{self.group_size} rows of one person together, all in the data or none"
        return (
            f"{found}\nepsilon  {upper_text(self.upper, 6)} at delta {self['delta']:g} "
            f"({self.accountant}, {self['kind']})\ncovers {whom}"
        )
