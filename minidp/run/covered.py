"""Check whether a ledger charges all releases of a run; the answers are words."""

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

ROUNDING = 1e-6  # relative: two derivations of the same number differ by less, two settings by more


def uncovered(record: Any, ledger: Ledger, plan: Plan, before: Sequence[Event]) -> Iterator[str]:
    """Describe charges that are missing, and charges that do not belong to the run.

    before: the events before the first step. The ledger may hold more than the run needed, because
    a run that begins again keeps all charges.
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

    def near(event):
        # an attempt that ended before its first checkpoint may have run on another processor
        return any(differs(each, event) is None for each in before)

    held = _counts(ledger)
    planned = _counts(plan.ledger(held.total() * plan.sampler.period, before))
    if missing := _counts(plan.ledger(steps, before)) - held:
        listed = ", ".join(f"{count} x {event}" for event, count in missing.items())
        yield f"not charged: {listed}"
    if unknown := sorted(str(each) for each in held if each not in planned and not near(each)):
        yield f"charged, and not in the plan: {', '.join(unknown)}"
    entries = ledger.entries()
    setup = {event for event, _, purpose in entries if purpose == SETUP}
    if not setup.issuperset(before) or not all(map(near, setup)):
        yield f"{LEDGER} has other releases before the first step"
    if {purpose for _, _, purpose in entries} - {SETUP, STEP, EARLIER}:
        yield f"{LEDGER} has charges for another purpose"


def _counts(ledger):
    """{event: count}."""
    counts = Counter()
    for event, count in ledger.items():
        counts[event] += count
    return counts


def differs(was: Event, now: Event) -> str | None:
    """The place, in words of JSON, where two events differ by more than two derivations of the same
    number would; None if they agree.
    """
    for where, before, after in differences(event_to_json(was), event_to_json(now)):
        numbers = {type(before), type(after)} <= {int, float}
        if not (numbers and math.isclose(before, after, rel_tol=ROUNDING)):
            return where
    return None
