"""How lots are drawn: the distribution, the event, the configuration."""
import pytest

from minidp.errors import ParameterError
from minidp.mechanism import FixedSizeSampler, PoissonSampler, ShuffleSampler
from minidp.streams import Streams

SAMPLERS = {"poisson": PoissonSampler(0.3), "fixed": FixedSizeSampler(10, 4), "shuffle": ShuffleSampler(10, 4)}
samplers = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)


def lots_of(sampler, examples, steps, seed, start=0):
    return [tuple(lot.tolist()) for lot in sampler.lots(examples, steps, Streams(seed).sampling, start)]


@samplers
def test_lots_are_different_valid_indices_that_repeat_with_the_seed(sampler):
    first, again, other = (lots_of(sampler, 10, 30, seed) for seed in (1, 1, 2))
    assert first == again and first != other and len(first) == 30
    assert len(set(first)) > 20  # not one lot over and over
    for lot in first:
        assert len(set(lot)) == len(lot) and all(0 <= i < 10 for i in lot)


@samplers
def test_lots_are_drawn_one_at_a_time(sampler):
    # what is charged before a step may not have been drawn yet
    stream, asked = Streams(1).sampling, []
    lots = sampler.lots(10, 6, lambda step: asked.append(step) or stream(step))
    assert asked == []
    next(lots)
    assert asked == [0]


@samplers
def test_a_step_has_its_lot_whatever_was_drawn_before(sampler):
    start = 2 * sampler.period
    assert lots_of(sampler, 10, 9, 1, start) == lots_of(sampler, 10, 9 + start, 1)[start:]


@pytest.mark.parametrize("examples, q, size", [(0, 0.5, 0), (7, 0.0, 0), (7, 1.0, 7)])
def test_poisson_at_the_edges(examples, q, size):
    for lot in PoissonSampler(q).lots(examples, 5, Streams(1).sampling):
        assert lot.shape == (size,) and lot.dtype.kind == "i"


@pytest.mark.parametrize("name", ["fixed", "shuffle"])
def test_another_number_of_examples_is_refused(name):
    with pytest.raises(ParameterError, match="expected 10 examples, the public dataset_size of the sampler, got 9"):
        next(SAMPLERS[name].lots(9, 1, Streams(1).sampling))
