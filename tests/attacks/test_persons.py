"""An attack on persons: a canary of five rows of one person, told apart by the weights after a few
steps.
"""

import numpy as np
import pytest

from minidp import nn
from minidp.data import LabelledExamples, Persons
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.streams import Streams
from minidp.train import SGD, Trainer
from tools.attacks.empirical import Claim, counted, threshold_of

STEPS, ROWS, ERROR = 4, 5, 1e-6


def scores(trials, canary, by_person, first_seed):
    """Of each trial, how far the weights moved along the canary's gradient."""
    network = nn.Sequential([nn.Dense(3, 2, rng=np.random.default_rng(0))], (3,))
    plan = Plan(PoissonSampler(0.5), Sanitizer(flat_group(network.params, 1.0, 1.0)), STEPS, 4)
    others = np.repeat(np.arange(4), 2)
    x = np.vstack([np.eye(3)[1 + others % 2], np.tile([[9.0, 0, 0]], (ROWS * canary, 1))])
    y = np.concatenate([others % 2, np.ones(ROWS * canary, int)])
    names = np.append(others, np.full(ROWS * canary, 9))
    persons = Persons(names, ROWS) if by_person else None
    trainer = Trainer(
        network,
        nn.SoftmaxCrossEntropy(),
        SGD(1.0),
        plan,
        rows_per_person=ROWS if by_person else None,
    )
    examples = LabelledExamples(x.astype("float32"), y, persons)
    found = []
    for seed in range(first_seed, first_seed + trials):
        for array in network.params.values():
            array[...] = 0
        streams = Streams(seed)
        for step, lot in enumerate(plan.sampler.lots(len(examples), STEPS, streams.sampling)):
            trainer.step(examples, lot, step, streams)
        (weights,) = (array for array in network.params.values() if array.ndim == 2)
        found.append(float(weights[0, 1] - weights[0, 0]))
    return np.array(found), Claim(plan.ledger())


@pytest.mark.slow
@pytest.mark.parametrize("by_person", [True, False])
def test_five_rows_of_a_person_stay_below_the_bound_and_five_rows_by_themselves_do_not(by_person):
    trials = 3000
    worlds = []
    for first_seed in (0, 10**6):
        inside, claim = scores(trials, 1, by_person, first_seed)
        outside, _ = scores(trials, 0, by_person, first_seed + 10**5)
        worlds.append((inside, outside))
    threshold = threshold_of(*worlds[0])
    assert counted(*worlds[1], threshold).refute(claim, ERROR) is not by_person
