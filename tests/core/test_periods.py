"""Lots of one period are drawn and charged together, and what they cost is said in one place."""

import numpy as np
import pytest

from minidp import nn
from minidp.errors import ParameterError
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, ShuffleSampler, flat_group
from minidp.privacy import ApproximateDP, Ledger, PureDP
from minidp.train import SGD, Progress, Trainer


def test_training_does_not_begin_inside_a_period():
    """The rest of a permutation that was cut would be drawn again."""
    x, y = np.ones((12, 3), np.float32), np.arange(12) % 2
    network = nn.Sequential(nn.Dense(3, 2))
    sanitizer = Sanitizer(flat_group(network.params, 1.0, 3.0))
    plan = Plan(ShuffleSampler(12, 4), sanitizer, 6, 4)
    ledger = Ledger(plan.relation, plan.charges(0, 6))
    trainer = Trainer(network, nn.SoftmaxCrossEntropy(), SGD(0.1), plan, ledger=ledger)
    with pytest.raises(ParameterError, match="progress.step=1 at the end of a period.* 3"):
        trainer.train(x, y, 1, progress=Progress(1, 6))
    assert trainer.train(x, y, 1, progress=Progress(3, 6)).progress.step == 6


def test_a_sampler_says_in_one_place_what_its_lots_cost():
    with pytest.raises(ParameterError, match=r"class Rising: expected wrap\(event\)"):

        class Rising(PoissonSampler):
            def charges(self, event, steps):
                return event, steps


@pytest.mark.parametrize("make", [PureDP, lambda epsilon: ApproximateDP(epsilon, 1e-6)])
@pytest.mark.parametrize("number", [np.float32(0.5), np.int64(1), 1, 0.5])
def test_an_event_that_is_charged_can_be_written(make, number, tmp_path):
    ledger = Ledger()
    ledger.append(make(number))
    ledger.save(tmp_path / "ledger.json")
    assert Ledger.load(tmp_path / "ledger.json").sha256() == ledger.sha256()


def test_whole_numbers_stay_whole_in_a_ledger():
    """As those of version 0.1.0, whose hashes stand in results."""
    ledger = Ledger()
    ledger.append(PureDP(1))
    assert '"epsilon":1,' in ledger.canonical() or '"epsilon":1}' in ledger.canonical()
