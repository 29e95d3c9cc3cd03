"""Progress of training, and whether the ledger covers it."""

from dataclasses import dataclass

from ..errors import CheckpointError, ParameterError
from ..mechanism import Plan
from ..privacy.ledger import STEP, Ledger
from ..util.validate import count


@dataclass(frozen=True)
class Progress:
    """Progress of training.

    step      lots processed
    charged   lots that the ledger covers, at least as many as were processed
    """

    step: int = 0
    charged: int = 0

    def __post_init__(self):
        count(step=self.step)
        count(self.step, charged=self.charged)


def check_charged(plan: Plan, ledger: Ledger, progress: Progress) -> None:
    """Refuse to resume unless the ledger covers the steps that were charged and did not run.

    The plan recomputes the events of steps progress.step to progress.charged - 1, because a
    schedule may have changed since they were charged. They must equal the last steps of the ledger.

    Raises ParameterError if the ledger holds fewer steps than progress.charged, or progress.step is
    inside a period of the sampler; CheckpointError if the ledger's last steps are other events.
    """
    period = plan.sampler.period
    held = ledger.count_of(STEP) * period
    if progress.step % period and progress.step < plan.steps:
        raise ParameterError(
            f"expected progress.step={progress.step} at the end of a period of the sampler, a "
            f"multiple of {period}: the lots of a period are drawn and charged together"
        )
    if progress.charged > held:
        raise ParameterError(
            f"expected a ledger that covers progress.charged={progress.charged} lots, got one that "
            f"covers {held}: give the ledger that these lots were charged to, or begin with "
            "Progress()"
        )
    now = Ledger(plan.relation, plan.charges(progress.step, progress.charged))
    left = now.count_of(STEP)
    last = []
    for event, times, purpose in reversed(ledger.entries()):
        if purpose == STEP:
            last.append((event, min(times, left)))
            left -= last[-1][1]
    before = Ledger(plan.relation, reversed(last))
    if before.items() != now.items():
        raise CheckpointError(
            f"the lots {progress.step} to {progress.charged - 1} were charged and did not run yet: "
            f"they were charged as {_shown(before)} and would now cost {_shown(now)}; resume with "
            "the plan that was charged, whose schedules depend on the step alone"
        )


def _shown(ledger):
    """The first events of a ledger, in a line."""
    events = [f"{times} x {event}" for event, times in ledger.items()]
    return ", ".join(events[:3]) + (", ..." if len(events) > 3 else "")
