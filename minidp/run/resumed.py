"""Where a run begins or resumes, and with which numbers."""

import sys
from typing import Any

from ..mechanism import Plan
from ..train import Progress
from .checkpoint import steps_lost


def start_of(run: Any) -> tuple[Plan, Progress, list[Any], tuple[float, float]]:
    """(plan, Progress, history, seconds spent before) of a new `Run`, or of its checkpoint."""
    plan = run.plan
    if not run.begun:
        return plan, Progress(), [], (0.0, 0.0)
    run.check_same()
    header = run.saved[1]
    progress = header["progress"]
    if not run.streams.reproducible:
        left = plan.steps - steps_lost(plan, run.ledger, progress)
        plan = plan.with_steps(max(left, progress.step))
    if not run.quiet and run.ranks.rank == 0:
        line = f"resuming from step {progress.step} of {plan.steps}"
        print(line, file=sys.stderr, flush=True)
    return plan, progress, header["history"], header["extra"]["seconds"]
