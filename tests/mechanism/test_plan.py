"""How lots are drawn, what training will do, and the event that follows from it."""

import pytest

from minidp.errors import BudgetExceededError, ParameterError
from minidp.mechanism import (
    LinearDecay,
    Plan,
    PoissonSampler,
    Sanitizer,
    ShuffleSampler,
    flat_group,
    per_layer_groups,
)
from minidp.privacy import Filter, Gaussian, Ledger, MomentsAccountant, NeighbouringRelation
from minidp.privacy.catalogue import make
from minidp.streams import Streams

KEYS = [("dense1", "W"), ("dense2", "W")]
FLAT = Sanitizer(flat_group(KEYS, 4.0, 4.0))
LAYERS = Sanitizer(per_layer_groups(KEYS, 4.0, {"dense1": 4.0, "dense2": 6.0}))
FALLING = Sanitizer(flat_group(KEYS, 4.0, LinearDecay(4.0, 2.0, 4)))
POISSON = PoissonSampler(0.01)


def test_fitted_takes_the_most_steps_within_the_target():
    prefix, accountant = Ledger(entries=[(Gaussian(7.0),)]), MomentsAccountant()
    plan = Plan(POISSON, FALLING, 1, 600).fitted(accountant, prefix, 2.0, 1e-5)

    def spent(steps):
        return accountant.epsilon(plan.ledger(steps, [Gaussian(7.0)]), 1e-5).upper

    assert spent(plan.steps) <= 2.0 < spent(plan.steps + 1)
    assert prefix.items() == [(Gaussian(7.0), 1)]
    with pytest.raises(BudgetExceededError, match="before the first step"):
        plan.fitted(accountant, prefix, 0.1, 1e-5)


def test_fitted_shuffle_ends_with_an_epoch():
    relation = NeighbouringRelation.ZERO_OUT
    plan = Plan(ShuffleSampler(100, 30), FLAT, 1, 30).fitted(
        MomentsAccountant(relation), Ledger(relation), 5.0, 1e-5
    )
    assert plan.steps > 0 and plan.steps % 4 == 0


def test_shuffled_lots_refuse_a_schedule_of_the_noise():
    with pytest.raises(ParameterError, match="use the Poisson sampler, or constant settings"):
        Plan(ShuffleSampler(100, 30), FALLING, 9, 30)


@pytest.mark.parametrize(
    "sampler, sanitizer",
    [(POISSON, LAYERS), (ShuffleSampler(60_000, 600), FLAT)],
    ids=["poisson", "shuffle"],
)
@pytest.mark.parametrize("accountant", ["renyi", "moments"])
def test_calibrated_is_the_least_noise_with_the_groups_ratios(sampler, sanitizer, accountant):
    before = [Gaussian(20.0)]
    plan = Plan(sampler, sanitizer, 300, 600).calibrated(accountant, 2.0, 1e-5, before)
    spent = make(accountant, plan.relation).epsilon(plan.ledger(before=before), 1e-5).upper
    assert 0.998 * 2 < spent <= 2 and plan.steps == 300
    factors = [
        new.noise_multiplier / old.noise_multiplier
        for new, old in zip(plan.sanitizer.groups, sanitizer.groups)
    ]
    assert factors == pytest.approx([factors[0]] * len(factors))
    budget = Filter(make(accountant, plan.relation), 2.0, 1e-5)
    budget.charge_all([(Gaussian(20.0), 1), *plan.charges(0, 300)])


def test_noise_is_calibrated_from_none():
    plan = Plan(POISSON, Sanitizer(flat_group(KEYS, 4.0, 0.0)), 9, 600)
    calibrated = plan.calibrated("moments", 2.0, 1e-5)
    assert calibrated.sanitizer.groups[0].noise_multiplier > 0


@pytest.mark.parametrize(
    "sanitizer, steps, accountant, epsilon, error, words",
    [
        (FLAT, 9, "moments", 0.1, BudgetExceededError, "no noise multiplier up to 1e.07 is enough"),
        (FALLING, 9, "moments", 2.0, ParameterError, "expected constant noise multipliers"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(sanitizer, steps, accountant, epsilon, error, words):
    with pytest.raises(error, match=words):
        Plan(POISSON, sanitizer, steps, 600).calibrated(accountant, epsilon, 1e-5, [Gaussian(2.0)])


@pytest.mark.parametrize(
    "noise, words",
    [
        (0.5, "it alone would be"),
        (0.0, "a lot without noise has no epsilon"),
        (lambda step: 0.0, "a lot without noise has no epsilon"),
    ],
)
def test_a_target_for_not_one_lot_is_refused(noise, words):
    plan = Plan(POISSON, Sanitizer(flat_group([("a", "W")], 1.0, noise)), 1, 600)
    with pytest.raises(
        BudgetExceededError,
        match=f"not one lot fits into epsilon 0.1 at delta=1e-05: {words}.*; raise the",
    ):
        plan.fitted("moments", Ledger(), 0.1, 1e-5)


@pytest.mark.parametrize(
    "sampler, size, near, far",
    [
        (POISSON, 60_000, 605, 606.1),
        (ShuffleSampler(100, 30), 100, 25, 24),
    ],
)
def test_a_divisor_that_is_not_close_to_the_mean_lot_is_refused(sampler, size, near, far):
    Plan(sampler, FLAT, 9, near).check_lot_size(size)
    with pytest.raises(
        ParameterError, match=f"lot_size={far:g}, but lots drawn from {size} examples"
    ):
        Plan(sampler, FLAT, 9, far).check_lot_size(size)


SAMPLERS = {
    "poisson": PoissonSampler(0.3),
    "shuffle": ShuffleSampler(10, 4),
}
samplers = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)


@samplers
def test_lots_are_drawn_one_at_a_time(sampler):
    # what is charged before a step may not have been drawn yet
    stream, asked = Streams(1).sampling, []
    lots = sampler.lots(10, 6, lambda step: asked.append(step) or stream(step))
    assert asked == []
    next(lots)
    assert asked == [0]


def test_another_number_of_examples_is_refused():
    with pytest.raises(
        ParameterError, match="expected 10 examples, the public dataset_size of the sampler, got 9"
    ):
        next(SAMPLERS["shuffle"].lots(9, 1, Streams(1).sampling))
