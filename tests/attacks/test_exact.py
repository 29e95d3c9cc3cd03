"""Exact arithmetic keeps its promises: sums are integers in any order, and no batch, thread or
companion changes a bit.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

from minidp import nn
from minidp.data import LabelledExamples
from minidp.host import threads
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, per_layer_groups
from minidp.streams import Streams
from minidp.train import SGD, Trainer


@dataclass(frozen=True)
class Seen(Sanitizer):
    """Keeps what it was given to release."""

    raw: list = field(default_factory=list, compare=False)

    def release(self, raw_sum, draws, others=(), *more):
        self.raw.append(
            {key: sum((other[key] for other in others), raw_sum[key]).copy() for key in raw_sum}
        )
        return super().release(raw_sum, draws, others, *more)


class Views:
    """Rows with noise of their own: another view each time."""

    def __init__(self, x):
        self.x, self.xp, self.shape, self.ndim, self.side_by_side = x, np, x.shape, x.ndim, True

    def take_views(self, indices, draws):
        return self.x[indices] + draws.random((len(indices), *self.shape[1:])).astype("f4") / 8


def dense(rng):
    return nn.Sequential(
        [nn.Dense(17, 12, rng=rng), nn.ReLU(), nn.Dropout(0.3), nn.Dense(12, 3, rng=rng)], (17,)
    )


def conv(rng):
    return nn.Sequential(
        [
            nn.Conv2D(1, 4, 3, rng=rng),
            nn.GroupNorm(4, 2),
            nn.ReLU(),
            nn.MaxPool2D(2),
            nn.Flatten(),
            nn.Dense(16, 3, rng=rng),
        ],
        (4, 4, 1),
    )


def train(
    make,
    strategy="auto",
    batch_size=None,
    limit=1,
    lots=None,
    groups=flat_group,
    clip_norm=1.0,
    views=1,
):
    """(the raw sums and the weights after one step on each of the lots) of 60 examples, on `limit`
    threads.
    """
    rng = np.random.default_rng(5)
    network = make(rng)
    x = rng.standard_normal((60, *network.input_shape)).astype("f4")
    x[[7, 21, 33, 40], ..., 0] = np.nan, np.inf, 1e30, 1e-40
    weight = rng.random(60) if views > 1 else None
    examples = LabelledExamples(Views(x) if views > 1 else x, rng.integers(0, 3, 60), views, weight)
    sanitizer = Seen(tuple(groups(network.params, clip_norm, 2.0)), strategy, "exact")
    trainer = Trainer(
        network,
        nn.SoftmaxCrossEntropy(),
        SGD(0.5),
        Plan(PoissonSampler(0.9), sanitizer, 2, 54),
        batch_size=batch_size,
        augmentation_multiplicity=views,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "limit", lambda: limit)
        patch.setattr(threads, "MIN_SHARD", 8)
        for step, lot in enumerate(lots or [np.arange(50), np.arange(9, 60)[::-1]]):
            trainer.step(examples, lot, step, Streams(1))
    return sanitizer.raw, b"".join(array.tobytes() for array in network.params.values())


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("strategy", ["explicit", "factored"])
@pytest.mark.parametrize("make", [dense, conv])
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
    """For every neighbour of one lot: |S(D) - S(D')| is its own contribution, which no group's clip
    norm falls below.
    """
    options = {"strategy": strategy, "groups": groups, "clip_norm": clip_norm, "views": views}
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
