"""Where a run begins or resumes, and with which numbers.

Another processor or library finds another last digit of a noise multiplier. So a resumed run takes
what was derived from its folder, and its second derivation decides nothing.
"""

import math
from typing import Any

from ..errors import CheckpointError
from ..mechanism import Plan
from ..mechanism.schedule import from_json
from ..privacy.event_json import event_to_json
from ..privacy.events import Event
from ..privacy.ledger import SETUP
from ..ranks import current
from ..train import Progress, selfcheck
from ..train.progress import check_charged
from ..util.files import damage_named, read_json
from ..util.notices import say
from ..util.text import upper_text
from .checkpoint import differences, steps_lost
from .folder import CHARGED, CHECKPOINT, CONFIG, LEDGER, RESULT, RunFolder

ROUNDING = 1e-6  # relative: two derivations of one number are closer, two settings are not


def as_begun(plan: Plan, folder: RunFolder) -> Plan:
    """The plan, with the steps and noise multipliers that were derived when the folder's run began.

    Raises CheckpointError for a damaged config.json.
    """
    path = folder.path / CONFIG

    def read():
        if not plan.derived or not path.is_file():
            return None
        stored = read_json(path, CheckpointError)
        used = any((folder.path / name).exists() for name in (LEDGER, CHECKPOINT, RESULT))
        return stored if used or stored.get(CHARGED) else None

    stored = current().of_first(read)
    if stored is None:  # another run may take the place of one that charged nothing
        return plan
    with damage_named(path, CheckpointError):
        settings = stored["settings"]
        groups = settings["clip_groups"]
        if len(groups) != len(plan.sanitizer.groups):
            return plan  # `RunFolder.open` names what differs
        derived = plan.derived
        if "noise_multiplier" in derived:
            plan = plan.with_noise([from_json(group["noise_multiplier"]) for group in groups])
        if "steps" in derived:
            plan = plan.with_steps(settings["planned_steps"])
    return plan


def check_target(run: Any) -> None:
    """Raise CheckpointError if the plan that config.json holds would exceed the target."""
    plan, budget = run.plan, run.budget
    spent = budget.accountant.epsilon(plan.ledger(), budget.delta).upper
    if not spent <= budget.epsilon * (1 + ROUNDING):
        raise CheckpointError(
            f"{run.folder.path / CONFIG}: {plan.steps} lots with its noise multiplier would cost "
            f"epsilon {upper_text(spent)}, above the target {budget.epsilon:g}: the file was "
            "changed, or was written for another target; choose another folder"
        )


def released_first(run: Any) -> list[Event]:
    """The events that a resumed run released before the first step, as its ledger has them."""
    names = [name for name in run.saved[0] if name.startswith("release/")]
    events = [
        event
        for event, times, purpose in run.ledger.entries()
        if purpose == SETUP
        for _ in range(min(times, len(names)))
    ]
    return events[max(len(events) - len(names), 0) :]


def as_charged(run: Any, name: str, event: Event) -> Event:
    """The event of the next release of a resumed run, as it was charged.

    Raises CheckpointError if `event` differs from it by more than rounding.
    """
    charged = released_first(run)[len(run.setup) :]
    if not charged:
        return event  # of a ledger that does not say which charges came first
    for where, was, now in differences(event_to_json(charged[0]), event_to_json(event)):
        numbers = {type(was), type(now)} <= {int, float}
        if not (numbers and math.isclose(was, now, rel_tol=ROUNDING)):
            raise CheckpointError(
                f"{run.folder.path}: release {name} was charged as {charged[0]} and is {event} now "
                f"({where}); make the same calls of release_first, in the same order"
            )
    return charged[0]


def start_of(run: Any) -> tuple[Plan, Progress, list[Any], tuple[float, float]]:
    """(plan, Progress, history, seconds spent before) of a new `Run`, or of its checkpoint.

    Raises as `check_charged` and `selfcheck.check` do where the run may not be resumed.
    """
    plan = run.plan
    if not run.begun:
        return plan, Progress(), [], (0.0, 0.0)
    run.check_same()
    header = run.saved[1]
    progress = header["progress"]
    if not run.streams.reproducible:
        left = plan.steps - steps_lost(plan, run.ledger, progress)
        plan = plan.with_steps(max(left, progress.step))
    # as the trainer does, but before a file of the folder is changed
    check_charged(plan, run.ledger, progress)
    selfcheck.check(run.network, run.loss, run.examples[1])
    if not run.quiet and run.ranks.rank == 0:
        say(f"resuming from step {progress.step} of {plan.steps}")
    return plan, progress, header["history"], header["extra"]["seconds"]
