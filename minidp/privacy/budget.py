"""Odometer and filter: what was spent so far, and a stop before the step that would spend too
much.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..errors import BudgetExceededError, ParameterError
from ..util.text import upper_text
from ..util.validate import count as check_count
from ..util.validate import non_negative, open_probability
from .accountant import Bound
from .accountants import as_accountant
from .events import Event, NeighbouringRelation
from .ledger import STEP, Ledger


class Odometer:
    r"""Reads a ledger with one accountant, at any time.

    Guarantees
        Each reading bounds the epsilon of the events recorded so far, if their number, order, noise
        and sampling were fixed ahead; the *queries* (gradients at the current parameters) may
        depend on earlier outputs. To look and then decide freely how to go on is covered by no
        theorem used here (Rogers, Roth, Ullman, Vadhan 2016, Section 3, show that ordinary
        composition does not carry over): stop on a `Filter`, or at a number of steps fixed ahead.
    """

    def __init__(self, accountant: Any, ledger: Ledger):
        self.accountant, self.ledger = accountant, ledger

    def read(self, delta: float) -> Bound:
        """Bound on epsilon at `delta` for everything recorded so far."""
        return self.accountant.epsilon(self.ledger, delta)


class Filter:
    r"""Charges events to a ledger, and refuses the first one that would exceed (epsilon, delta).

    Guarantees
        A charge that would exceed the budget raises BudgetExceededError and records nothing, and so
        nothing may be released. The whole interaction is (epsilon, delta)-DP when each event is
        fixed before the data are touched by it. With an accountant that adds log moments or Renyi
        divergences at fixed orders, the noise and sampling of later events may even depend on
        earlier outputs (Feldman, Zrnic 2021; Lecuyer 2021: Renyi filters; Whitehouse et al. 2023
        show that strong composition loses nothing to a filter either). With any other accountant,
        take it for events fixed ahead only, as in Abadi et al. 2016, Section 4.

    The accountant may be its name; its relation is then that of `ledger`, by default ADD_REMOVE.

    >>> from minidp.privacy import Gaussian, PoissonSampled
    >>> budget = Filter("moments", epsilon=1.0, delta=1e-5)
    >>> budget.charge(PoissonSampled(0.01, Gaussian(4.0)), 5000)
    >>> budget.charge(PoissonSampled(0.01, Gaussian(4.0)), 5000)
    Traceback (most recent call last):
    minidp.errors.BudgetExceededError: 5000 x PoissonSampled(...) would bring epsilon to 1.25858...
    """

    def __init__(self, accountant: Any, epsilon: float, delta: float, ledger: Ledger | None = None):
        non_negative(epsilon=epsilon)
        open_probability(delta=delta)
        relation = NeighbouringRelation.ADD_REMOVE if ledger is None else ledger.relation
        self.accountant = as_accountant(accountant, relation)
        self.epsilon, self.delta = epsilon, delta
        self.ledger = Ledger(self.accountant.relation) if ledger is None else ledger

    def charge(self, event: Event, count: int = 1, purpose: str = STEP) -> None:
        """Record `event` `count` times, for `purpose` (see `Ledger`), if the budget allows it."""
        self.charge_all([(event, count)], purpose)

    def charge_all(self, charges: Sequence[tuple[Event, int]], purpose: str = STEP) -> None:
        """Record all (event, count) pairs if the budget allows them together; otherwise none."""
        after = self.ledger.copy()
        for event, count in charges:
            after.append(event, count, purpose)
        spent = self.accountant.epsilon(after, self.delta).upper
        if not spent <= self.epsilon:
            listed = ", ".join(f"{count} x {event!r}" for event, count in charges)
            raise BudgetExceededError(
                f"{listed} would bring epsilon to {upper_text(spent, 6)} at delta={self.delta:g}, "
                f"above the budget of {self.epsilon:g}; nothing was released"
            )
        for event, count in charges:
            self.ledger.append(event, count, purpose)


def max_steps(
    accountant: Any,
    prefix_ledger: Ledger,
    step_event: Event | Callable[[int], Iterable[tuple[Event, int]]],
    epsilon: float,
    delta: float,
    limit: int = 2**40,
) -> int:
    """The largest number of `step_event` after `prefix_ledger` whose epsilon.upper is at most
    `epsilon`.

    `step_event` is an event, or a function of the number of steps that gives the (event, count)
    pairs to charge. BudgetExceededError where even no step exceeds the target, ParameterError where
    `limit` steps stay below it.

    >>> from minidp.privacy import Gaussian, MomentsAccountant, PoissonSampled
    >>> max_steps(MomentsAccountant(), Ledger(), PoissonSampled(0.01, Gaussian(4.0)), 1.26, 1e-5)
    10021
    """
    non_negative(epsilon=epsilon)
    check_count(1, limit=limit)

    def spent(steps):
        ledger = prefix_ledger.copy()
        for event, times in step_event(steps) if callable(step_event) else [(step_event, steps)]:
            ledger.append(event, times)
        return accountant.epsilon(ledger, delta).upper

    before = spent(0)
    if not before <= epsilon:
        raise BudgetExceededError(
            f"epsilon is {upper_text(before)} at delta={delta:g} before the first step, above the "
            f"target of {epsilon:g}; raise the target or the noise of the releases before that"
        )
    high = 1
    while spent(high) <= epsilon:
        if high >= limit:
            raise ParameterError(
                f"epsilon stays below {epsilon:g} after {limit} steps; set the number of steps"
            )
        high = min(2 * high, limit)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if spent(middle) <= epsilon else (low, middle)
    return low
