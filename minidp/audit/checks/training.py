"""Checks of the trainer, the optimizers and the averaged weights."""

import math
from collections import defaultdict

import numpy as np

from ... import nn, train
from ...backend import Backend, to_host
from ...data import LabelledExamples
from ...mechanism import LinearDecay, Plan, PoissonSampler, Sanitizer, per_layer_groups
from ...streams import Streams
from .. import reference
from . import Bench, measures, worst

EXACT, NOISE_STD = 1e-12, 0.3
CARD = "train.trainer.Trainer"
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
    state["m"], state["v"] = (
        b1 * state["m"] + (1 - b1) * g,
        b2 * state["v"] + (1 - b2) * (g * g - NOISE_STD**2),
    )
    return (
        state["m"] / (1 - b1 ** (t + 1)) / math.sqrt(max(state["v"] / (1 - b2 ** (t + 1)), floor))
    )


MOVES = {
    "sgd": (lambda g, t, state: g, ()),
    "momentum": (_momentum, (0.5,)),
    "nesterov": (_nesterov, (0.5,)),
    "adagrad": (_adagrad, (0.5,)),
    "adam": (_adam, (0.5, 0.7, 0.2)),
    "adam-bc": (_adam_bc, (0.5, 0.7, 0.2, 0.3)),
}


def _register_optimizer(cls, move, others):
    """move: how far a number goes per unit of learning rate, given its gradient, the step and what
    it remembers.
    """
    labels = ("F1", "F2") if move in (_adam, _adam_bc) else ("F1",)

    @measures(
        f"train.optimizer.{cls.__name__}",
        " ".join(labels),
        "loop over single numbers, 6 steps",
        EXACT,
    )
    def steps_equal_a_scalar_loop(bench):
        """With the settings it has by itself and others, a constant rate and one that falls."""
        key = ("layer", "W")
        for rate, settings in ((0.1, ()), (LinearDecay(0.2, 0.1, 3), others)):
            optimizer, expected = cls(rate, *settings), bench.rng.uniform(-1, 1, (2, 3))
            gs = bench.rng.uniform(-1, 1, (6, 2, 3)) * 10.0 ** bench.rng.uniform(-3, 1, (6, 1, 1))
            theta = {key: bench.asarray(expected.copy())}
            for step, g in enumerate(gs):
                optimizer.update(theta, {key: bench.asarray(g.copy())}, step, {key: NOISE_STD})
            for index in np.ndindex(2, 3):
                state = defaultdict(float)
                for step, g in enumerate(gs[(slice(None), *index)]):
                    expected[index] -= (
                        0.2 - 0.1 * min(step / 3, 1) if callable(rate) else 0.1
                    ) * move(g, step, state, *settings)
            yield worst(theta[key], expected)


for _name, (_move, _others) in MOVES.items():
    _register_optimizer(train.OPTIMIZERS[_name], _move, _others)


@measures(
    "train.averaging.Averaged",
    "F1",
    "loop over single numbers, 30 steps; the same descent without",
    1e-14,
)
def average_equals_a_scalar_loop(bench):
    key, plain = ("layer", "W"), train.SGD(0.1)
    for decay in (0.0, 0.6, 0.999):
        averaged, start = train.Averaged(train.SGD(0.1), decay), bench.rng.uniform(-1, 1, 5)
        (theta, alone), expected = ({key: bench.asarray(start.copy())} for _ in range(2)), [0.0] * 5
        for t in range(30):
            g = bench.rng.uniform(-1, 1, 5)
            averaged.update(theta, {key: bench.asarray(g.copy())}, t)
            plain.update(alone, {key: bench.asarray(g)}, t)
            yield worst(theta[key], alone[key])
            d = min(decay, t / (t + 9))
            expected = [
                d * a + (1 - d) * float(now) for a, now in zip(expected, to_host(theta[key]))
            ]
            with averaged.averaged_weights(theta):
                yield worst(theta[key], np.array(expected))


def _setting(
    bench, noise=0.0, clip=0.5, steps=4, sampler=None, rate=0.2, strategy="auto", **settings
):
    rng = np.random.default_rng(3)
    network = nn.Sequential(
        [
            nn.Dense(4, 5, rng=rng, dtype="float64"),
            nn.Tanh(),
            nn.Dense(5, 3, rng=rng, dtype="float64"),
        ],
        (4,),
    )
    x, y = rng.uniform(-1, 1, (12, 4)), rng.integers(0, 3, 12)
    groups = per_layer_groups(list(network.params), clip, noise)
    plan = Plan(sampler or PoissonSampler(0.4), Sanitizer(groups, strategy), steps, 7)
    network.to(bench.backend)
    trainer = train.Trainer(network, nn.SoftmaxCrossEntropy(), train.SGD(rate), plan, **settings)
    return trainer, x, y


def _run(trainer, bench, x, y, **options):
    trainer.run(bench.asarray(x), bench.asarray(y), Streams(5), **options)
    return {key: to_host(array).copy() for key, array in trainer.network.params.items()}


def _algorithm_1(trainer, x, y, rate=lambda step: 0.2):
    """The same run as a loop over steps and examples, with the same draws; parameters on the
    host.
    """
    streams, network, plan = Streams(5), trainer.network, trainer.plan
    for step, lot in enumerate(plan.sampler.lots(len(x), plan.steps, streams.sampling)):
        total = (
            reference.clipped_sum(
                reference.single_example_grads(network, nn.SoftmaxCrossEntropy(), x[lot], y[lot]),
                plan.sanitizer.groups,
            )
            if len(lot)
            else dict.fromkeys(network.params, 0.0)
        )
        draws = streams.noise(step)
        for group in plan.sanitizer.groups:
            for key in group.keys:
                theta = network.params[key]
                noise_std = (
                    group.clip_norm * group.noise_multiplier if group.noise_multiplier else 0.0
                )
                raw = np.broadcast_to(total[key], theta.shape)
                theta -= rate(step) * reference.noisy(raw, noise_std, draws) / 7
    return network.params


@measures(CARD, "F2 F3 F4", "Algorithm 1 as a loop over examples, same draws", 1e-10)
def training_equals_algorithm_1(bench):
    """With a learning rate that falls, in every form of the gradients, lots in batches, empty lots,
    plain SGD.
    """
    for noise, clip, q, strategy, batch_size in (
        (0.0, 0.5, 0.4, "explicit", 4096),
        (0.8, 0.5, 0.4, "factored", 2),
        (0.8, 0.5, 0.4, "auto", 5),
        (0.8, 0.5, 0.0, "auto", 4096),
        (0.0, math.inf, 1.0, "auto", 4096),
    ):
        settings = {"noise": noise, "clip": clip, "sampler": PoissonSampler(q)}
        trainer, x, y = _setting(
            bench,
            rate=LinearDecay(0.3, 0.1, 4),
            strategy=strategy,
            batch_size=batch_size,
            **settings,
        )
        got = _run(trainer, bench, x, y)
        expected = _algorithm_1(*_setting(_HOST, **settings), lambda step: 0.3 - 0.05 * step)
        yield from (worst(got[key], expected[key]) for key in expected)


@measures(CARD, "V1", "mean of the views' gradients by loops, clipped", 1e-10)
def views_are_averaged_before_clipping(bench):
    """An example shows itself and its mirror image in turn."""

    class Mirrored:
        ndim, shape, xp = 2, (12, 4), bench.backend.xp

        def __init__(self, x):
            self.x = x

        def take(self, indices, axis=0):
            sign = 1 - 2 * (np.arange(len(indices)) % 2)
            return self.x.take(indices, axis=0) * bench.asarray(sign[:, None].astype(float))

    loss = nn.SoftmaxCrossEntropy()
    for clip, batch_size, strategy in (
        (0.1, 4096, "auto"),
        (5.0, 4096, "explicit"),
        (0.3, 5, "factored"),
        (0.3, 2, "explicit"),
    ):
        # all are clipped, none is, some are
        trainer, x, y = _setting(
            bench, clip=clip, batch_size=batch_size, strategy=strategy, augmentation_multiplicity=2
        )
        examples = LabelledExamples(Mirrored(bench.asarray(x)), bench.asarray(y), 2)
        trainer.step(examples, np.arange(12), 0, Streams(5))
        host, x, y = _setting(_HOST, clip=clip)
        params = host.network.params
        first, second = (
            reference.single_example_grads(host.network, loss, view, y) for view in (x, -x)
        )
        total = reference.clipped_sum(
            {key: (first[key] + second[key]) / 2 for key in first}, host.plan.sanitizer.groups
        )
        yield from (
            worst(to_host(trainer.network.params[key]), theta - 0.2 * total[key] / 7)
            for key, theta in params.items()
        )


@measures(CARD, "F1", "steps drawn before the ledger, put on disk by on_charge, covers them", 0.0)
def the_ledger_covers_every_step_before_it_runs(bench):
    for block_steps in (1, 2, 100):
        covered, uncovered, drawn = [0], [], [0]

        class Watched(PoissonSampler):
            def lots(self, *arguments):
                for lot in super().lots(*arguments):
                    drawn[0] += 1
                    uncovered.append(covered[-1] < drawn[0])
                    yield lot

        trainer, x, y = _setting(bench, 0.8, steps=9, sampler=Watched(0.4))
        _run(
            trainer,
            bench,
            x,
            y,
            block_steps=block_steps,
            on_charge=lambda ledger: covered.append(sum(count for _, count in ledger.items())),
        )
        yield (
            sum(uncovered)
            + abs(drawn[0] - 9)
            + abs(sum(count for _, count in trainer.ledger.items()) - 9)
        )
