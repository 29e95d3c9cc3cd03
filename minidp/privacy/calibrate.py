"""Find the noise or the number of steps for a target epsilon, rounded to the safe side."""

import math
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import BudgetExceededError, NumericalBoundError, ParameterError
from ..util.text import upper_text
from ..util.validate import count as check_count
from ..util.validate import non_negative, open_probability, positive_finite
from .accountant import Accountant
from .events import Event
from .group_privacy import GroupAccountant
from .ledger import Ledger

LEAST_NOISE, MOST_NOISE = 1e-2, 1e7  # supported by accountants; ever of use
CLOSENESS = 0.999  # the answer's epsilon is at least this share of the target


def noise_multiplier_for(
    accountant: Accountant | GroupAccountant,
    ledger_of: Callable[[float], Ledger],
    epsilon: float,
    delta: float,
) -> float:
    """A noise multiplier whose certified epsilon is at most `epsilon` and at least 99.9% of it.

    ledger_of(noise_multiplier) builds the ledger, whose epsilon must fall as the noise grows.
    Raises BudgetExceededError if no noise is enough because something else in the ledger costs too
    much, and ParameterError if even the least noise is enough.

    >>> from minidp.privacy import Gaussian, Ledger, MomentsAccountant, PoissonSampled
    >>> def ledger_of(noise_multiplier):
    ...     ledger = Ledger()
    ...     ledger.append(PoissonSampled(0.01, Gaussian(noise_multiplier)), 10_000)
    ...     return ledger
    >>> round(noise_multiplier_for(MomentsAccountant(), ledger_of, 2.0, 1e-5), 2)
    2.62
    """
    positive_finite(epsilon=epsilon)
    open_probability(delta=delta)

    def spent(log_noise):
        return accountant.epsilon(ledger_of(math.exp(log_noise)), delta).upper

    def none_enough():
        least = accountant.epsilon(ledger_of(MOST_NOISE), delta).upper
        return BudgetExceededError(
            f"no noise multiplier up to {MOST_NOISE:g} is enough: with it epsilon at "
            f"delta={delta:g} is {upper_text(least)}, above the target of {epsilon:g}; raise the "
            "target, take fewer steps, or give what comes beside the steps more noise"
        )

    try:
        # infinite noise costs nothing, unless the ledger holds something beside the steps
        without = ledger_of(math.inf)
    except ParameterError:  # some mechanisms, such as a ClipGroup, refuse infinite noise
        without = ledger_of(MOST_NOISE)
    if accountant.epsilon(without, delta).upper > epsilon:
        raise none_enough()
    all_enough = (
        f"a noise multiplier of {LEAST_NOISE:g} already keeps epsilon at delta={delta:g} below "
        f"{epsilon:g}: such an epsilon protects nobody; ask for a smaller one, or for math.inf, "
        "which takes no noise"
    )
    ends = _bracket(spent, epsilon, all_enough)
    if ends is None:
        raise none_enough()
    return math.exp(_close_in(spent, epsilon, *ends))


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
    pairs to charge. Raises BudgetExceededError if the target is exceeded before the first step, and
    ParameterError if `limit` steps stay below it.

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


def _bracket(spent, target, all_enough):
    """((x, epsilon) within the target, (x, epsilon) above it), x the logarithm of the noise
    multiplier; None if every epsilon is above the target.

    Raises ParameterError(all_enough) if epsilon is within the target even at the least noise.
    """
    here = (0.0, spent(0.0))
    falling = here[1] > target
    end = math.log(MOST_NOISE if falling else LEAST_NOISE)
    step = 1.0 if falling else -1.0
    while True:
        x = min(here[0] + step, end) if step > 0 else max(here[0] + step, end)
        there = (x, spent(x))
        if (there[1] > target) != falling:
            return (there, here) if falling else (here, there)
        if x == end:
            if falling:
                return None
            raise ParameterError(all_enough)
        here, step = there, 1.5 * step


def _close_in(spent, target, enough, too_little):
    """False position on ln epsilon, kept inside the bracket by bisection; both ends are (x,
    epsilon).
    """
    for attempt in range(200):
        if enough[1] >= CLOSENESS * target:
            return enough[0]
        share = 0.5
        if attempt % 3 != 2 and enough[1] > 0 and too_little[1] < math.inf:
            # aim a little below the target, since only that side may be returned
            aim = math.log(target * (1 - 0.4 * (1 - CLOSENESS)))
            share = (aim - math.log(enough[1])) / (math.log(too_little[1]) - math.log(enough[1]))
            share = min(max(share, 1e-3), 1 - 1e-3)
        x = enough[0] + share * (too_little[0] - enough[0])
        if x in (enough[0], too_little[0]):
            break
        value = spent(x)
        enough, too_little = ((x, value), too_little) if value <= target else (enough, (x, value))
    raise NumericalBoundError(
        f"what is spent jumps over {target:g}: {enough[1]:g} is the nearest below; "
        f"take another accountant, another target or a larger delta"
    )
