"""The append-only record of everything that was released, in one neighbouring relation."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError, ParameterError
from ..util.atomic import StrPath, atomic_write
from ..util.files import unique_fields
from ..util.validate import MOST_128_BITS, one_of
from ..util.validate import count as check_count
from .event_json import event_from_json, event_to_json
from .events import Event, NeighbouringRelation
from .events.base import check_event

FORMAT = 4  # format 1 had no purposes, 2 no unit, 3 no ids of fits
SETUP, STEP, UNKNOWN = "setup", "step", "unknown"
UNITS = re.compile(r"unknown|row|person of up to [1-9][0-9]* rows")
FITS = re.compile(r"[0-9a-f]{32}-[0-9a-f]{16}")


def unit_text(rows_per_person: int | None) -> str:
    """The unit that a ledger protects: a row, or a person with up to so many rows."""
    return "row" if rows_per_person is None else f"person of up to {rows_per_person} rows"


@dataclass(init=False)
class Ledger:
    """Events in the order of their release, run-length coded, each with its purpose.

    One run has one ledger, and every accountant reads it without changing it. Epsilon is never
    stored: it follows from the events. The purpose of an entry ("setup" before the first step,
    "step", or another word) costs nothing; accountants do not see it.

    relation   neighbouring relation of the events
    unit       what the events protect: "row", "person of up to 3 rows", or "unknown"

    A ledger of an unknown unit is written, and hashed, in format 2, which has no unit. Files of
    format 1 have no purposes either; these load as "unknown". If several fits share a ledger, an
    entry may have the random id of its fit. Such a ledger is written in format 4, and hashed
    without the ids.

    >>> from minidp.privacy import Gaussian, PoissonSampled
    >>> ledger = Ledger(entries=[(Gaussian(7.0), 1, "setup")])
    >>> ledger.append(PoissonSampled(0.01, Gaussian(4.0)), 10_000)
    >>> [count for event, count in ledger.items()]
    [1, 10000]
    """

    relation: NeighbouringRelation
    unit: str
    _entries: list[tuple[Event, int, str, str | None]]

    def __init__(
        self,
        relation: NeighbouringRelation = NeighbouringRelation.ADD_REMOVE,
        entries: Iterable[tuple] = (),
        unit: str = UNKNOWN,
    ):
        """entries: first entries, each a tuple of arguments of `append`: (event,), (event, count),
        (event, count, purpose) or (event, count, purpose, fit).
        """
        one_of(tuple(NeighbouringRelation), relation=relation)
        self.relation, self.unit = relation, _checked_unit(unit)
        self._entries = []
        for entry in entries:
            self.append(*entry)

    def append(
        self, event: Event, count: int = 1, purpose: str = STEP, fit: str | None = None
    ) -> None:
        """Record `event`, released `count` times for `purpose`, a word; a count of 0 records
        nothing. fit: id of the fit that releases it, 32 hexadecimal digits, a hyphen and 16 more;
        or None.
        """
        check_event("Ledger.append", event)
        check_count(0, MOST_128_BITS, count=count)
        if not (isinstance(purpose, str) and purpose.isidentifier()):
            raise ParameterError(
                f"expected purpose={purpose!r:.80} to be a word such as setup or step"
            )
        if not (fit is None or isinstance(fit, str) and FITS.fullmatch(fit)):
            raise ParameterError(
                f"expected fit={fit!r:.80} to be 32 hexadecimal digits, a hyphen and 16"
            )
        if count == 0:
            return
        last = self._entries[-1] if self._entries else None
        if last and last[3] == fit and last[::2] == (event, purpose):
            event, before, *_ = self._entries.pop()
            count += before
        self._entries.append((event, int(count), purpose, fit))

    def items(self) -> list[tuple[Event, int]]:
        """The list of (event, count) in order; adjacent entries of the same event and purpose are
        merged.
        """
        return [(event, count) for event, count, _ in self.entries()]

    def entries(self) -> list[tuple[Event, int, str]]:
        """The list of (event, count, purpose) in order, merged as in `items`."""
        merged: list[tuple[Event, int, str]] = []
        before = None
        for event, count, purpose, fit in self._entries:
            if fit != before and merged and merged[-1][::2] == (event, purpose):
                count += merged.pop()[1]
            merged.append((event, count, purpose))
            before = fit
        return merged

    def entries_of_fits(self) -> list[tuple[Event, int, str, str | None]]:
        """The list of (event, count, purpose, id of the fit or None) in order."""
        return list(self._entries)

    def counted(self) -> Counter[tuple[Event, str]]:
        """{(event, purpose): count}."""
        counts: Counter[tuple[Event, str]] = Counter()
        for event, count, purpose, _ in self._entries:
            counts[event, purpose] += count
        return counts

    def count_of(self, purpose: str) -> int:
        """Number of releases that were charged for `purpose`."""
        return sum(count for _, count, charged_for, _ in self._entries if charged_for == purpose)

    def copy(self) -> Ledger:
        """An independent ledger with the same entries."""
        return Ledger(self.relation, self._entries, self.unit)

    def protect(self, unit: str) -> None:
        """Set the unit that later charges protect. Raises ParameterError if the ledger's charges
        protect another unit.
        """
        if not self._entries:
            self.unit = _checked_unit(unit)
        elif self.unit not in (unit, UNKNOWN):
            raise ParameterError(
                f"expected a ledger of charges for the unit {unit}, got one for {self.unit}: "
                "epsilons for different units have no sum; choose another ledger"
            )

    def to_json(self) -> dict[str, Any]:
        """The ledger as a dictionary of plain values; `from_json` reads it."""
        return self._json(self._entries)

    def _json(self, entries):
        named = any(fit is not None for *_, fit in entries)
        if named:
            known = {"format": FORMAT, "unit": self.unit}
        else:
            known = {"format": 2} if self.unit == UNKNOWN else {"format": 3, "unit": self.unit}
        return {
            **known,
            "relation": self.relation.value,
            "entries": [
                {"count": count, "event": event_to_json(event), "purpose": purpose}
                | ({"fit": fit} if named else {})
                for event, count, purpose, fit in entries
            ],
        }

    @classmethod
    def from_json(cls, data: Any) -> Ledger:
        """The ledger that `to_json` wrote. Raises DataError for anything else."""
        number = data.get("format") if isinstance(data, dict) else None
        if type(number) is not int or number not in range(1, FORMAT + 1):
            raise DataError(f"expected a ledger of format 1 to {FORMAT}, got {number!r:.80}")
        unit = {"unit"} if number >= 3 else set()
        _check_fields("ledger", data, {"format", "relation", "entries"} | unit)
        relation, entries = data["relation"], data["entries"]
        relations = [each.value for each in NeighbouringRelation]
        if relation not in relations:
            raise DataError(f"expected a relation of {', '.join(relations)}, got {relation!r}")
        if not isinstance(entries, list):
            raise DataError("expected the ledger's entries to be a list")
        ledger = cls(NeighbouringRelation(relation))
        try:
            ledger.protect(data.get("unit", UNKNOWN))
        except ParameterError as error:
            raise DataError(str(error)) from error
        names = {"count", "event"} | ({"purpose"} if number >= 2 else set())
        names |= {"fit"} if number >= 4 else set()
        for place, entry in enumerate(entries):
            where = f"ledger entry {place}"
            _check_fields(where, entry, names)
            try:
                check_count(1, MOST_128_BITS, count=entry["count"])
                event = event_from_json(entry["event"])
                purpose, fit = entry.get("purpose", UNKNOWN), entry.get("fit")
                ledger.append(event, entry["count"], purpose, fit)
            except (ParameterError, DataError) as error:
                raise DataError(f"{where}: {error}") from error
        return ledger

    def canonical(self) -> str:
        """The canonical JSON text: sorted keys, no spaces, no ids of fits. Equal ledgers have equal
        texts.
        """
        return _text(self._json([(*entry, None) for entry in self.entries()]))

    def sha256(self) -> str:
        """SHA-256 of the canonical text, as 64 hexadecimal digits."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def save(self, path: StrPath) -> None:
        """Write the canonical text, with the ids if there are any, to `path`. After a crash the
        file has the whole text or is unchanged.
        """
        with atomic_write(path) as file:
            file.write(_text(self.to_json()) + "\n")

    @classmethod
    def load(cls, path: StrPath) -> Ledger:
        """Read the file that `save` wrote. Raises DataError, with the file's name, if it is missing
        or damaged.
        """
        try:
            text = Path(path).read_text(encoding="ascii")
            return cls.from_json(json.loads(text, object_pairs_hook=unique_fields))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DataError(f"{path}: no such file") from error
        except (OSError, ValueError, RecursionError, DataError) as error:
            raise DataError(f"{path}: not a whole ledger ({error})") from error


def _text(data):
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _checked_unit(unit):
    if not (isinstance(unit, str) and UNITS.fullmatch(unit)):
        raise ParameterError(
            f"expected unit={unit!r:.80} to be row, person of up to N rows, or unknown"
        )
    return unit


def _check_fields(where, data, names):
    if not isinstance(data, dict) or set(data) != names:
        raise DataError(f"{where}: expected exactly the fields {', '.join(sorted(names))}")
