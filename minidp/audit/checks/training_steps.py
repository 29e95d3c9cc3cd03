"""Checks of the trainer."""

import math
from functools import partial

import numpy as np

from ... import nn, train
from ...backend import to_host
from ...mechanism import LinearDecay, Plan, PoissonSampler, Sanitizer, per_layer_groups
from ...mechanism.noise import noise_grid
from ...streams import Streams
from ...train.tried import host_copy
from ..equation import Case
from . import in_words, measures, states, worst

CARD = "train.trainer.Trainer"
ALL = PoissonSampler(1.0)


class Mirrored:
    """Examples whose views are in turn themselves and their mirror images."""

    def __init__(self, x, bench):
        self.x, self.bench = x, bench
        self.ndim, self.shape, self.xp = 2, x.shape, bench.backend.xp

    def take(self, indices, axis=0):
        """The views with these numbers."""
        sign = 1.0 - 2 * (np.arange(len(indices)) % 2)
        return self.x.take(indices, axis=0) * self.bench.asarray(sign[:, None])

    def __getitem__(self, span):
        return self.x[span]


def _setting(bench, noise=0.8, clip=0.5, sampler=ALL, steps=4, strategy="auto", **settings):
    rng = np.random.default_rng(3)
    dense = partial(nn.Dense, rng=rng, dtype="float64")
    network = nn.Sequential([dense(4, 5), nn.Tanh(), dense(5, 3)], (4,))
    x, y = rng.uniform(-1, 1, (12, 4)), rng.integers(0, 3, 12)
    groups = per_layer_groups(list(network.params), clip, noise)
    plan = Plan(sampler, Sanitizer(groups, strategy), steps, 7)
    descent = train.SGD(LinearDecay(0.3, 0.1, 4))
    network.to(bench.backend)
    return train.Trainer(network, nn.SoftmaxCrossEntropy(), descent, plan, **settings), x, y


def _algorithm_1(trainer, network, examples, weight):
    """The parameters after a loop over steps and examples, each clipped by itself, on the host, in
    plain NumPy except for the normal numbers.

    network: a copy of the trainer's; examples: (x, y) of the rows of each.
    """
    streams, plan = Streams(5), trainer.plan
    for step, lot in enumerate(plan.sampler.lots(len(examples), plan.steps, streams.sampling)):
        total = {key: np.zeros(theta.shape) for key, theta in network.params.items()}
        for b in lot:
            x, y = examples[b]
            z, caches = network.forward(x)
            grads = network.param_grads(trainer.loss(z, y)[1], caches).items()
            mean = {key: g.materialise().mean(axis=0) for key, g in grads}
            for group in plan.sanitizer.groups:
                own = np.concatenate([mean[key].ravel() for key in group.keys])
                norm = np.linalg.norm(own) * (1 + 2.0**-20)
                for key in group.keys if np.isfinite(norm) else ():
                    total[key] += weight[b] * mean[key] / max(1, norm / group.clip_norm)
        draws = streams.noise(step)
        for group, key in ((group, key) for group in plan.sanitizer.groups for key in group.keys):
            if sigma := group.noise_multiplier:
                std = sigma * group.clip_norm
                grid = noise_grid(std)
                total[key] += std * draws.standard_normal(total[key].shape)
                total[key] = np.rint(total[key] / grid) * grid
            network.params[key] -= (0.3 - 0.05 * step) * total[key] / 7
    return network.params


VIEWS, PERSONS = {"augmentation_multiplicity": 2}, {"rows_per_person": 2}
CASES = (
    {"sampler": PoissonSampler(0.4), "strategy": "factored", "batch_size": 2},
    {"sampler": PoissonSampler(0.0)},
    {"noise": 0.0, "clip": math.inf},
    {"noise": 0.0, "clip": 0.1, **VIEWS},
    {"noise": 0.0, "clip": 0.3, **VIEWS, "strategy": "factored", "batch_size": 5},
    {"noise": 0.0, "clip": 5.0, **PERSONS, "strategy": "explicit", "batch_size": 2},
    {"noise": 0.0, "clip": 0.3, **PERSONS, "strategy": "factored"},
    {"sampler": PoissonSampler(0.5), "clip": 0.1, **PERSONS, "batch_size": 1},
)


@measures(CARD, "F2 F3 F4 V1", "Algorithm 1 as a loop over examples, same draws", 1e-10)
def training_equals_algorithm_1(bench):
    """With a falling learning rate, lots in batches, empty lots and plain SGD; with two views and
    with persons; with all, some or no gradients clipped; in every form of the gradients. A row that
    is not finite removes its person.
    """
    for case in CASES:
        trainer, x, y = _setting(bench, **case)
        rows, weight, more = np.arange(12)[:, None], np.ones(12), {}
        if "rows_per_person" in case:
            x[5, 0], rows = np.nan, [[0, 1], [2, 5], [3, 4], [6]]
            weight = bench.rng.uniform(0, 1, 4)
            person = np.array(list("aabccbdaaaaa"))
            more = {"person": person, "example_weight": bench.asarray(weight)}
        inputs = bench.asarray(x)
        if "augmentation_multiplicity" in case:
            inputs, x, y = Mirrored(inputs, bench), np.concatenate([x, -x]), np.tile(y, 2)
            rows = np.hstack([rows, rows + 12])
        start = host_copy(trainer.network)
        trainer.train(inputs, bench.asarray(y[:12]), Streams(5), **more)
        examples = [(x[each], y[each]) for each in rows]
        expected = _algorithm_1(trainer, start, examples, weight)
        yield from (worst(trainer.network.params[key], expected[key]) for key in expected)


in_words(CARD, "F1", "an order of events")
in_words(CARD, "F2", "the equations of the sanitizer, one after the other")


def _on_host(arrays):
    return {key: to_host(array).copy() for key, array in arrays.items()}


@states(CARD, "F3 F4")
def a_step(bench):
    """For plain SGD at a rate of 0.3."""
    trainer, *data = _setting(bench, steps=1)
    (x, y), network, sanitizer = map(bench.asarray, data), trainer.network, trainer.plan.sanitizer
    before = _on_host(network.params)
    z, caches = network.forward(x)
    raw = sanitizer.add_clipped(network.param_grads(trainer.loss(z, y)[1], caches))
    trainer.train(x, y, Streams(5))
    for key, released in sanitizer.release(raw, Streams(5).noise(0)).items():
        given = {"released": to_host(released), "L": 7, "theta": before[key]}
        given["optimizer"] = lambda theta, g: theta - 0.3 * g
        yield Case(given, {"theta": to_host(network.params[key])}, through="F4")


@states(CARD, "V1")
def rows_are_averaged(bench):
    """The rows of five units, of whom some have fewer than three."""
    trainer, *_ = _setting(bench, rows_per_person=3)
    x, y = bench.rng.uniform(-1, 1, (15, 4)), bench.rng.integers(0, 3, 15)
    share = np.array([[1, 0, 0], [1 / 2, 1 / 2, 0], *[[1 / 3] * 3] * 3])
    z, caches = trainer.network.forward(bench.asarray(x))
    dz = trainer.loss(z, bench.asarray(y))[1]
    each = trainer.network.param_grads(dz.copy(), caches)
    for key, merged in trainer._of_units(dz, caches, share.ravel()).items():
        g, merged = (to_host(grad.materialise()) for grad in (each[key], merged))
        g, merged = g.reshape((5, 3, -1)), merged.reshape((5, -1))
        yield Case({"g": g, "unit": merged, "share": share})


@measures(CARD, "F1", "steps drawn before the ledger, put on disk by on_charge, covers them", 0.0)
def the_ledger_covers_every_step_before_it_runs(bench):
    def charged(ledger):
        return sum(count for _, count in ledger.items())

    for block_steps in (1, 2, 100):
        covered, uncovered = [0], []

        class Watched(PoissonSampler):
            wrap = PoissonSampler.wrap  # its lots are Poisson's

            def lots(self, *arguments):
                for lot in super().lots(*arguments):
                    uncovered.append(covered[-1] <= len(uncovered))
                    yield lot

        trainer, x, y = _setting(bench, sampler=Watched(0.4), steps=9)
        trainer.train(
            *map(bench.asarray, (x, y)),
            Streams(5),
            block_steps=block_steps,
            on_charge=lambda ledger: covered.append(charged(ledger)),
        )
        yield sum(uncovered) + abs(len(uncovered) - 9) + abs(charged(trainer.ledger) - 9)
