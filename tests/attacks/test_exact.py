"""Exact arithmetic keeps its promises: sums are integers in any order, and no batch, thread or companion changes a bit."""
import os
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

from minidp import nn
from minidp.audit.cases import LAYERS
from minidp.data import LabelledExamples
from minidp.grads import Explicit, Outer, OuterSum
from minidp.host import threads
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, per_layer_groups
from minidp.streams import Streams
from minidp.train import SGD, Progress, Trainer

KEYS = [("layer", name) for name in ("outer", "sum", "rows")]


def gradients(rng, n):
    """Gradients of three kinds in one group, of any size."""
    draw = lambda *shape: (rng.standard_normal((n, *shape)) * 10.0 ** rng.uniform(-3, 3, (n,) + (1,) * len(shape))).astype("f4")
    return dict(zip(KEYS, (Outer(draw(3), draw(2)), OuterSum(draw(2, 3), draw(2, 2)), Explicit(draw(4)))))


def raw_sum(sanitizer, grads, batches):
    total = {}
    for rows in batches:
        part = {key: type(g)(*(f[rows] for f in ((g.g,) if isinstance(g, Explicit) else (g.a, g.d)))) for key, g in grads.items()}
        sanitizer.add_clipped(part, total)
    return [int(v) for key in KEYS for v in total[key].ravel()]


@pytest.mark.parametrize("strategy", ["explicit", "factored"])
def test_sums_are_those_of_pythons_integers_in_any_order(strategy):
    """A thousand random lots; and no contribution is longer than the clip norm."""
    rng, sanitizer = np.random.default_rng(0), Sanitizer(flat_group(KEYS, 0.7, 1.0), strategy, "exact")
    for _ in range(500):
        n = int(rng.integers(1, 6))
        grads = gradients(rng, n)
        alone = [raw_sum(sanitizer, grads, [[b]]) for b in range(n)]
        assert all(sum(v * v for v in each) <= 2**64 for each in alone)
        order = rng.permutation(n)
        got = raw_sum(sanitizer, grads, np.array_split(order, rng.integers(1, n + 1)))
        assert got == [sum(column) for column in zip(*alone)]


@dataclass(frozen=True)
class Seen(Sanitizer):
    """Keeps what it was given to release."""

    raw: list = field(default_factory=list, compare=False)

    def release(self, raw_sum, draws, others=(), *more):
        self.raw.append({key: sum((other[key] for other in others), raw_sum[key]).copy() for key in raw_sum})
        return super().release(raw_sum, draws, others, *more)


class Views:
    """Rows with noise of their own: another view each time."""

    def __init__(self, x):
        self.x, self.xp, self.shape, self.ndim, self.side_by_side = x, np, x.shape, x.ndim, True

    def take_views(self, indices, draws):
        return self.x[indices] + draws.random((len(indices), *self.shape[1:])).astype("f4") / 8


def dense(rng):
    return nn.Sequential([nn.Dense(17, 12, rng=rng), nn.ReLU(), nn.Dropout(0.3), nn.Dense(12, 3, rng=rng)], (17,))


def conv(rng):
    return nn.Sequential([nn.Conv2D(1, 4, 3, rng=rng), nn.GroupNorm(4, 2), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(),
                          nn.Dense(16, 3, rng=rng)], (4, 4, 1))


def around(case):
    """A small network with the layer of an audit case in its middle."""
    def make(rng):
        before, layer = nn.LayerNorm(case.shape[-1], name="before"), case.make(rng, "float32")
        size = int(np.prod(layer.output_shape(case.shape)))
        return nn.Sequential([before, layer, nn.Flatten(name="flat"), nn.Dense(size, 3, rng=rng, name="after")], case.shape)

    return make


def train(make, strategy="auto", batch_size=None, limit=1, lots=None, groups=flat_group, clip_norm=1.0, views=1, weighted=False,
          wild=False):
    """(the raw sums and the weights after one step on each of the lots) of 60 examples, on `limit` threads."""
    rng = np.random.default_rng(5)
    network = make(rng)
    x = rng.standard_normal((60, *network.input_shape)).astype("f4")
    if wild:
        x[[7, 21, 33, 40], ..., 0] = np.nan, np.inf, 1e30, 1e-40
    weight = rng.random(60) if weighted else None
    examples = LabelledExamples(Views(x) if views > 1 else x, rng.integers(0, 3, 60), views, weight)
    sanitizer = Seen(tuple(groups(network.params, clip_norm, 2.0)), strategy, "exact")
    trainer = Trainer(network, nn.SoftmaxCrossEntropy(), SGD(0.5), Plan(PoissonSampler(0.9), sanitizer, 2, 54),
                      batch_size=batch_size, augmentation_multiplicity=views)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "limit", lambda: limit)
        patch.setattr(threads, "MIN_SHARD", 8)
        for step, lot in enumerate(lots or [np.arange(50), np.arange(9, 60)[::-1]]):
            trainer.step(examples, lot, step, Streams(1))
    return sanitizer.raw, b"".join(array.tobytes() for array in network.params.values())


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("strategy", ["explicit", "factored"])
@pytest.mark.parametrize("make", [dense, conv, *map(around, LAYERS)], ids=["dense", "conv", *(case.name for case in LAYERS)])
def test_threads_and_batches_change_no_bit_of_a_run(make, strategy):
    (raw, weights), *others = (train(make, strategy, *how) for how in ((None, 1), (1, 2), (16, 4)))
    for other_raw, other_weights in others:
        assert weights == other_weights
        assert all((a[key] == b[key]).all() for a, b in zip(raw, other_raw) for key in a)


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("clip_norm", [1e-12, 0.3, 1e12])
@pytest.mark.parametrize("groups", [flat_group, per_layer_groups])
@pytest.mark.parametrize("strategy", ["explicit", "factored"])
@pytest.mark.parametrize("make, views", [(dense, 1), (conv, 1), (dense, 2), (conv, 4)])
def test_an_example_adds_what_it_adds_alone(make, views, strategy, groups, clip_norm):
    """For every neighbour of one lot: |S(D) - S(D')| is its own contribution, which no group's clip norm falls below."""
    options = dict(strategy=strategy, groups=groups, clip_norm=clip_norm, views=views, weighted=views > 1, wild=True)
    lot = np.random.default_rng(1).permutation(60)
    (everybody,), _ = train(make, lots=[lot], **options)
    grouped = groups(everybody, clip_norm, 2.0)
    for at in (7, 21, 33, 55):
        (without,), _ = train(make, lots=[lot[lot != at]], batch_size=17, limit=3, **options)
        (alone,), _ = train(make, lots=[np.array([at])], **options)
        for group in grouped:
            moved = [everybody[key] - without[key] for key in group.keys]
            assert all((m == alone[key]).all() for m, key in zip(moved, group.keys))
            assert sum(int(v) ** 2 for m in moved for v in m.ravel()) <= 2**64


def test_a_run_goes_on_with_the_same_bits():
    def weights(*stops):
        rng = np.random.default_rng(2)
        network, progress = dense(rng), Progress()
        x, y = rng.standard_normal((60, 17)).astype("f4"), rng.integers(0, 3, 60)
        plan = Plan(PoissonSampler(0.5), Sanitizer(flat_group(network.params, 1.0, 2.0), arithmetic="exact"), 6, 30)
        for stop in (*stops, 6):
            trainer = Trainer(network, nn.SoftmaxCrossEntropy(), SGD(0.5), plan, batch_size=7 if stops else None)
            progress = trainer.run(x, y, Streams(3), progress=progress, block_steps=1, should_stop=lambda: stop < 6).progress
            assert progress.step == stop
        return b"".join(array.tobytes() for array in network.params.values())

    assert weights() == weights(1, 2)


@pytest.mark.slow
def test_the_number_of_threads_of_a_process_changes_no_bit():
    script = ("import hashlib, sys; sys.path.insert(0, sys.argv[1]); import test_exact as t; from minidp.host import threads; "
              "print(*(hashlib.sha256(t.train(m, s, b, threads.limit())[1]).hexdigest() for m in (t.dense, t.conv) "
              "for s in ('explicit', 'factored') for b in (1, 64, None)))")
    runs = [subprocess.run([sys.executable, "-c", script, os.path.dirname(__file__)], capture_output=True, text=True, check=True,
                           env={**os.environ, "MINIDP_THREADS": str(n)}).stdout.split() for n in (1, 2, 4)]
    assert runs[0] == runs[1] == runs[2] and len(set(runs[0])) == 4
