"""Find where a run begins or resumes, and with which derived numbers.

Processors and libraries differ in the last digits of a derived noise multiplier. So a resumed run
takes derived numbers from its folder and does not derive them again.
"""

from typing import Any

from numpy.typing import NDArray

from ..errors import CheckpointError
from ..mechanism import Plan
from ..privacy import Filter
from ..privacy.events import Event
from ..privacy.ledger import SETUP
from ..ranks import current
from ..train import Progress, selfcheck
from ..train.progress import check_charged
from ..util.files import damage_named, read_json
from ..util.text import upper_text
from .checkpoint import steps_lost
from .covered import ROUNDING, differs
from .folder import CHARGED, CHECKPOINT, CONFIG, LEDGER, RESULT, RunFolder
from .phases import Asked, Opened
from .schedules import from_json


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
    if stored is None:  # another run may replace one that charged nothing
        return plan
    with damage_named(path, CheckpointError):
        settings = stored["settings"]
        groups = settings["clip_groups"]
        if len(groups) != len(plan.sanitizer.groups):
            return plan  # `RunFolder.open` names the difference
        derived = plan.derived
        if "noise_multiplier" in derived:
            plan = plan.with_noise([from_json(group["noise_multiplier"]) for group in groups])
        if "steps" in derived:
            plan = plan.with_steps(settings["planned_steps"])
    return plan


def check_target(plan: Plan, budget: Filter, folder: RunFolder) -> None:
    """Raise CheckpointError if the plan that config.json holds would exceed the target."""
    spent = budget.accountant.epsilon(plan.ledger(), budget.delta).upper
    if not spent <= budget.epsilon * (1 + ROUNDING):
        raise CheckpointError(
            f"{folder.path / CONFIG}: {plan.steps} lots with its noise multiplier would cost "
            f"epsilon {upper_text(spent)}, above the target {budget.epsilon:g}: the file was "
            "changed, or was written for another target; choose another folder"
        )


def released_first(opened: Opened) -> list[Event]:
    """The events before the first step of a resumed run, as its ledger has them."""
    names = [name for name in opened.saved[0] if name.startswith("release/")]
    events = [
        event
        for event, times, purpose in opened.ledger.entries()
        if purpose == SETUP
        for _ in range(min(times, len(names)))
    ]
    return events[max(len(events) - len(names), 0) :]


def as_charged(opened: Opened, made: int, name: str, event: Event, folder: RunFolder) -> Event:
    """The event of the next release of a resumed run, as it was charged; made: how many releases
    came before it.

    Raises CheckpointError if `event` differs from it by more than rounding, except if another
    version finished the run: it chose its own noise.
    """
    charged = released_first(opened)[made:]
    if not charged:
        return event  # the ledger does not say which charges came before the first step
    if folder.finished and folder.by_another_version:
        return charged[0]
    if (where := differs(charged[0], event)) is not None:
        raise CheckpointError(
            f"{folder.path}: release {name} was charged as {charged[0]} and is {event} now "
            f"({where}); make the same calls of release_first, in the same order"
        )
    return charged[0]


def resuming(planned: int, left: int, step: int) -> str:
    """Where a run goes on, and what a crash cost it, in words."""
    found = f"resuming from step {step} of {left}"
    if left == planned:
        return found
    lost = f"{planned - left} lots of a crash stay charged"
    return f"{found}: {lost}, so {left} of {planned} are trained"


def start_of(
    asked: Asked, opened: Opened, y: NDArray
) -> tuple[Plan, Progress, list[Any], tuple[float, float]]:
    """(plan, Progress, history, seconds spent before) of a new run, or of its checkpoint.

    y: the targets of training. Raises as `check_charged` and `selfcheck.check` do if the run may
    not be resumed.
    """
    plan, training = asked.plan, asked.training
    if opened.saved is None:
        return plan, Progress(), [], (0.0, 0.0)
    header = opened.saved[1]
    progress = header["progress"]
    if not asked.streams.reproducible:
        left = plan.steps - steps_lost(plan, opened.ledger, progress)
        plan = plan.with_steps(max(left, progress.step))
    # as the trainer does, but before the folder's files are changed
    check_charged(plan, opened.ledger, progress)
    selfcheck.check(training.network, training.loss, y)
    return plan, progress, header["history"], header["extra"]["seconds"]
