"""Odometer and filter: read the epsilon spent so far, and stop before a step would spend too
much.
"""

import os
import threading
from collections.abc import Sequence
from typing import Any

from ..errors import BudgetExceededError
from ..util.text import upper_text
from ..util.validate import non_negative, open_probability
from ..util.words import Named
from .accountant import Bound
from .accountants import as_accountant
from .events import Event, NeighbouringRelation
from .ledger import STEP, Ledger

# held from the look at a budget until the charge, so that no other thread charges in between
_charging = threading.RLock()


class Odometer:
    r"""Reads a ledger with one accountant, at any time.

    Guarantees
        Each reading bounds the epsilon of the events recorded so far, if their number, order, noise
        and sampling were fixed ahead. The *queries* (gradients at the current parameters) may
        depend on earlier outputs. No theorem used here covers a reader who looks and then decides
        freely how to continue: Rogers, Roth, Ullman, Vadhan 2016, Section 3, show that ordinary
        composition does not hold then. Stop by a `Filter`, or after a number of steps fixed ahead.
    """

    def __init__(self, accountant: Any, ledger: Ledger):
        self.accountant, self.ledger = accountant, ledger

    def read(self, delta: float) -> Bound:
        """Bound on epsilon at `delta` for everything recorded so far."""
        return self.accountant.epsilon(self.ledger, delta)


class Filter(Named):
    r"""Charges events to a ledger, and refuses the first one that would exceed (epsilon, delta).

    Guarantees
        A charge that would exceed the budget raises BudgetExceededError and records nothing; then
        nothing may be released. The whole interaction is (epsilon, delta)-DP if each event is fixed
        before it touches the data. With an accountant that adds log moments or Renyi divergences at
        fixed orders, the noise and sampling of later events may even depend on earlier outputs
        (Feldman, Zrnic 2021; Lecuyer 2021: Renyi filters; Whitehouse et al. 2023 show that strong
        composition loses nothing to a filter either). With any other accountant, all events must be
        fixed ahead, as in Abadi et al. 2016, Section 4.

    The accountant may be given by name; it then takes the relation of `ledger`, by default
    ADD_REMOVE.

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
        """Record all (event, count) pairs if the budget allows them together; otherwise none. Safe
        to call from several threads.
        """
        with _charging:
            after = self.ledger.copy()
            for event, count in charges:
                after.append(event, count, purpose)
            spent = self.accountant.epsilon(after, self.delta).upper
            if not spent <= self.epsilon:
                listed = ", ".join(f"{count} x {event!r}" for event, count in charges)
                raise BudgetExceededError(
                    f"{listed} would bring epsilon to {upper_text(spent, 6)} at "
                    f"delta={self.delta:g}, above the budget of {self.epsilon:g}; nothing was "
                    "released"
                )
            for event, count in charges:
                self.ledger.append(event, count, purpose)


def _forked():
    global _charging
    _charging = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
