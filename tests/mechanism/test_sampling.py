"""How lots are drawn: the distribution, the event, the configuration."""
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from minidp.errors import ParameterError
from minidp.mechanism import FixedSizeSampler, PoissonSampler, ShuffleSampler
from minidp.privacy.events import FixedSizeSampled, Gaussian, NeighbouringRelation, PoissonSampled

FALSE_ALARM = 1e-6  # chance that a right implementation fails such a test with another seed
DRAWS = 6000
SAMPLERS = {"poisson": PoissonSampler(0.3), "fixed": FixedSizeSampler(10, 4), "shuffle": ShuffleSampler(10, 4)}
samplers = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)


def lots_of(sampler, examples, steps, rng):
    return [tuple(lot.tolist()) for lot in sampler.lots(examples, steps, rng)]


def assert_follows(outcomes, probabilities):
    """Chi-squared test of outcomes against {outcome: probability}, all of which are expected often enough."""
    counts = [outcomes.count(outcome) for outcome in probabilities]
    assert sum(counts) == len(outcomes)  # nothing else was drawn
    expected = [p * len(outcomes) for p in probabilities.values()]
    assert min(expected) > 5
    assert stats.chisquare(counts, expected).pvalue > FALSE_ALARM


def assert_counts_fit(counts, trials, probability):
    """Every count lies where a binomial one does, with the chance of a false alarm shared among them."""
    tail = FALSE_ALARM / (2 * len(counts))
    low, high = stats.binom.ppf([tail, 1 - tail], trials, probability)
    assert low <= min(counts) and max(counts) <= high


def inclusion_counts(lots, examples):
    """How often each example, and each pair of them, was in a lot."""
    inside = np.zeros((len(lots), examples))
    for row, lot in zip(inside, lots):
        row[list(lot)] = 1
    pairs = inside.T @ inside
    return np.diag(pairs), pairs[np.triu_indices(examples, 1)]


def test_poisson_sizes_and_inclusions(rng):
    q = 0.3
    subsets = [s for size in range(5) for s in combinations(range(4), size)]
    lots = lots_of(PoissonSampler(q), 4, DRAWS, rng)
    assert_follows(lots, {s: q ** len(s) * (1 - q) ** (4 - len(s)) for s in subsets})
    single, pairs = inclusion_counts(lots_of(PoissonSampler(0.1), 60, DRAWS, rng), 60)
    assert_counts_fit(single, DRAWS, 0.1)
    assert_counts_fit(pairs, DRAWS, 0.01)


def test_fixed_size_inclusions(rng):
    lots = lots_of(FixedSizeSampler(5, 2), 5, DRAWS, rng)
    assert_follows(lots, {s: 1 / 10 for s in combinations(range(5), 2)})
    single, pairs = inclusion_counts(lots_of(FixedSizeSampler(60, 6), 60, DRAWS, rng), 60)
    assert_counts_fit(single, DRAWS, 6 / 60)
    assert_counts_fit(pairs, DRAWS, 6 * 5 / (60 * 59))


@settings(max_examples=30)
@given(examples=st.integers(1, 30), lot=st.integers(1, 30), epochs=st.integers(1, 3), seed=st.integers(0, 99))
def test_shuffle_visits_every_example_once_an_epoch(examples, lot, epochs, seed):
    sampler = ShuffleSampler(examples, min(lot, examples))
    lots = lots_of(sampler, examples, epochs * sampler.period, np.random.default_rng(seed))
    assert all(len(one) == sampler.lot_size for i, one in enumerate(lots) if (i + 1) % sampler.period)
    for epoch in range(epochs):
        seen = sum(lots[epoch * sampler.period : (epoch + 1) * sampler.period], ())
        assert sorted(seen) == list(range(examples))


def test_every_order_of_a_shuffle_is_equally_likely(rng):
    lots = lots_of(ShuffleSampler(4, 2), 4, 2 * DRAWS, rng)
    orders = [first + second for first, second in zip(lots[::2], lots[1::2])]
    assert_follows(orders, {order: 1 / 24 for order in permutations(range(4))})


@pytest.mark.parametrize("sampler, relation, expected", [
    (PoissonSampler(0.25), NeighbouringRelation.ADD_REMOVE, PoissonSampled(0.25, Gaussian(2.0))),
    (FixedSizeSampler(9, 3), NeighbouringRelation.REPLACE_ONE, FixedSizeSampled(9, 3, Gaussian(2.0))),
    (ShuffleSampler(9, 3), NeighbouringRelation.ZERO_OUT, Gaussian(2.0))], ids=SAMPLERS)
def test_each_sampler_wraps_for_its_relation(sampler, relation, expected):
    assert sampler.relation is relation
    assert sampler.wrap(Gaussian(2.0)) == expected


@pytest.mark.parametrize("steps, epochs", [(0, 0), (1, 1), (3, 1), (4, 2), (6, 2), (7, 3)])
def test_shuffle_charges_once_an_epoch(steps, epochs):
    sampler = ShuffleSampler(10, 4)
    assert sampler.period == 3
    assert sampler.charges(Gaussian(2.0), steps) == (Gaussian(2.0), epochs)


def test_the_others_charge_every_step():
    for name in ("poisson", "fixed"):
        assert SAMPLERS[name].charges(Gaussian(2.0), 7) == (SAMPLERS[name].wrap(Gaussian(2.0)), 7)
        assert SAMPLERS[name].period == 1


@samplers
def test_lots_are_different_valid_indices_that_repeat_with_the_seed(sampler):
    first, again, other = (lots_of(sampler, 10, 30, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again and first != other and len(first) == 30
    assert len(set(first)) > 20  # not one lot over and over
    for lot in first:
        assert len(set(lot)) == len(lot) and all(0 <= i < 10 for i in lot)


@samplers
def test_lots_are_drawn_one_at_a_time(sampler, rng):
    # what is charged before a step may not have been drawn yet
    before = rng.bit_generator.state
    lots = sampler.lots(10, 3, rng)
    assert rng.bit_generator.state == before
    next(lots)
    assert rng.bit_generator.state != before


@pytest.mark.parametrize("examples, q, size", [(0, 0.5, 0), (7, 0.0, 0), (7, 1.0, 7)])
def test_poisson_at_the_edges(examples, q, size, rng):
    for lot in PoissonSampler(q).lots(examples, 5, rng):
        assert lot.shape == (size,) and lot.dtype.kind == "i"


def test_a_lot_of_everything(rng):
    assert lots_of(FixedSizeSampler(4, 4), 4, 2, rng) == [(0, 1, 2, 3)] * 2


@pytest.mark.parametrize("make, message", [
    (lambda: PoissonSampler(1.2), r"expected sampling_probability=1.2 in \[0, 1\]"),
    (lambda: PoissonSampler(float("nan")), "sampling_probability=nan"),
    (lambda: FixedSizeSampler(10, 11), "expected lot_size=11 to be at most the dataset_size=10"),
    (lambda: FixedSizeSampler(10, 0), "expected lot_size=0 to be an integer of at least 1"),
    (lambda: ShuffleSampler(10, 11), "expected lot_size=11 to be at most the dataset_size=10"),
    (lambda: ShuffleSampler(0, 1), "expected dataset_size=0 to be an integer of at least 1"),
    (lambda: ShuffleSampler(10, 2.5), "expected lot_size=2.5 to be an integer")])
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


@pytest.mark.parametrize("name", ["fixed", "shuffle"])
def test_another_number_of_examples_is_refused(name, rng):
    with pytest.raises(ParameterError, match="expected 10 examples, the public dataset_size of the sampler, got 9"):
        next(SAMPLERS[name].lots(9, 1, rng))
