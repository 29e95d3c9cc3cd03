"""The black box: whether a canary was trained on, told from the last model's loss on it and nothing
else.

Training starts where it leaks most: at parameters, fitted without privacy, where ordinary examples'
gradients are nearly 0, so that the canary's alone moves the model. The guarantee holds for every
start, and every canary: here a blank image with an unlikely label. Annamalai, De Cristofaro 2024
(arXiv:2405.14106).
"""

import copy

import numpy as np
from scipy.special import ndtr

from minidp import nn
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.privacy import LossDistributionAccountant
from minidp.streams import Streams
from minidp.train import SGD, Adam, Trainer
from tools.attacks import empirical
from tools.attacks.canaries import CLIP, DELTA, ERROR, counted

EPSILON, RECORDS, HIDDEN, STEPS, RATE, CHUNK = 10.0, 1000, 32, 25, 1.0, 25
# without privacy; the surer of its answers, the smaller a gradient
START_STEPS, START_RATE, SURER = 200, 0.01, 4
LOSS = nn.SoftmaxCrossEntropy()


class BlackBox:
    """Training that is certified at (EPSILON, DELTA), from a worst-case start, with and without a
    canary.
    """

    def __init__(self, dataset, seed):
        n, rng = len(dataset.x_train), Streams(seed).init
        x = dataset.x_train.reshape((n, -1)).astype(np.float32) / 255
        y = dataset.y_train.astype(np.int64)
        first = nn.Dense(x.shape[1], HIDDEN, rng=rng)
        last = nn.Dense(HIDDEN, dataset.classes, rng=rng)
        self.network = nn.Sequential([first, nn.ReLU(), last], x.shape[1:])
        without = Sanitizer(flat_group(self.network.params, np.inf, 0.0))
        plan = Plan(PoissonSampler(1.0), without, START_STEPS, n)
        Trainer(self.network, LOSS, Adam(START_RATE), plan).run(x, y, seed)
        for array in last.params.values():
            array *= SURER
        z, caches = self.network.forward(x)
        grads = self.network.param_grads(LOSS(z, y)[1], caches).values()
        self.norm = float(np.mean(np.sqrt(sum(grad.sq_norms() for grad in grads))))
        blank = np.zeros_like(x[:1])
        self.label = self.network.predict(blank).argmin(axis=1)
        self.x, self.y = np.concatenate([x, blank]), np.concatenate([y, self.label])
        accountant = LossDistributionAccountant()
        sanitizer = Sanitizer(flat_group(self.network.params, CLIP, 1.0))
        plan = Plan(PoissonSampler(1.0), sanitizer, STEPS, n)
        self.plan = plan.calibrated(accountant, EPSILON, DELTA)
        self.certified = accountant.epsilon(self.plan.ledger(), DELTA)
        self.sigma = self.plan.sanitizer.groups[0].noise_multiplier

    def needed(self):
        """Runs in each world, calculated to reach 7 of 10 but in one audit of ten, where the loss
        tells 93% of mu.
        """
        # an epsilon of 7
        claim = empirical.Claim(empirical.ledger_of(1.3 * self.sigma, 1.0, STEPS))
        rates = ndtr(np.array([0.5, -0.5]) * 0.93 * STEPS**0.5 / self.sigma)
        tested = empirical.trials_needed(*rates, lambda counts: counts.refute(claim, ERROR), 0.1)
        return -(-4 * tested // (3 * CHUNK)) * CHUNK  # a quarter chooses the threshold

    def score(self, inside, seed):
        """The last model's loss on the canary, with a minus."""
        network, rows = copy.deepcopy(self.network), len(self.x) - (not inside)
        Trainer(network, LOSS, SGD(RATE), self.plan).run(self.x[:rows], self.y[:rows], seed)
        return -float(LOSS(network.predict(self.x[-1:]), self.label)[0][0])

    def scores(self, seed):
        """([scores with the canary], [scores without it]) of CHUNK trainings each."""
        return [
            [self.score(inside, seed + 2 * i + inside) for i in range(CHUNK)]
            for inside in (True, False)
        ]

    def figures(self, inside, outside):
        """The lower bound of all scores beside the certified interval, and what was trained."""
        bound = counted(np.array(inside), np.array(outside), 1.0, STEPS)
        return {
            "records": len(self.x) - 1,
            "steps": STEPS,
            "noise_multiplier": self.sigma,
            "hidden": HIDDEN,
            "learning_rate": RATE,
            "mean_gradient_norm_at_start": self.norm,
            "runs_needed": self.needed(),
            "certified": [self.certified.lower, self.certified.upper],
            "bounds": {"black box, worst-case start": bound},
            "scores": {"with": inside, "without": outside},
        }
