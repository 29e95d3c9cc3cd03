"""Checks of the trainer, the optimizers and the averaged weights."""

import math
from collections import defaultdict
from functools import partial

import numpy as np

from ... import nn, train
from ...backend import Backend, to_host
from ...mechanism import LinearDecay, Plan, PoissonSampler, Sanitizer, per_layer_groups
from ...streams import Streams
from .. import reference
from . import Bench, measures, worst

EXACT, NOISE_STD = 1e-12, 0.3
CARD = "train.trainer.Trainer"
KEY = ("layer", "W")
_HOST = Bench(None, Backend.numpy())


def _momentum(g, t, state, m=0.9):
    state["v"] = m * state["v"] + g
    return state["v"]


def _nesterov(g, t, state, m=0.9):
    return g + m * _momentum(g, t, state, m)


def _adagrad(g, t, state, offset=1e-8):
    state["s"] += g * g
    return g / (math.sqrt(state["s"]) + offset)


def _adam(g, t, state, b1=0.9, b2=0.999, offset=1e-8):
    state["m"], state["v"] = b1 * state["m"] + (1 - b1) * g, b2 * state["v"] + (1 - b2) * g * g
    return state["m"] / (1 - b1 ** (t + 1)) / (math.sqrt(state["v"] / (1 - b2 ** (t + 1))) + offset)


def _adam_bc(g, t, state, b1=0.9, b2=0.999, offset=1e-8, floor=5e-8):
    state["m"] = b1 * state["m"] + (1 - b1) * g
    state["v"] = b2 * state["v"] + (1 - b2) * (g * g - NOISE_STD**2)
    second = max(state["v"] / (1 - b2 ** (t + 1)), floor)
    return state["m"] / (1 - b1 ** (t + 1)) / math.sqrt(second)


# name: (labels, how far a number goes per unit of learning rate, given its gradient, the step and
# what it remembers; other settings)
MOVES = {
    "sgd": ("F1", lambda g, t, state: g, ()),
    "momentum": ("F1", _momentum, (0.5,)),
    "nesterov": ("F1", _nesterov, (0.5,)),
    "adagrad": ("F1", _adagrad, (0.5,)),
    "adam": ("F1 F2", _adam, (0.5, 0.7, 0.2)),
    "adam-bc": ("F1 F2", _adam_bc, (0.5, 0.7, 0.2, 0.3)),
}


def _steps(bench, cls, move, others):
    """With the settings it has by itself and others, a constant rate and one that falls."""
    for rate, settings in ((0.1, ()), (LinearDecay(0.2, 0.1, 3), others)):
        optimizer, expected = cls(rate, *settings), bench.rng.uniform(-1, 1, (2, 3))
        gs = bench.rng.uniform(-1, 1, (6, 2, 3)) * 10.0 ** bench.rng.uniform(-3, 1, (6, 1, 1))
        theta = {KEY: bench.asarray(expected.copy())}
        for step, g in enumerate(gs):
            optimizer.update(theta, {KEY: bench.asarray(g.copy())}, step, {KEY: NOISE_STD})
        for index in np.ndindex(2, 3):
            state = defaultdict(float)
            for step, g in enumerate(gs[(slice(None), *index)]):
                eta = 0.2 - 0.1 * min(step / 3, 1) if callable(rate) else 0.1
                expected[index] -= eta * move(g, step, state, *settings)
        yield worst(theta[KEY], expected)


for _name, (_labels, _move, _others) in MOVES.items():
    _cls = train.OPTIMIZERS[_name]
    _card = f"train.optimizer.{_cls.__name__}"
    _register = measures(_card, _labels, "loop over single numbers, 6 steps", EXACT, "steps")
    _register(partial(_steps, cls=_cls, move=_move, others=_others))


@measures(
    "train.averaging.Averaged",
    "F1",
    "loop over single numbers, 30 steps; the same descent without",
    1e-14,
)
def average_equals_a_scalar_loop(bench):
    plain = train.SGD(0.1)
    for decay in (0.0, 0.6, 0.999):
        averaged, start = train.Averaged(train.SGD(0.1), decay), bench.rng.uniform(-1, 1, 5)
        (theta, alone), expected = ({KEY: bench.asarray(start.copy())} for _ in range(2)), 0.0
        for t in range(30):
            g = bench.rng.uniform(-1, 1, 5)
            averaged.update(theta, {KEY: bench.asarray(g.copy())}, t)
            plain.update(alone, {KEY: bench.asarray(g)}, t)
            yield worst(theta[KEY], alone[KEY])
            d = min(decay, t / (t + 9))
            expected = d * expected + (1 - d) * to_host(theta[KEY])
            with averaged.averaged_weights(theta):
                yield worst(theta[KEY], expected)


class Mirrored:
    """Examples that show themselves and their mirror images in turn."""

    def __init__(self, x, bench):
        self.x, self.bench = x, bench
        self.ndim, self.shape, self.xp = 2, x.shape, bench.backend.xp

    def take(self, indices, axis=0):
        """The views with these numbers."""
        sign = 1.0 - 2 * (np.arange(len(indices)) % 2)
        return self.x.take(indices, axis=0) * self.bench.asarray(sign[:, None])


def _setting(bench, noise, clip, sampler, steps=4, strategy="auto", **settings):
    rng = np.random.default_rng(3)
    dense = partial(nn.Dense, rng=rng, dtype="float64")
    network = nn.Sequential([dense(4, 5), nn.Tanh(), dense(5, 3)], (4,))
    x, y = rng.uniform(-1, 1, (12, 4)), rng.integers(0, 3, 12)
    groups = per_layer_groups(list(network.params), clip, noise)
    plan = Plan(sampler, Sanitizer(groups, strategy), steps, 7)
    descent = train.SGD(LinearDecay(0.3, 0.1, 4))
    network.to(bench.backend)
    return train.Trainer(network, nn.SoftmaxCrossEntropy(), descent, plan, **settings), x, y


def _algorithm_1(trainer, x, y, views):
    """The parameters after a loop over steps and examples, with the same draws, on the host."""
    streams, network, plan = Streams(5), trainer.network, trainer.plan
    for step, lot in enumerate(plan.sampler.lots(len(x), plan.steps, streams.sampling)):
        grads = {key: np.zeros((0, *theta.shape)) for key, theta in network.params.items()}
        if len(lot):
            shown = [
                reference.single_example_grads(network, trainer.loss, sign * x[lot], y[lot])
                for sign in (1, -1)[:views]
            ]
            grads = {key: sum(view[key] for view in shown) / views for key in grads}
        total, draws = reference.clipped_sum(grads, plan.sanitizer.groups), streams.noise(step)
        for group in plan.sanitizer.groups:
            sigma = group.noise_multiplier
            noise_std = group.clip_norm * sigma if sigma else 0.0
            for key in group.keys:
                theta = network.params[key]
                theta -= (0.3 - 0.05 * step) * reference.noisy(total[key], noise_std, draws) / 7
    return network.params


def _training(bench, rows):
    for noise, clip, q, strategy, batch_size, views in rows:
        setting = noise, clip, PoissonSampler(q)
        how = {"batch_size": batch_size, "augmentation_multiplicity": views}
        trainer, x, y = _setting(bench, *setting, strategy=strategy, **how)
        inputs = Mirrored(bench.asarray(x), bench) if views == 2 else bench.asarray(x)
        trainer.run(inputs, bench.asarray(y), Streams(5))
        expected = _algorithm_1(*_setting(_HOST, *setting), views)
        yield from (worst(trainer.network.params[key], expected[key]) for key in expected)


@measures(CARD, "F2 F3 F4", "Algorithm 1 as a loop over examples, same draws", 1e-10)
def training_equals_algorithm_1(bench):
    """With a learning rate that falls, in every form of the gradients, lots in batches, empty lots,
    plain SGD.
    """
    rows = (
        (0.0, 0.5, 0.4, "explicit", 4096, 1),
        (0.8, 0.5, 0.4, "factored", 2, 1),
        (0.8, 0.5, 0.4, "auto", 5, 1),
        (0.8, 0.5, 0.0, "auto", 4096, 1),
        (0.0, math.inf, 1.0, "auto", 4096, 1),
    )
    return _training(bench, rows)


@measures(CARD, "V1", "mean of the views' gradients by loops, clipped", 1e-10)
def views_are_averaged_before_clipping(bench):
    """All are clipped, none is, some are."""
    rows = (
        (0.0, 0.1, 1.0, "auto", 4096, 2),
        (0.0, 5.0, 1.0, "explicit", 4096, 2),
        (0.0, 0.3, 1.0, "factored", 5, 2),
        (0.0, 0.3, 1.0, "explicit", 2, 2),
    )
    return _training(bench, rows)


@measures(CARD, "F1", "steps drawn before the ledger, put on disk by on_charge, covers them", 0.0)
def the_ledger_covers_every_step_before_it_runs(bench):
    def charged(ledger):
        return sum(count for _, count in ledger.items())

    for block_steps in (1, 2, 100):
        covered, uncovered = [0], []

        class Watched(PoissonSampler):
            def lots(self, *arguments):
                for lot in super().lots(*arguments):
                    uncovered.append(covered[-1] <= len(uncovered))
                    yield lot

        trainer, x, y = _setting(bench, 0.8, 0.5, Watched(0.4), steps=9)
        trainer.run(
            *map(bench.asarray, (x, y)),
            Streams(5),
            block_steps=block_steps,
            on_charge=lambda ledger: covered.append(charged(ledger)),
        )
        yield sum(uncovered) + abs(len(uncovered) - 9) + abs(charged(trainer.ledger) - 9)
