"""The library's own step passes minidp.audit.check_step with all claims; with a planted fault it
does not.
"""

import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from minidp import nn
from minidp.audit import check_step
from minidp.examples import LabelledExamples
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, ShuffleSampler, flat_group
from minidp.ranks import SOLO, Solo
from minidp.streams import Streams
from minidp.train import Trainer
from tools.attacks.canaries import CLIP, Recorder

LOT, SIGMA, N, BATCH, RANKS = 16, 1.5, 320, 48, 4


class Rank(Solo):
    """One of several ranks, each a thread of this process."""

    def __init__(self, rank, board, barrier):
        self.rank, self.size, self._board, self._barrier = rank, len(board), board, barrier

    def collect(self, value):
        self._board[self.rank] = value
        self._barrier.wait()
        found = list(self._board)
        self._barrier.wait()
        return found

    def scatter_sum(self, flat):
        return np.split(sum(self.collect(flat)), self.size)[self.rank]

    def gather(self, part):
        return np.concatenate(self.collect(part))


class Own:
    """One step of Algorithm 1 by the library's parts; a row is an input of 6 and a target of 3."""

    def __init__(self, sanitizer=Sanitizer, trainer=Trainer, ranks=1, **how):
        board, barrier = [None] * ranks, threading.Barrier(ranks, timeout=60)
        several = [Rank(rank, board, barrier) for rank in range(ranks)] if ranks > 1 else [SOLO]
        self.trainers = [trainer_of(sanitizer, trainer, rank, **how) for rank in several]
        self.start = [array.copy() for array in self.trainers[0].network.params.values()]
        # ranks share a seed as they share a key, which hands out each release once
        self.streams = Streams(secrets.randbits(64)) if ranks > 1 else Streams()
        self.steps = 0

    def __call__(self, rows):
        self.steps += 1
        with ThreadPoolExecutor(len(self.trainers)) as pool:
            return next(pool.map(lambda trainer: self.release(trainer, rows), self.trainers))

    def release(self, trainer, rows):
        for array, start in zip(trainer.network.params.values(), self.start):
            array[...] = start
        examples = LabelledExamples(rows[:, :6].copy(), rows[:, 6:].copy())
        trainer.step(examples, np.arange(len(rows)), self.steps, self.streams)
        return trainer.optimizer.released.pop()


def trainer_of(sanitizer, trainer, ranks, strategy="auto"):
    rng = np.random.default_rng(5)
    layers = [nn.Dense(6, 5, rng=rng), nn.Tanh(), nn.Dense(5, 3, rng=rng)]
    network = nn.Sequential(layers, (6,))
    groups = flat_group(network.params, CLIP, SIGMA)
    plan = Plan(PoissonSampler(1.0), sanitizer(groups, strategy), 10**6, LOT)
    return trainer(network, nn.SquaredError(), Recorder(), plan, batch_size=BATCH, ranks=ranks)


def checked(sampler=PoissonSampler(LOT / N), claims=(), **parts):
    def lots(rows, steps):
        return sampler.lots(rows, steps, Streams().sampling)

    return check_step(
        Own(**parts),
        row_shape=(9,),
        clip_norm=CLIP,
        noise_multiplier=SIGMA,
        expected_lot_size=LOT,
        sampling_probability=LOT / N,
        lots=lots,
        claims=claims,
        make_step=lambda: Own(**parts),
        relation=sampler.relation.value,
    )


EVERYTHING = ("trained", "finite", "bits", "processes", "poisson")


@pytest.mark.parametrize("strategy", ["auto", "explicit", "factored"])
def test_our_own_step_holds_with_all_claims(strategy):
    report = checked(strategy=strategy, claims=EVERYTHING)
    assert {found.verdict for found in report.findings} == {"holds"}, report


def test_our_own_step_does_what_it_claims_with_shuffled_lots():
    report = checked(ShuffleSampler(N, LOT), claims=("finite", "processes"))
    assert report and "sampler: " in str(report)


def with_noise(sanitizer, share):
    """A sanitizer that adds a share of the noise that this one charges."""
    groups = [
        replace(group, noise_multiplier=share * group.noise_multiplier)
        for group in sanitizer.groups
    ]
    return Sanitizer(groups)


def noise_of_a_batch(self, *arguments, **named):
    total = Sanitizer.add_clipped(self, *arguments, **named)
    total.update(with_noise(self, 1 / 4).release(total, Streams().noise("batch")))
    return total


def float32_noise(self, raw_sum, draws, others=(), scale=1.0, *more):
    found = with_noise(self, 0).release(raw_sum, draws, others)
    rng = np.random.default_rng(draws.words(1))
    for group in self.groups:
        for key in group.keys:
            drawn = rng.standard_normal(found[key].shape, np.float32)
            noisy = found[key].astype(np.float32) + np.float32(group.noise_std) * drawn
            found[key] = noisy * np.float32(scale)
    return found


class Leaky(Trainer):
    def step(self, examples, lot, *others):
        self.plan = replace(self.plan, expected_lot_size=max(1, len(lot)))
        super().step(examples, lot, *others)


def release_of_each_rank(self, raw_sum, draws, others=(), scale=1.0, dtype="float64", ranks=SOLO):
    """Independent shares of the noise add up to less than the whole."""
    share, fresh = with_noise(self, 1 / ranks.size), Streams().noise("rank")
    mine = share.release(raw_sum, fresh, others, scale, dtype)
    parts = zip(*(each.values() for each in ranks.collect(mine)))
    return {key: sum(part) for key, part in zip(mine, parts)}


def broken(**methods):
    """A sanitizer with other methods; what it charges stays."""
    return {"sanitizer": type("Sanitizer", (Sanitizer,), methods)}


# fault: (the parts of training that have it, the test that finds it); float32 sums whose rounding
# is not charged are found by the search in test_sums alone
FAULTS = {
    "clipping left out": (
        broken(_sq_norms=lambda self, *a: 0 * Sanitizer._sq_norms(self, *a)),
        "sensitivity",
    ),
    "noise once a batch": (
        broken(
            add_clipped=noise_of_a_batch, release=lambda self, *a: with_noise(self, 0).release(*a)
        ),
        "noise",
    ),
    "Poisson claimed, shuffling done": (
        {"sampler": ShuffleSampler(N, LOT), "claims": ["poisson"]},
        "sampler",
    ),
    "float32 noise": (
        {**broken(release=float32_noise), "claims": ["bits"]},
        "bits",
    ),
    "divided by the lot's own size": ({"trainer": Leaky}, "divisor"),
    "too little noise on each rank": (
        {**broken(release=release_of_each_rank), "ranks": RANKS},
        "noise",
    ),
}


@pytest.mark.parametrize("parts, test", FAULTS.values(), ids=FAULTS)
def test_with_a_planted_fault_it_does_not(parts, test):
    found = {each.name: each.verdict for each in checked(**parts).findings}
    assert found[test] == "violated"
