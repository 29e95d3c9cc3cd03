"""Whether a ledger charges all that a run released, in words."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..mechanism import Plan
from ..privacy.event_json import event_to_json
from ..privacy.events import Event
from ..privacy.ledger import SETUP, STEP, UNKNOWN, Ledger, unit_text
from .checkpoint import differences
from .folder import EARLIER, LEDGER


def uncovered(record: Any, ledger: Ledger, plan: Plan, before: Sequence[Event]) -> Iterator[str]:
    """Yield charges that are missing, and charges for something else, in words.

    before: the events before the first step. The ledger of a run may hold more than the run
    needed, because a run that begins again forgets no charge.
    """
    steps, unit = record.steps, unit_text(record.rows_per_person)
    charged = ledger.count_of(STEP) * plan.sampler.period
    if ledger.unit not in (unit, UNKNOWN):
        yield f"{LEDGER} protects a {ledger.unit}, the run a {unit}"
    if ledger.relation is not plan.relation:
        yield f"{LEDGER} is under {ledger.relation.value}, the plan {plan.relation.value}"
    elif steps > charged:
        yield f"{steps} lots ran, {charged} charged"
    else:
        yield from _of_run(steps, ledger, plan, before)


def _of_run(steps, ledger, plan, before):
    held = _counts(ledger, ledger)
    missing = _counts(plan.ledger(steps, before), ledger) - held
    known = _counts(plan.ledger(held.total() * plan.sampler.period, before), ledger)
    if missing:
        listed = ", ".join(f"{count} x {event}" for event, count in missing.items())
        yield f"not charged: {listed}"
    if unknown := sorted(held.keys() - known.keys()):
        yield f"charged, and not in the plan: {', '.join(unknown)}"
    entries = ledger.entries()
    if {event for event, _, purpose in entries if purpose == SETUP} != set(before):
        yield f"{LEDGER} has other releases before the first step"
    if {purpose for _, _, purpose in entries} - {SETUP, STEP, EARLIER}:
        yield f"{LEDGER} has charges for another purpose"


def _counts(ledger, own):
    """{event: how often}; an event that is one of the ledger `own` but for rounding counts as
    that.
    """
    stored = {repr(event): event_to_json(event) for event, _ in own.items()}
    counts = Counter()
    for event, count in ledger.items():
        name, found = repr(event), event_to_json(event)
        if name not in stored:
            name = next((each for each in stored if _same(stored[each], found)), name)
        counts[name] += count
    return counts


def _same(a, b):
    """True if two events, as JSON, are equal up to 1e-12 in tau: processors round logarithms
    differently.
    """
    return all(
        where.endswith("tau") and math.isclose(one, other, rel_tol=1e-12)
        for where, one, other in differences(a, b)
    )
