"""What a run is charged, and when it ends before its plan does: out of budget, or asked to stop;
and how it goes on.
"""

import math

import pytest

from minidp.errors import BudgetExceededError, CheckpointError, ParameterError
from minidp.mechanism import LinearDecay, flat_group
from minidp.privacy import (
    Filter,
    Gaussian,
    JointGaussian,
    Ledger,
    MomentsAccountant,
    max_steps,
)
from minidp.streams import Streams
from minidp.train import Progress
from tests.core.test_trainer import assert_same, trained
from tests.support.training import SAMPLERS, make_data, make_trainer, values

DELTA = 1e-5


def budget(epsilon, sampler="poisson"):
    return Filter(MomentsAccountant(SAMPLERS[sampler].relation), epsilon, DELTA)


def after(number):
    """should_stop that is true from its `number`-th call on."""
    calls = []
    return lambda: calls.append(1) or len(calls) >= number


@pytest.mark.parametrize("block_steps", [1, 7, 1000])
@pytest.mark.parametrize("sigma", [4.0, LinearDecay(5.0, 3.0, 6)], ids=["constant", "schedule"])
def test_filter_stops_before_the_step_that_would_exceed(block_steps, sigma):
    limit = budget(1.5)
    trainer = make_trainer(budget=limit, steps=200, noise_multiplier=sigma, layout=flat_group)
    steps = max_steps(
        limit.accountant, limit.ledger.copy(), lambda n: trainer.plan.charges(0, n), 1.5, DELTA
    )
    record = trainer.train(*make_data(), Streams(1), block_steps=block_steps)
    assert 1 < steps < 200 and steps % 7
    assert record.stopped == "budget" and record.progress == Progress(steps, steps)
    assert sum(times for _, times in record.ledger.items()) == steps
    assert limit.accountant.epsilon(record.ledger, DELTA).upper <= 1.5
    assert_same(
        values(trainer.network), trained(steps=steps, noise_multiplier=sigma, layout=flat_group)
    )


def test_shuffled_training_stops_with_an_epoch():
    limit = budget(5.0, "shuffle")
    trainer = make_trainer(budget=limit, steps=200, sampler="shuffle", noise_multiplier=4.0)
    record = trainer.train(*make_data(), Streams(1), block_steps=100)
    epochs = sum(times for _, times in record.ledger.items())
    assert (
        record.stopped == "budget"
        and epochs > 1
        and record.progress == Progress(4 * epochs, 4 * epochs)
    )
    after_one_more = record.ledger.copy()
    after_one_more.append(trainer.plan.release_event())
    assert limit.accountant.epsilon(after_one_more, DELTA).upper > 5.0


def test_a_budget_for_no_step_is_refused_and_changes_nothing():
    trainer, charged = make_trainer(budget=budget(0.01)), []
    before = values(trainer.network)
    with pytest.raises(
        BudgetExceededError,
        match="not one lot fits into epsilon 0.01 at delta=1e-05: it alone would be",
    ):
        trainer.train(*make_data(), Streams(1), on_charge=charged.append)
    assert trainer.ledger.items() == [] == charged
    assert_same(before, values(trainer.network))


def test_a_budget_that_is_used_up_stops_the_next_call():
    trainer = make_trainer(budget=budget(1.5), steps=200, noise_multiplier=4.0)
    assert [trainer.train(*make_data(), Streams(1)).progress.step > 0 for _ in range(2)] == [
        True,
        False,
    ]


@pytest.mark.parametrize("asked", [1, 3, 4, 7, 9])
def test_asked_to_stop_it_ends_after_the_step(asked):
    blocks, trainer = [], make_trainer()
    record = trainer.train(
        *make_data(), Streams(1), block_steps=4, should_stop=after(asked), on_block=blocks.append
    )
    charged = min(-(-asked // 4) * 4, 10)
    assert record.stopped == "interrupted" and record.progress == blocks[-1] == Progress(
        asked, charged
    )
    assert [times for _, times in record.ledger.items()] == [charged]
    assert_same(values(trainer.network), trained(steps=asked))


def test_a_stop_that_on_block_decides_charges_nothing_more():
    blocks, trainer = [], make_trainer()
    record = trainer.train(
        *make_data(),
        Streams(1),
        block_steps=4,
        on_block=blocks.append,
        should_stop=lambda: bool(blocks),
    )
    assert record.stopped == "interrupted" and record.progress == Progress(4, 4)
    assert [times for _, times in record.ledger.items()] == [4]


@pytest.mark.parametrize("steps", [8, 10, 11, 13])  # epochs of 4, the last one whole or not
@pytest.mark.parametrize("asked", range(1, 9))
@pytest.mark.parametrize("block_steps", [1, 100])
def test_shuffled_training_stops_at_the_end_of_an_epoch_only(steps, asked, block_steps):
    trainer = make_trainer(sampler="shuffle", steps=steps)
    record = trainer.train(
        *make_data(), Streams(1), block_steps=block_steps, should_stop=after(asked)
    )
    end = -(-asked // 4) * 4
    assert record.progress.step == end
    assert record.stopped == ("interrupted" if end < steps else "finished")
    epochs = sum(times for _, times in record.ledger.items())
    assert epochs == -(-record.progress.charged // 4) >= end // 4


def test_shuffled_lots_are_charged_under_their_own_relation_beside_what_came_before():
    limit = budget(math.inf, "shuffle")
    limit.charge(Gaussian(7.0))
    trainer = make_trainer(sampler="shuffle", budget=limit, noise_multiplier=2.0)
    record = trainer.train(*make_data(), Streams(1))
    charged = JointGaussian((2.0 / trainer.plan.products.factor,) * 2)
    assert record.ledger.items() == [(Gaussian(7.0), 1), (charged, 3)]  # ten lots, three epochs
    assert math.isfinite(limit.accountant.epsilon(record.ledger, DELTA).upper)


@pytest.mark.parametrize("progress", [Progress(0, 5), Progress(4, 4)])
@pytest.mark.parametrize("budgeted", [False, True])
def test_lots_that_the_ledger_does_not_hold_are_refused(progress, budgeted):
    trainer = make_trainer(budget=budget(0.01) if budgeted else None)
    before = values(trainer.network)
    with pytest.raises(ParameterError, match=f"charged={progress.charged} lots, .* covers 0"):
        trainer.train(*make_data(), Streams(1), progress=progress)
    assert trainer.ledger.items() == []
    assert_same(values(trainer.network), before)


def falling(step):
    return 2.0 if step < 4 else 1.0


@pytest.mark.parametrize(
    "changed", [0.5, lambda step: 1.0 if step < 4 else 2.0, lambda step: falling(step) - 1e-9]
)
def test_lots_that_were_charged_and_did_not_run_cost_what_they_were_charged_as(changed):
    ledger, data = Ledger(), make_data()
    trainer = make_trainer(noise_multiplier=falling, ledger=ledger)
    progress = trainer.train(*data, Streams(1), should_stop=after(3)).progress
    assert progress == Progress(3, 10)
    with pytest.raises(CheckpointError, match="lots 3 to 9 were charged and did not run yet"):
        make_trainer(noise_multiplier=changed, ledger=ledger).train(
            *data, Streams(1), progress=progress
        )
    again = make_trainer(noise_multiplier=falling, ledger=ledger)
    assert again.train(*data, Streams(1), progress=progress).progress == Progress(10, 10)
    assert ledger.count_of("step") == 10
