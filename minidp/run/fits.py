"""Check that the planned steps of a run fit its budget, before the first of them is charged."""

import math

from ..errors import BudgetExceededError
from ..privacy.accountants import called
from ..privacy.budget import Filter
from ..privacy.calibrate import max_steps
from ..privacy.ledger import SETUP, Ledger
from .asked import Privacy
from .folder import EARLIER


def check_steps(asked: Privacy, budget: Filter, ledger: Ledger, releases: int = 0) -> None:
    """Raise BudgetExceededError if the budget pays for fewer steps than the plan has, on top of
    `ledger`.

    releases: number of releases that this attempt made before the first step. Nothing is refused
    with `stop_early`, for a plan whose steps `Plan.fitted` found, or if the ledger also holds
    charges of an earlier attempt that was killed before its first checkpoint.
    """
    plan = asked.plan
    if asked.stop_early or "steps" in plan.derived or budget.epsilon == math.inf:
        return
    if ledger.count_of(EARLIER) or ledger.count_of(SETUP) > releases:
        return
    after = ledger.copy()
    for event, times in plan.charges(0, plan.steps):
        after.append(event, times)
    epsilon, delta, accountant = budget.epsilon, budget.delta, budget.accountant
    if accountant.epsilon(after, delta).upper <= epsilon:
        return
    fit = max_steps(accountant, ledger, lambda n: plan.charges(0, n), epsilon, delta, plan.steps)
    before = ", before=events" if ledger.items() else ""
    arguments = f'"{called(accountant.name)}", {epsilon:g}, {delta:g}{before}'
    charged = ", where events are those of release_first" if before else ""
    raise BudgetExceededError(
        f"{plan.steps} lots are planned, and {fit} of them fit into epsilon {epsilon:g} at delta "
        f"{delta:g} by {called(accountant.name)}: find the noise for all with "
        f"plan.calibrated({arguments}), or plan as many as fit with plan.fitted({arguments})"
        f"{charged}; Privacy(..., stop_early=True) trains until the budget is used up"
    )
