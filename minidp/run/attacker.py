"""The meaning of an epsilon for a person: how often an attacker can be right about one example."""

import math
from typing import Any

from ..certified.gaussian import gaussian_epsilon
from ..errors import UnsupportedEventError
from ..privacy.group_privacy import GroupAccountant
from ..privacy.ledger import Ledger
from ..util.text import upper_text
from .tradeoff import tangents

RATES = (0.1, 0.01, 0.001)  # false positive rates at which the power is computed
LEAST_RATE = 1e-6  # below it, the extreme tail of the curve would decide mu
TANGENTS = 16


def meaning_of(ledger: Ledger, delta: float, group_size: int = 1) -> dict[str, Any] | None:
    r"""Limits on any attacker who tries to tell two neighbours apart: two readings of the trade-off
    curve f.

    Returns {"true_positive_rates": {"0.1": ..}, "mu": .., "least_rate": LEAST_RATE}, upper bounds
    by the loss distribution; None if it has no finite epsilon. `delta` decides where tangents are
    computed; bounds hold for any. Neighbours differ in `group_size` rows of one person, which are
    added or removed together.

    Bound
        [C1]  1 - f(a) <= p(a), p(a) = min_epsilon (e^epsilon a + delta(epsilon))    over the
              tangents (epsilon, delta(epsilon))
        [C2]  mu = max_a (Phi^-1(1 - a) - Phi^-1(1 - min_epsilon (e^epsilon a +
              delta(epsilon))))    over the corners a >= LEAST_RATE; the Gaussian curve G_mu lies
              below f where neither rate of error is smaller

    Source
        [C1]  Wasserman, Zhou 2010; Dong, Roth, Su 2022 (arXiv:1905.02383), Proposition 2; reported
              in the form of arXiv:2503.10945
        [C2]  own derivation: a convex curve that lies below the corners of a polygon lies below its
              sides; f and G_mu are their own inverses

    >>> from minidp.privacy import Gaussian
    >>> ledger = Ledger()
    >>> ledger.append(Gaussian(1.0))
    >>> found = meaning_of(ledger, 1e-5)
    >>> [f"{power:.3f}" for power in found["true_positive_rates"].values()], f"{found['mu']:.2f}"
    (['0.389', '0.092', '0.018'], '1.01')
    """
    lines = lines_of(ledger, delta, group_size)
    if not lines:
        return None
    power = {f"{rate:g}": min(math.exp(e) * rate + d for e, d in lines) for rate in RATES}  # [C1]
    mu = _mu_of(lines)
    return {
        "true_positive_rates": {
            rate: min(1.0, value * (1 + 1e-12)) for rate, value in power.items()
        },
        "mu": mu,
        "least_rate": LEAST_RATE,
    }


def lines_of(ledger: Ledger, delta: float, group_size: int = 1) -> list[tuple[float, float]]:
    """The tangents (epsilon, delta(epsilon)) from which `meaning_of` computes its bounds; none if
    the loss distribution has no finite epsilon.
    """
    from ..certified.accountant import LossDistributionAccountant

    certified = LossDistributionAccountant(ledger.relation, quick=True)
    accountant = GroupAccountant(certified, group_size)
    try:
        epsilon = accountant.epsilon(ledger, delta).upper
    except UnsupportedEventError:
        return []
    if epsilon == math.inf:
        return []
    return tangents(accountant, ledger, _slopes(_gaussian_like(epsilon, delta or LEAST_RATE)))


def _slopes(mu):
    """Epsilons of tangents of a Gaussian curve with this mu, at even steps and at RATES."""
    from scipy.special import ndtri

    slopes: list[float] = []
    even = [i * 4.8 / (TANGENTS - 1) for i in range(TANGENTS)]
    for z in [*even, *(-float(ndtri(rate)) for rate in RATES)]:
        # the tangent at the rate Phi(-z); steeper ones bound none of these rates
        at = min(max(0.0, mu * z - 0.5 * mu * mu), -math.log(LEAST_RATE))
        if all(abs(at - other) > 1e-9 for other in slopes):
            slopes.append(at)
    return slopes


def _mu_of(lines):
    """mu by the tangents, rounded up; infinite if they bound nothing."""
    from scipy.special import ndtri

    def missed(rate):
        return max(1 - d - math.exp(e) * rate for e, d in lines)

    flat = dict(lines).get(0.0, 1.0)
    ends = [LEAST_RATE, 0.5 * (1 - flat)]  # where the flattest line meets its inverse
    crossings = (
        (other_d - d) / (math.exp(e) - math.exp(other_e))
        for e, d in lines
        for other_e, other_d in lines
        if e > other_e
    )
    corners = [a for a in (*ends, *crossings) if LEAST_RATE <= a <= ends[1]]
    mu = max(
        (float(-ndtri(a) - ndtri(missed(a))) if missed(a) > 0 else math.inf for a in corners),
        default=math.inf,
    )  # [C2]
    return max(0.0, mu) * (1 + 1e-9)


def in_words(meaning: dict[str, Any], group_size: int = 1, others: str = "row") -> str:
    """The result of `meaning_of` in a sentence or two. others: the rows that the attacker knows, in
    words.
    """
    powers = ", ".join(
        f"{upper_text(power, 3)} at a false positive rate of {float(rate):g}"
        for rate, power in meaning["true_positive_rates"].items()
    )
    mu = (
        ""
        if float(meaning["mu"]) == math.inf  # "inf" if it was read from JSON
        else (
            f" This is no easier than telling N(0, 1) from N({upper_text(meaning['mu'], 3)}, 1), "
            f"as long as neither error rate is below {meaning['least_rate']:g}."
        )
    )
    told = "two neighbouring data sets"
    if group_size > 1:
        told = f"data sets with and without the {group_size} rows of one person"
    return (
        f"An attacker who knows every other {others} tries to tell {told} apart. The "
        f"true positive rate is at most {powers}.{mu}"
    )


def large_delta(delta: float, size: int) -> str:
    """Why delta is too large for `size` examples; "" if it is small enough."""
    if delta * size < 1:
        return ""
    return f"not below 1/{size}, so that publishing somebody's whole row would pass the guarantee"


def _gaussian_like(epsilon, delta):
    """The mu at which a Gaussian curve has this epsilon at delta, to one per cent."""
    low, high = 1e-9, 1.0
    while gaussian_epsilon(high, delta) < epsilon:
        low, high = high, 2 * high
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gaussian_epsilon(middle, delta) < epsilon else (low, middle)
    return high
