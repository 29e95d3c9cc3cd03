"""Privacy of k examples at once."""

import math
from dataclasses import replace

from ..errors import UnsupportedEventError
from ..util.validate import count as check_count
from .accountant import Accountant, Bound
from .events import PoissonSampled
from .ledger import Ledger

MARGIN = 1e-4  # share by which d is chosen below the value of [C1]
MOST_TRIES = 100
LEAST_D = 1e-300  # smaller d leave float64


def group_epsilon(
    accountant: Accountant,
    ledger: Ledger,
    delta: float,
    group_size: int = 1,
) -> Bound:
    r"""Bound on epsilon for `group_size` = k examples, such as one person's, that are added or
    removed together.

    Bound
        [C1]  delta = d (e^(k epsilon) - 1) / (e^epsilon - 1)    (epsilon, d)-DP gives (k epsilon,
              delta)-DP
        upper is the smaller of this bound and the cost of the group's own events
        (`Event.for_group`). lower is that of the group's events if nothing is sampled, else
        unknown.

    Source
        [C1]  Vadhan 2017, the sum that Lemma 2.2 bounds by k e^((k-1) epsilon) d (Abadi et al.
              2016, Section 2.1)

    >>> from minidp.privacy import Gaussian, MomentsAccountant
    >>> ledger = Ledger()
    >>> ledger.append(Gaussian(10.0))
    >>> [round(group_epsilon(MomentsAccountant(), ledger, 1e-5, k).upper, 3) for k in (1, 2, 5)]
    [0.485, 0.98, 2.526]
    """
    check_count(1, group_size=group_size)
    single = accountant.epsilon(ledger, delta)
    if group_size == 1 or single.upper == math.inf:
        return single
    own = _by_own_events(ledger, group_size, lambda group: accountant.epsilon(group, delta))
    upper = min(_k_epsilon(accountant, ledger, delta, group_size), own.upper)
    return Bound(own.lower, upper, upper)


def group_delta(
    accountant: Accountant,
    ledger: Ledger,
    epsilon: float,
    group_size: int = 1,
) -> Bound:
    r"""Bound on delta for a group as in `group_epsilon`.

    Bound
        [C2]  delta at epsilon of the group's events, as in `group_epsilon`
        [C3]  delta = d (e^epsilon - 1) / (e^(epsilon / k) - 1)    (epsilon / k, d)-DP gives
              (epsilon, delta)-DP
        upper is the smaller of both. lower is that of the group's events, unknown if something is
        sampled.

    Source
        [C2]  own derivation: `PoissonSampled.for_group` [C1]
        [C3]  see `group_epsilon` [C1]
    """
    check_count(1, group_size=group_size)
    single, k = accountant.delta(ledger, epsilon), group_size
    if k == 1:
        return single
    share, upper = accountant.delta(ledger, epsilon / k).upper, 0.0
    if share > 0:
        upper = math.exp(min(0.0, _log_sum(k, epsilon / k) + math.log(share)))  # [C3]
    own = _by_own_events(ledger, k, lambda group: accountant.delta(group, epsilon))  # [C2]
    upper = min(upper, own.upper)
    return Bound(own.lower, upper, upper)


def _log_sum(k, epsilon):
    """ln((e^(k epsilon) - 1) / (e^epsilon - 1)), rounded up."""
    sum_of_two = (
        math.log(math.expm1(-k * epsilon) / math.expm1(-epsilon)) if epsilon > 0 else math.log(k)
    )
    return ((k - 1) * epsilon + sum_of_two) * (1 + 1e-15) + 1e-15


def _by_own_events(ledger, k, bound_of):
    """The Bound of a ledger that costs one example as much as this ledger costs k examples. It is
    infinite if there is no rule for such a ledger, and has no lower end if anything is sampled.
    """
    parts = [part for event, count in ledger.items() for part in event.primitives(count)]
    try:
        group = Ledger(ledger.relation, [(event.for_group(k), n) for event, n in parts])
    except UnsupportedEventError:
        return Bound(None, math.inf, math.inf)
    bound = bound_of(group)
    sampled = any(isinstance(event, PoissonSampled) for event, _ in parts)
    return replace(bound, lower=None if sampled else bound.lower)


def _k_epsilon(accountant, ledger, delta, k):
    """k epsilon at a d that [C1] allows, which is found by lowering d; infinite if no d is
    found.
    """
    d = delta
    for _ in range(MOST_TRIES):
        epsilon = accountant.epsilon(ledger, d).upper
        allowed = delta * math.exp(-_log_sum(k, epsilon)) * (1 - 1e-15)  # [C1]
        if d <= allowed:
            return k * epsilon
        d = allowed * (1 - MARGIN)
        if d < LEAST_D:
            break
    return math.inf


class GroupAccountant:
    """An accountant that protects groups of `group_size` examples, by `group_epsilon` and
    `group_delta`.
    """

    def __init__(self, accountant: Accountant, group_size: int):
        self.accountant, self.group_size = accountant, group_size
        self.name, self.kind, self.relation = accountant.name, accountant.kind, accountant.relation

    def epsilon(self, ledger: Ledger, delta: float) -> Bound:
        """Bound on epsilon, as `group_epsilon`."""
        return group_epsilon(self.accountant, ledger, delta, self.group_size)

    def delta(self, ledger: Ledger, epsilon: float) -> Bound:
        """Bound on delta, as `group_delta`."""
        return group_delta(self.accountant, ledger, epsilon, self.group_size)
