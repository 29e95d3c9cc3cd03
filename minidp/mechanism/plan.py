"""The plan: sampler, sanitizer and steps, with the event that follows from them.

sigma and q are written once: the trainer executes the plan, and the accountant reads its event.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from ..errors import BudgetExceededError, ParameterError
from ..privacy.accountant import Accountant
from ..privacy.accountants import as_accountant
from ..privacy.calibrate import max_steps, noise_multiplier_for
from ..privacy.events import Event, NeighbouringRelation
from ..privacy.ledger import SETUP, Ledger
from ..util.text import upper_text
from ..util.validate import count, instance, positive_finite
from ..util.words import Named, names_checked
from .rounding import Products, products
from .samplers import Sampler
from .sanitizer import Sanitizer
from .schedule import value_at


@dataclass(frozen=True)
class Plan(Named):
    r"""Everything that training will do to the data, fixed before it starts.

    sampler            how a lot is drawn, with its neighbouring relation
    sanitizer          clip groups, each with its C and sigma (or schedules of them)
    steps              T, lots to process
    expected_lot_size  L, the public constant that the released sum is divided by
    derived            "steps" if `fitted` found them, "noise_multiplier" if `calibrated` did; a
                       resumed run reads them from its folder

    Event
        [S1]  of all steps: for each step, the sanitizer's release with that step's C and sigma, in
              the form that the sampler gives it

    Source
        [S1]  Abadi et al. 2016, Section 4: the number of steps and the privacy parameters are fixed
              ahead

    Guarantees
        The charge and the execution use the same fields.

    Raises
        ParameterError   steps or expected_lot_size out of range; expected_lot_size more than 1% off
                         the lots of a sampler that knows its dataset_size; a sampler that is
                         charged per epoch, with a schedule of C or sigma

    >>> from minidp.mechanism import PoissonSampler, flat_group
    >>> from minidp.privacy import MomentsAccountant
    >>> groups = flat_group([("dense1", "W"), ("dense1", "b")], clip_norm=1.0, noise_multiplier=4.0)
    >>> plan = Plan(PoissonSampler(0.01), Sanitizer(groups), steps=10_000, expected_lot_size=600)
    >>> round(MomentsAccountant().epsilon(plan.ledger(), 1e-5).upper, 4)
    1.2691
    >>> plan.fitted(MomentsAccountant(), epsilon=2.0, delta=1e-5).steps
    24256
    """

    sampler: Sampler
    sanitizer: Sanitizer
    steps: int
    expected_lot_size: float
    derived: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self):
        count(steps=self.steps)
        positive_finite(expected_lot_size=self.expected_lot_size)
        if not isinstance(self.sampler, Sampler):
            raise ParameterError(f"expected a sampler, got {type(self.sampler).__name__}")
        instance(Sanitizer, sanitizer=self.sanitizer)
        if self.sampler.period > 1 and not self.sanitizer.constant:
            raise ParameterError(
                "lots of whole epochs with a schedule of C or sigma: which noise an example meets "
                "depends on its lot; use the Poisson sampler, or constant settings"
            )
        if (size := getattr(self.sampler, "dataset_size", None)) is not None:
            self.check_lot_size(size)

    def check_lot_size(self, dataset_size: int) -> None:
        """Raise ParameterError unless expected_lot_size is within 1% of the sampler's mean lot for
        the public dataset_size.
        """
        least, most = self.sampler.lot_sizes(dataset_size)
        if not 0.99 * least <= self.expected_lot_size <= 1.01 * most:
            raise ParameterError(
                f"expected_lot_size={self.expected_lot_size:g}, but lots drawn from "
                f"{dataset_size:g} examples have {most:g} on average: steps would be "
                f"{most / self.expected_lot_size:.3g} times as long as meant; set "
                f"expected_lot_size={most:g}, or change the sampler"
            )

    def check_learning_rate(self, rate: float, largest: float) -> None:
        """Raise ParameterError if the weights could move farther than `largest`.

        Without noise they move by about T steps of length `rate` times C, with the rate and C of
        the first step. (A lot of n examples can move n / L of that; adaptive methods take shorter
        steps.)
        """
        clip_norm = max(value_at(group.clip_norm, 0) for group in self.sanitizer.groups)
        travel = clip_norm * self.steps
        if rate * max(travel if math.isfinite(travel) else 1.0, 1.0) > largest:
            raise ParameterError(
                f"expected learning_rate={rate:g} times clip_norm={clip_norm:g} times the "
                f"{self.steps} steps to be at most {largest:.3g}, the largest number that a weight "
                "can be; take a smaller learning rate"
            )

    @property
    def relation(self) -> NeighbouringRelation:
        """The neighbouring relation that the sampler's analysis is proved for."""
        return self.sampler.relation

    @property
    def products(self) -> Products:
        """How outer products are summed, and how much their rounding raises the sensitivity."""
        return products(self.expected_lot_size, self.sanitizer.strategy)

    def at(self, step: int, lot_size: int) -> tuple[Sanitizer, Products]:
        """The sanitizer with the settings of one step, and how a lot of this size is summed."""
        return self.sanitizer.for_step(step), self.products.for_lot(lot_size)

    def release_event(self, step: int = 0) -> Event:
        """The event of one step's release, before sampling."""
        return self.sanitizer.for_step(step).event(rounding=self.products.factor)

    def step_event(self, step: int = 0) -> Event:
        """The charge for one period of the sampler (usually one step): the sampled release."""
        return self.sampler.wrap(self.release_event(step))  # [S1]

    def charges(self, start: int, stop: int) -> list[tuple[Event, int]]:
        """[(event, count)] to charge before the steps start..stop-1, in order.

        start is a multiple of the sampler's period.
        """
        # the events of all steps are equal, because clip norms cancel in them
        if not any(callable(group.noise_multiplier) for group in self.sanitizer.groups):
            charge = self.sampler.charges(self.release_event(), stop - start)
            return [charge] if stop > start else []  # [S1]
        events = (self.step_event(step) for step in range(start, stop))  # of samplers with period 1
        return [(event, len(list(run))) for event, run in groupby(events)]  # [S1]

    def ledger(self, steps: int | None = None, before: Iterable[Event] = ()) -> Ledger:
        """A ledger of the events `before` and the first `steps` steps, of all steps by default."""
        steps = self.steps if steps is None else steps
        return Ledger(
            self.relation, [*((event, 1, SETUP) for event in before), *self.charges(0, steps)]
        )

    def with_steps(self, steps: int) -> Plan:
        """The same plan over another number of steps."""
        return replace(self, steps=steps, derived=self.derived - {"steps"})

    def with_noise(self, noise_multipliers: Sequence[float]) -> Plan:
        """The same plan with other noise multipliers, one for each clip group."""
        groups = tuple(
            replace(group, noise_multiplier=noise)
            for group, noise in zip(self.sanitizer.groups, noise_multipliers, strict=True)
        )
        return replace(self, sanitizer=replace(self.sanitizer, groups=groups))

    @names_checked
    def fitted(
        self,
        accountant: Accountant | str,
        epsilon: float,
        delta: float,
        before: Iterable[Event] = (),
    ) -> Plan:
        """The plan with the most steps that stay, after the events `before`, at or below (epsilon,
        delta).

        Raises BudgetExceededError if not one lot fits, ParameterError if the steps cost nothing.
        """
        accountant = as_accountant(accountant, self.relation)
        ledger = self.ledger(0, before)
        steps = max_steps(accountant, ledger, lambda n: self.charges(0, n), epsilon, delta)
        if steps == 0:
            self.check_budget(accountant, ledger, epsilon, delta)
        return replace(self, steps=steps, derived=self.derived | {"steps"})

    @names_checked
    def calibrated(
        self,
        accountant: Accountant | str,
        epsilon: float,
        delta: float,
        before: Iterable[Event] = (),
    ) -> Plan:
        """The plan with the least noise that keeps its steps, after the events `before`, at or
        below (epsilon, delta).

        The groups' noise multipliers keep their ratios; if one of them is 0, all become equal.
        Raises BudgetExceededError if no noise is enough, ParameterError if a noise multiplier
        follows a schedule, or if almost no noise is needed.

        >>> from minidp.mechanism import PoissonSampler, flat_group
        >>> sanitizer = Sanitizer(flat_group([("dense1", "W")], 1.0, 1.0))
        >>> plan = Plan(PoissonSampler(0.01), sanitizer, 10_000, 600)
        >>> group, = plan.calibrated("moments", epsilon=2.0, delta=1e-5).sanitizer.groups
        >>> round(group.noise_multiplier, 2)
        2.64
        """
        count(1, steps=self.steps)
        noises = [group.noise_multiplier for group in self.sanitizer.groups]
        if any(map(callable, noises)):
            raise ParameterError(
                "expected constant noise multipliers to calibrate: which noise of a schedule is to "
                "change is not said; fit the steps with Plan.fitted, or set numbers"
            )
        least = min(noises)
        ratios = [noise / least for noise in noises] if least > 0 else [1.0 for _ in noises]

        def with_noise(noise):
            return self.with_noise([noise * ratio for ratio in ratios])

        before = tuple(before)

        def ledger_of(noise):
            return (
                self.ledger(0, before)
                if noise == math.inf
                else with_noise(noise).ledger(before=before)
            )

        accountant = as_accountant(accountant, self.relation)
        found = with_noise(noise_multiplier_for(accountant, ledger_of, epsilon, delta))
        return replace(found, derived=self.derived | {"noise_multiplier"})

    def check_budget(self, accountant: Any, ledger: Ledger, epsilon: float, delta: float) -> None:
        """Raise BudgetExceededError, with advice, if the first lot does not fit on top of
        `ledger`.
        """
        after = ledger.copy()
        for event, times in self.charges(0, self.sampler.period):
            after.append(event, times)
        before, spent = (accountant.epsilon(each, delta).upper for each in (ledger, after))
        if spent <= epsilon:
            return
        first, then = upper_text(before), upper_text(spent)
        if spent == math.inf:
            why = "a lot without noise has no epsilon"
        elif before == 0:
            why = f"it alone would be {then}"
        else:
            why = f"epsilon is {first} before the first step, and {then} with it"
        raise BudgetExceededError(
            f"not one lot fits into epsilon {epsilon:g} at delta={delta:g}: {why}; raise the "
            "target or the noise, or make lots smaller"
        )
