"""Privacy of k examples at once."""
import math

from ..errors import UnsupportedEventError
from ..validate import count as check_count
from .accountant import Accountant, Bound, primitives
from .events import ApproximateDP, Gaussian, Laplace, NonPrivate, PoissonSampled, TotalVariation
from .ledger import Ledger


def group_epsilon(accountant: Accountant, ledger: Ledger, delta: float, group_size: int = 1) -> Bound:
    r"""Bound on epsilon when neighbours differ in `group_size` = k examples.

    Bound
        [C1]  Gaussian(s) -> Gaussian(s/k), Laplace(b) -> Laplace(b/k), and sampled with probability q ->
              the same sampled with 1 - (1-q)^k; TotalVariation as it is, since no neighbours are in it
        [C2]  (epsilon, d)-DP gives (k epsilon, k exp((k-1) epsilon) d)-DP; d such that this is delta
        upper is the smaller of both (C1 is not for fixed lots); lower the group's unless sampled, else one example's.

    Source
        [C1]  own derivation: sensitivity grows k-fold. With probability (1-q)^k no member is in the lot; otherwise at
              most k are, a shift of at most k, and sampling preserves domination (Zhu, Dong, Wang 2022, Theorem 11)
        [C2]  Abadi et al. 2016, Section 2.1; Vadhan 2017, Lemma 2.2

    >>> from minidp.privacy import MomentsAccountant
    >>> ledger = Ledger()
    >>> ledger.append(Gaussian(10.0))
    >>> [round(group_epsilon(MomentsAccountant(), ledger, 1e-5, k).upper, 3) for k in (1, 2, 5)]
    [0.485, 0.98, 2.526]
    """
    check_count(1, group_size=group_size)
    single = accountant.epsilon(ledger, delta)
    if group_size == 1 or single.upper == math.inf:
        return single
    return _smaller(accountant.epsilon, ledger, delta, group_size, single.lower,
                    _generic(accountant, ledger, delta, group_size))


def group_delta(accountant: Accountant, ledger: Ledger, epsilon: float, group_size: int = 1) -> Bound:
    r"""Bound on delta when neighbours differ in `group_size` = k examples.

    Bound
        [C3]  delta at epsilon of the group's events, as in `group_epsilon`
        [C4]  (epsilon / k, d)-DP gives (epsilon, k exp((k-1) epsilon / k) d)-DP
        upper is the smaller of both (C3 is not for fixed lots); lower the group's unless sampled, else one example's.

    Source
        [C3]  own derivation: see `group_epsilon` [C1]
        [C4]  Abadi et al. 2016, Section 2.1; Vadhan 2017, Lemma 2.2
    """
    check_count(1, group_size=group_size)
    single, k = accountant.delta(ledger, epsilon), group_size
    if k == 1:
        return single
    share, upper = accountant.delta(ledger, epsilon / k).upper, 0.0
    if share > 0:
        upper = math.exp(min(0.0, math.log(k) + (k - 1) * epsilon / k + math.log(share)))       # [C4]
    return _smaller(accountant.delta, ledger, epsilon, k, single.lower, upper)                  # [C3]


def _smaller(read, ledger, target, k, lower, upper):
    """The Bound that `upper` and read(ledger, target) give, of the ledger that costs one example what this costs k."""
    grouped, sampled = Ledger(ledger.relation), False
    try:
        for event, count in ledger.items():
            for primitive, n in primitives(event, ledger.relation, count):
                grouped.append(_scaled(primitive, k), n)
                sampled = sampled or isinstance(primitive, PoissonSampled)
        bound = read(grouped, target)
        lower, upper = lower if sampled else bound.lower, min(upper, bound.upper)
    except UnsupportedEventError:
        pass
    return Bound(lower, upper, upper)


def _scaled(event, k):
    if isinstance(event, PoissonSampled):
        probability = -math.expm1(k * math.log1p(-event.sampling_probability))
        return PoissonSampled(probability, _scaled(event.event, k))                             # [C1]
    if isinstance(event, (Gaussian, Laplace)):
        return type(event)(event.noise_multiplier / k)
    if isinstance(event, ApproximateDP) and event.epsilon == 0:
        return ApproximateDP(0.0, min(1.0, k * event.delta * (1 + 1e-15)))
    if isinstance(event, (NonPrivate, TotalVariation)):
        return event
    raise UnsupportedEventError(f"no group rule for {event!r}")


def _generic(accountant, ledger, delta, k):
    """The smallest k epsilon(d) with k exp((k-1) epsilon(d)) d <= delta, by bisection of ln d."""
    def excess(log_d):
        epsilon = accountant.epsilon(ledger, math.exp(log_d)).upper
        return math.log(k) + (k - 1) * epsilon + log_d - math.log(delta), k * epsilon           # [C2]

    low, high = -700.0, math.log(delta)
    above, best = excess(low)
    if above > 0 and best < math.inf:
        return math.inf
    for _ in range(25):
        middle = 0.5 * (low + high)
        above, epsilon = excess(middle)
        if above <= 0 or epsilon == math.inf:   # too small a share for what TotalVariation adds to it
            low, best = middle, min(best, epsilon)
        else:
            high = middle
    return best


class GroupAccountant:
    """An accountant that protects groups of `group_size` examples, by `group_epsilon` and `group_delta`."""

    def __init__(self, accountant: Accountant, group_size: int):
        check_count(1, group_size=group_size)
        self.accountant, self.group_size = accountant, group_size
        self.name, self.kind, self.relation = accountant.name, accountant.kind, accountant.relation

    def epsilon(self, ledger: Ledger, delta: float) -> Bound:
        """Bound on epsilon, as `group_epsilon`."""
        return group_epsilon(self.accountant, ledger, delta, self.group_size)

    def delta(self, ledger: Ledger, epsilon: float) -> Bound:
        """Bound on delta, as `group_delta`."""
        return group_delta(self.accountant, ledger, epsilon, self.group_size)
