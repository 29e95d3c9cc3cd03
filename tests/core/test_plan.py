"""How lots are drawn, what training will do, and the event that follows from it."""

import pytest

from minidp.errors import ParameterError
from minidp.mechanism import (
    LinearDecay,
    Plan,
    PoissonSampler,
    Sanitizer,
    ShuffleSampler,
    flat_group,
    per_layer_groups,
)
from minidp.mechanism.samplers import SAMPLERS, make_sampler
from minidp.privacy import Filter, Gaussian, MomentsAccountant, NeighbouringRelation
from minidp.privacy.accountants import make
from minidp.streams import Streams

KEYS = [("dense1", "W"), ("dense2", "W")]
FLAT = Sanitizer(flat_group(KEYS, 4.0, 4.0))
LAYERS = Sanitizer(per_layer_groups(KEYS, 4.0, {"dense1": 4.0, "dense2": 6.0}))
FALLING = Sanitizer(flat_group(KEYS, 4.0, LinearDecay(4.0, 2.0, 4)))
POISSON = PoissonSampler(0.01)


def test_fitted_takes_the_most_steps_within_the_target():
    accountant = MomentsAccountant()
    plan = Plan(POISSON, FALLING, 1, 600).fitted(accountant, 2.0, 1e-5, [Gaussian(7.0)])

    def spent(steps):
        return accountant.epsilon(plan.ledger(steps, [Gaussian(7.0)]), 1e-5).upper

    assert spent(plan.steps) <= 2.0 < spent(plan.steps + 1)


def test_fitted_shuffle_ends_with_an_epoch():
    relation = NeighbouringRelation.ZERO_OUT
    plan = Plan(ShuffleSampler(100, 30), FLAT, 1, 30).fitted(MomentsAccountant(relation), 5.0, 1e-5)
    assert plan.steps > 0 and plan.steps % 4 == 0


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


samplers = pytest.mark.parametrize(
    "sampler", [make_sampler(name, 10, 4) for name in SAMPLERS], ids=SAMPLERS
)


@samplers
def test_lots_are_drawn_one_at_a_time(sampler):
    # what is charged before a step may not have been drawn yet
    stream, asked = Streams(1).sampling, []
    lots = sampler.lots(10, 6, lambda step: asked.append(step) or stream(step))
    assert asked == []
    next(lots)
    assert asked == [0]


def test_a_schedule_that_changes_as_it_is_asked_is_charged_as_it_is_used():
    class Falling:
        sigma = 4.0

        def __call__(self, step):
            self.sigma *= 0.9
            return self.sigma

    plan = Plan(POISSON, Sanitizer(flat_group(KEYS, 1.0, Falling())), 5, 600)
    charged = [event for event, _ in plan.charges(0, 5)]
    used = [plan.at(step, 600)[0].event(rounding=plan.products.factor) for step in range(5)]
    assert charged == list(map(plan.sampler.wrap, used)) and len(set(map(str, used))) == 5


@pytest.mark.parametrize("base", [PoissonSampler, ShuffleSampler])
@pytest.mark.parametrize("name", ["lots", "_lots"])
def test_a_sampler_with_lots_of_its_own_must_say_what_they_cost(base, name):
    own = {name: lambda *given: iter([[0]]), "__module__": __name__}
    with pytest.raises(ParameterError, match=r"class First: .* define wrap\(event\)"):
        type("First", (base,), own)
    type("First", (base,), {**own, "wrap": lambda self, event: event})
    type("Renamed", (base,), {"__module__": __name__})
