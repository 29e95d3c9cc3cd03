"""Checks of the trainer, the optimizers and the averaged weights."""

import math
from functools import partial

import numpy as np

from ... import nn, train
from ...backend import Backend, to_host
from ...grads.forms import Explicit
from ...mechanism import LinearDecay, Plan, PoissonSampler, Sanitizer, per_layer_groups
from ...streams import Streams
from ...train.metrics import right_answers
from ..card import labels_of
from ..equation import Case
from . import Bench, in_words, measures, states, worst

EXACT, NOISE_STD = 1e-12, 0.3
CARD = "train.trainer.Trainer"
KEY = ("layer", "W")
_HOST = Bench(None, Backend.numpy())


# the names that the equations give the fields and slots of optimizers
NAMED = {"momentum": "m", "offset": "e", "beta1": "b1", "beta2": "b2", "velocity": "v"}
NAMED |= {"sum_of_squares": "s", "mean": "m", "square": "v"}
SETTINGS = {  # besides the rate
    "sgd": (),
    "momentum": (0.5,),
    "nesterov": (0.5,),
    "adagrad": (0.5,),
    "adam": (0.5, 0.7, 0.2),
    "adam-bc": (0.5, 0.7, 0.2, 0.3),
}


def _steps(bench, cls, others, label):
    """With the settings it has by itself and others, a constant rate and one that falls. What a
    second label starts from is what the first has changed.
    """
    for rate, settings in ((0.1, ()), (LinearDecay(0.2, 0.1, 3), others)):
        optimizer = cls(rate, *settings)
        theta = {KEY: bench.asarray(bench.rng.uniform(-1, 1, (2, 3)))}
        optimizer.allocate(theta)
        fields = {NAMED.get(name, name): value for name, value in vars(optimizer).items()}
        for step in range(6):
            before, g = (
                _state(optimizer, theta),
                bench.rng.uniform(-1, 1, (2, 3)) * 8.0 ** (2 - step),
            )
            optimizer.update(theta, {KEY: bench.asarray(g.copy())}, step, {KEY: NOISE_STD})
            after = _state(optimizer, theta)
            given = {"s": NOISE_STD, "g": g, "t": step + 1, **fields}
            given["eta"] = rate(step) if callable(rate) else rate
            given |= {**(after if label == "F2" else before), "theta": before["theta"]}
            yield Case(given, after)


def _state(optimizer, theta):
    found = {NAMED[name]: to_host(slot[KEY]).copy() for name, slot in optimizer.slots.items()}
    return {**found, "theta": to_host(theta[KEY]).copy()}


for _name, _others in SETTINGS.items():
    _cls = train.OPTIMIZERS[_name]
    _card = f"train.optimizer.{_cls.__name__}"
    for _label in labels_of(_card):
        states(_card, _label, EXACT, "steps")(
            partial(_steps, cls=_cls, others=_others, label=_label)
        )


@states("train.metrics.right_answers", "F1", 1e-14)
def right_answers_of_a_regression(bench):
    z, t = bench.rng.uniform(-2, 2, (9, 1)), bench.rng.uniform(-1, 1, 9)
    v = right_answers(nn.Sequential([nn.Flatten()], (1,)), z, t)
    yield Case({"z": z[:, 0], "t": t, "v": v})


@states("train.averaging.Averaged", "F1", 1e-14)
def averages(bench):
    """Of the weights that the optimizer alone has."""
    for decay in (0.0, 0.6, 0.999):
        plain, averaged, a = train.SGD(0.1), train.Averaged(train.SGD(0.1), decay), np.zeros(3)
        alone, theta = ({KEY: bench.asarray(np.ones(3))} for _ in range(2))
        for t, g in enumerate(bench.rng.uniform(-1, 1, (30, 3))):
            for optimizer, params in ((plain, alone), (averaged, theta)):
                optimizer.update(params, {KEY: bench.asarray(g.copy())}, t)
            given = {"a": a, "theta": to_host(alone[KEY]), "decay": decay, "t": t}
            with averaged.averaged_weights(theta):
                a = to_host(theta[KEY]).copy()
            yield Case(given, {"a": a})


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


def mean_gradient(network, loss, x, y):
    """{key: Explicit of one row}: the mean of the gradients of rows, each computed by itself."""
    each = []
    for b in range(len(x)):
        z, caches = network.forward(x[b : b + 1])
        grads = network.param_grads(loss(z, y[b : b + 1])[1], caches)
        each.append({key: g.materialise() for key, g in grads.items()})
    return {key: Explicit(sum(g[key] for g in each) / len(x)) for key in each[0]}


def _algorithm_1(trainer, x, y, views):
    """The parameters after a loop over steps and examples, each clipped by itself, on the host."""
    streams, network, plan = Streams(5), trainer.network, trainer.plan
    for step, lot in enumerate(plan.sampler.lots(len(x), plan.steps, streams.sampling)):
        total = {key: np.zeros(theta.shape) for key, theta in network.params.items()}
        for b in lot:
            shown = np.array([sign * x[b] for sign in (1, -1)[:views]])
            one = mean_gradient(network, trainer.loss, shown, y[[b] * views])
            total = plan.sanitizer.add_clipped(one, total)
        for key, g in plan.sanitizer.release(total, streams.noise(step)).items():
            network.params[key] -= (0.3 - 0.05 * step) * g / 7
    return network.params


@measures(CARD, "F2 F3 F4 V1", "Algorithm 1 as a loop over examples, same draws", 1e-10)
def training_equals_algorithm_1(bench):
    """With a learning rate that falls, lots in batches, empty lots, plain SGD; with two views,
    which are all clipped, or some of them.
    """
    rows = (
        (0.8, 0.5, 0.4, "factored", 2, 1),
        (0.8, 0.5, 0.0, "auto", 4096, 1),
        (0.0, math.inf, 1.0, "auto", 4096, 1),
        (0.0, 0.1, 1.0, "auto", 4096, 2),
        (0.0, 0.3, 1.0, "factored", 5, 2),
    )
    for noise, clip, q, strategy, batch_size, views in rows:
        setting = noise, clip, PoissonSampler(q)
        how = {"batch_size": batch_size, "augmentation_multiplicity": views}
        trainer, x, y = _setting(bench, *setting, strategy=strategy, **how)
        inputs = Mirrored(bench.asarray(x), bench) if views == 2 else bench.asarray(x)
        trainer.run(inputs, bench.asarray(y), Streams(5))
        expected = _algorithm_1(*_setting(_HOST, *setting), views)
        yield from (worst(trainer.network.params[key], expected[key]) for key in expected)


in_words(CARD, "F1", "an order of events")
in_words(CARD, "F2", "the equations of the sanitizer, one after the other")


class _Seen(train.SGD):
    """Keeps the last gradients."""

    def update(self, params, grads, step, noise_std={}):
        self.g = _on_host(grads)
        super().update(params, grads, step, noise_std)


def _on_host(arrays):
    return {key: to_host(array).copy() for key, array in arrays.items()}


@states(CARD, "F3 F4")
def a_step(bench):
    """Of plain SGD at a rate of 0.3."""
    trainer, *data = _setting(bench, 0.8, 0.5, PoissonSampler(1.0), steps=1)
    (x, y), network, sanitizer = map(bench.asarray, data), trainer.network, trainer.plan.sanitizer
    before, seen = _on_host(network.params), _Seen(0.3)
    z, caches = network.forward(x)
    raw = sanitizer.add_clipped(network.param_grads(trainer.loss(z, y)[1], caches))
    trainer.optimizer = seen
    trainer.run(x, y, Streams(5))
    for key, released in sanitizer.release(raw, Streams(5).noise(0)).items():
        given = {"g": seen.g[key], "released": to_host(released), "L": 7, "theta": before[key]}
        given["optimizer"] = lambda theta, g: theta - 0.3 * g
        yield Case(given, {"theta": to_host(network.params[key])})


@states(CARD, "V1")
def views_are_averaged(bench):
    trainer, x, y = _setting(bench, 0.8, 0.5, PoissonSampler(1.0), augmentation_multiplicity=2)
    z, caches = trainer.network.forward(bench.asarray(x))
    dz = trainer.loss(z, bench.asarray(y))[1]
    each = trainer.network.param_grads(dz.copy(), caches)
    for key, merged in trainer._over_rows(dz, caches).items():
        g = to_host(each[key].materialise())
        g = g.reshape((6, 2, *g.shape[1:]))
        yield Case({"g": g, "merged": to_host(merged.materialise()), "K": 2})


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
