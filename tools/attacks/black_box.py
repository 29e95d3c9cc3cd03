"""The black box: whether a canary was trained on, told from the last model's loss on it and nothing else.

Training starts where it leaks most: at parameters, fitted without privacy, at which the ordinary examples' gradients are
nearly 0, so that the canary's gradient alone moves the model. Annamalai, De Cristofaro 2024 (arXiv:2405.14106). The privacy
guarantee holds for any start; the same holds for the choice of the canary, a blank image with an unlikely label.
"""
import copy

import numpy as np

from minidp import nn
from minidp.audit import empirical
from minidp.data.choose import load
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.privacy import LossDistributionAccountant
from minidp.streams import Streams
from minidp.train import SGD, Adam, Trainer
from tools.attacks.canaries import DELTA, ERROR, bound

EPSILON, RECORDS, HIDDEN, STEPS, RATE, CLIP = 10.0, 1000, 32, 25, 1.0, 1.0
START_STEPS, CHUNK = 200, 25


def start_of(dataset, seed, records):
    """(network, x, y): parameters with ordinary gradients near 0, and the records."""
    x = np.asarray(dataset.x_train[:records], np.float32).reshape((records, -1)) / 255
    y = dataset.y_train[:records].astype(np.int64)
    rng = Streams(seed).init
    network = nn.Sequential([nn.Dense(x.shape[1], HIDDEN, rng=rng), nn.ReLU(), nn.Dense(HIDDEN, dataset.classes, rng=rng)],
                            x.shape[1:])
    plan = Plan(PoissonSampler(1.0), Sanitizer(flat_group(network.params, np.inf, 0.0)), START_STEPS, records)
    Trainer(network, nn.SoftmaxCrossEntropy(), Adam(0.01), plan).run(x, y, seed)
    network.layers[-1].params["W"] *= 4  # the surer of its answers, the smaller its gradients
    network.layers[-1].params["b"] *= 4
    return network, x, y


def gradient_norm(network, x, y):
    """The mean norm of the examples' gradients."""
    z, caches = network.forward(x)
    grads = network.param_grads(nn.SoftmaxCrossEntropy()(z, y)[1], caches)
    return float(np.mean(np.sqrt(sum(grad.sq_norms() for grad in grads.values()))))


class BlackBox:
    """Training that is certified at (EPSILON, DELTA), from a worst-case start, with or without a canary."""

    def __init__(self, dataset, seed, records=RECORDS):
        self.network, x, self.y = start_of(dataset, seed, records)
        self.norm = gradient_norm(self.network, x, self.y)
        blank = np.zeros((1, *x.shape[1:]), np.float32)
        self.label = self.network.predict(blank).argmin(axis=1)
        self.x, self.y = np.concatenate([x, blank]), np.concatenate([self.y, self.label])
        accountant, groups = LossDistributionAccountant(), flat_group(self.network.params, CLIP, 1.0)
        self.plan = Plan(PoissonSampler(1.0), Sanitizer(groups), STEPS, records).calibrated(accountant, EPSILON, DELTA)
        self.certified = accountant.epsilon(self.plan.ledger(), DELTA)
        self.sigma = self.plan.sanitizer.groups[0].noise_multiplier

    def trials(self):
        """Runs in each world, by calculation: 7 of 10 is to be reached, but once in ten audits, where the loss tells 90% of mu."""
        mu = STEPS**0.5 / self.sigma
        claim = empirical.Claim(empirical.ledger_of(self.sigma * 1.3, 1.0, STEPS))  # of 77% of mu, an epsilon of 7
        tpr, fpr = (float(empirical.special.ndtr(sign * 0.9 * mu / 2)) for sign in (1, -1))
        tested = empirical.trials_needed(tpr, fpr, lambda counts: counts.refute(claim, ERROR), 0.1)
        return -(-4 * tested // (3 * CHUNK)) * CHUNK  # a quarter chooses the threshold

    def score(self, inside, seed):
        """The last model's loss on the canary, with a minus."""
        network, rows = copy.deepcopy(self.network), len(self.x) - (not inside)
        Trainer(network, nn.SoftmaxCrossEntropy(), SGD(RATE), self.plan).run(self.x[:rows], self.y[:rows], seed)
        return -float(nn.SoftmaxCrossEntropy()(network.predict(self.x[-1:]), self.label)[0][0])

    def scores(self, seed, runs=CHUNK):
        """([scores with the canary], [scores without it]) of `runs` trainings each."""
        return [[self.score(inside, seed + 2 * i + inside) for i in range(runs)] for inside in (True, False)]

    def bound(self, inside, outside):
        """The lower bound of all scores."""
        return bound(np.array(inside), np.array(outside), 1.0, STEPS)
