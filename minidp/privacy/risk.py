"""From the risk that an attacker may reach to the noise that keeps it, on the safe side."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import NumericalBoundError, ParameterError
from ..util.text import upper_text
from ..util.validate import open_probability, positive_finite
from .accountant import Accountant
from .calibrate import LEAST_NOISE, least_noise
from .group_privacy import GroupAccountant
from .ledger import Ledger
from .meaning import LEAST_RATE, mu_of, upper_ends

KINDS = {  # names given together: what the last of them is called
    ("fpr", "tpr"): "the true positive rate",
    ("advantage",): "the advantage",
    ("mu",): "mu",
}
ROUNDS = 10  # of moving the tangent, at most
CLOSENESS = 0.996  # of what is reached beyond blind guesses
BY_SAMPLING = "sampling alone gives the risk, and this is the least noise that is supported"
MU_CLOSENESS, MU_STEP = 0.99, 1.03  # fewer readings, since each takes many tangents


@dataclass(frozen=True)
class Risk:
    r"""What an attacker may reach who tells two neighbours apart, whatever he knows.

    Give tpr, his largest true positive rate at the false positive rate fpr; or advantage, the
    largest difference of the two at any rate; or mu, where he has no easier task than telling
    N(0, 1) from N(mu, 1), as `meaning.meaning_of` reads it.

    Bound
        [C1]  p = min_epsilon (e^epsilon fpr + delta(epsilon))    the true positive rate at fpr;
              over the epsilons that are tried, negative ones among them
        [C2]  delta(-epsilon) = 1 - e^-epsilon + e^-epsilon delta(epsilon)    of both directions
              together; the advantage is delta(0)

    Source
        [C1]  Wasserman, Zhou 2010; Dong, Roth, Su 2022 (arXiv:1905.02383), Proposition 2
        [C2]  own derivation: of a set, P - e^-epsilon Q is 1 - e^-epsilon + e^-epsilon (Q -
              e^epsilon P) of its complement

    Raises
        ParameterError   other names together; rates not in (0, 1); tpr not above fpr

    >>> from minidp.privacy import Gaussian, PoissonSampled
    >>> def ledger_of(sigma):
    ...     return Ledger(entries=[(PoissonSampled(0.01, Gaussian(sigma)), 1000)])
    >>> risk = Risk(fpr=0.01, tpr=0.05)
    >>> sigma = risk.noise_multiplier(ledger_of)
    >>> round(sigma, 2), risk.reached(ledger_of(sigma)) <= 0.05
    (0.78, True)
    """

    fpr: float | None = None
    tpr: float | None = None
    advantage: float | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        given = self.given
        if tuple(given) not in KINDS:
            raise ParameterError(
                "expected a risk as fpr and tpr, as advantage, or as mu, got "
                f"{' and '.join(given) or 'none of these'}"
            )
        for name, value in given.items():
            (positive_finite if name == "mu" else open_probability)(**{name: value})
        if self.fpr is not None and not self.fpr < self.target:
            raise ParameterError(
                f"expected tpr={self.tpr} to be above fpr={self.fpr}: blind guesses have equal "
                "rates"
            )

    @classmethod
    def of(cls, given: Any) -> "Risk":
        """The risk of a dictionary such as {"fpr": 0.01, "tpr": 0.05}."""
        if isinstance(given, cls):
            return given
        try:
            return cls(**given)
        except TypeError:
            raise ParameterError(
                f'expected attack to be {{"fpr": .., "tpr": ..}}, {{"advantage": ..}} or '
                f'{{"mu": ..}}, got {given!r:.80}'
            ) from None

    @property
    def given(self) -> dict[str, Any]:
        """The numbers that were given, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def target(self) -> float:
        """The number that must not be exceeded."""
        return [*self.given.values()][-1]

    @property
    def what(self) -> str:
        """What the target is called."""
        return KINDS[tuple(self.given)]

    @property
    def likeness(self) -> float:
        """The mu of a Gaussian mechanism with this risk."""
        from scipy.special import ndtri

        if self.mu is not None:
            return self.mu
        if self.fpr is not None:
            return float(ndtri(self.target) - ndtri(self.fpr))
        return 2 * float(ndtri(0.5 + 0.5 * self.target))

    @property
    def first_slope(self) -> float:
        """The epsilon of the tangent at fpr of a Gaussian curve with this risk."""
        from scipy.special import ndtri

        return -self.likeness * float(ndtri(self.fpr)) - 0.5 * self.likeness**2

    @property
    def point(self) -> tuple[float, float]:
        """(false positive rate, false negative rate) that the curve must not lie below."""
        from scipy.special import ndtr

        if self.fpr is not None:
            return self.fpr, 1 - self.target
        rate = float(ndtr(-0.5 * self.likeness))
        return rate, rate

    def in_words(self, value: float | None = None) -> str:
        """A clause: what the risk is, or (value) what was reached of it."""
        shown = upper_text(self.target if value is None else value, 6)
        if self.fpr is not None:
            return (
                f"the true positive rate is at most {shown} at a false positive rate of "
                f"{self.fpr:g}"
            )
        if self.advantage is not None:
            return f"the true positive rate is above the false positive rate by at most {shown}"
        return (
            f"the task is no easier than telling N(0, 1) from N({shown}, 1), as long as neither "
            f"error rate is below {LEAST_RATE:g}"
        )

    def reached(self, ledger: Ledger, group_size: int = 1) -> float:
        """What an attacker reaches of it: an upper bound, by the loss distribution."""
        accountant = upper_ends(ledger.relation, group_size)
        if self.mu is not None:
            return mu_of(accountant, ledger, self.mu)
        if self.advantage is not None:
            return power(accountant, ledger, 0.0, 0.0)
        return self.tangent(accountant, ledger)[1]

    def tangent(
        self, accountant: Accountant | GroupAccountant, ledger: Ledger
    ) -> tuple[float, float]:
        """(epsilon, true positive rate) of the tangent that bounds the latter best."""
        from scipy.optimize import minimize_scalar

        rate = self.given["fpr"]

        def bound(epsilon):
            return power(accountant, ledger, rate, epsilon)

        # beyond these the bound is above the target whatever delta is
        ends = math.log((1 - self.target) / (1 - rate)), math.log(self.target / rate)
        near = 0.01 * (ends[1] - ends[0])
        found = minimize_scalar(bound, bounds=ends, method="bounded", options={"xatol": near})
        lowest = min((bound(at), at) for at in (0.0, float(found.x)))
        return lowest[1], lowest[0]

    def noise_multiplier(self, ledger_of: Callable[[float], Ledger], group_size: int = 1) -> float:
        """A noise multiplier at which no more than this risk is reached, at most 0.5% above the
        least; `calibrate.LEAST_NOISE` where sampling alone gives it.

        ledger_of(noise_multiplier) builds the ledger. Raises as `noise_multiplier_for`.
        """
        from scipy.special import ndtr, ndtri

        if self.by_sampling(ledger_of, group_size):
            return LEAST_NOISE
        accountant = upper_ends(ledger_of(1.0).relation, group_size)
        if self.advantage is not None:
            return self._by(accountant, 0.0, ledger_of)
        if self.mu is not None:
            # a start: either end of the curve asks for no less
            ends = [
                Risk(fpr=rate, tpr=float(ndtr(ndtri(rate) + self.mu)))
                for rate in (float(ndtr(-0.5 * self.mu)), LEAST_RATE)
            ]
            starts = [
                end._by(accountant, end.first_slope, ledger_of)
                for end in ends
                if not end.by_sampling(ledger_of, group_size)
            ]
            return least_noise(
                lambda ledger: self.reached(ledger, group_size),
                ledger_of,
                self.mu,
                self.what,
                start=max(starts, default=1.0),
                step=MU_STEP,
                closeness=MU_CLOSENESS,
            )
        slope, noise, step = self.first_slope, 1.0, math.e
        excess = self.target - self.given["fpr"]
        for _ in range(ROUNDS):
            noise = self._by(accountant, slope, ledger_of, noise, step)
            slope, found = self.tangent(accountant, ledger_of(noise))
            beyond = excess - self.target + found
            if CLOSENESS * excess <= beyond <= excess:
                return noise
            step = 1.05 * max(excess / beyond, 1.0)
        raise NumericalBoundError(
            f"{self.what} jumps over {self.target:g}; take another false positive rate"
        )

    def by_sampling(self, ledger_of: Callable[[float], Ledger], group_size: int = 1) -> bool:
        """Whether no more than this risk is reached without any noise, because of sampling."""
        return self.reached(ledger_of(0.0), group_size) <= self.target

    def _by(self, accountant, slope, ledger_of, start=1.0, step=math.e):
        """The noise multiplier that one tangent certifies."""
        rate = self.fpr or 0.0

        def spent(ledger):
            return power(accountant, ledger, rate, slope)

        return least_noise(spent, ledger_of, self.target, self.what, rate, start, step)


def power(
    accountant: Accountant | GroupAccountant, ledger: Ledger, rate: float, epsilon: float
) -> float:
    """The true positive rate at the false positive rate `rate`, at most, by one tangent; epsilon
    may be negative.
    """
    delta = accountant.delta(ledger, abs(epsilon)).upper
    if epsilon < 0:
        delta = 1 - math.exp(epsilon) * (1 - delta)  # [C2]
    return min(1.0, (math.exp(epsilon) * rate + delta) * (1 + 1e-15))  # [C1]
