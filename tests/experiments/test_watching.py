"""Watched norms: every tenth lot, whole; the same whatever the threads; None where training
diverged.
"""

from dataclasses import replace

from common.watching import EVERY, MedianNorms

import numpy as np
import pytest

from minidp.host import threads
from minidp.streams import Streams
from tests.support.training import make_data, make_trainer, values


def watched(monkeypatch, shards, change=lambda x: x):
    """(medians by group, trained weights) of 25 seeded lots in so many shards."""
    monkeypatch.setattr(threads, "shards_for", lambda *lot: shards)
    trainer, watcher = make_trainer(steps=25), MedianNorms()
    trainer.plan = replace(trainer.plan, sanitizer=replace(trainer.plan.sanitizer, watcher=watcher))
    x, y = make_data()
    trainer.train(change(x), y, Streams(3))
    return watcher.medians, values(trainer.network)


def test_threads_do_not_matter_nor_does_a_run_notice_that_it_is_watched(monkeypatch):
    shared, _ = watched(monkeypatch, 3)
    (alone, weights), unwatched = watched(monkeypatch, 1), make_trainer(steps=25)
    unwatched.train(*make_data(), Streams(3))
    assert all((weights[key] == array).all() for key, array in values(unwatched.network).items())
    for group, medians in alone.items():
        assert len(medians) == len(range(0, 25, EVERY))
        assert shared[group] == pytest.approx(medians, rel=1e-12)


def test_the_first_median_is_that_of_the_lots_own_gradients(monkeypatch):
    trainer = make_trainer()
    (lot,) = trainer.plan.sampler.lots(40, 1, Streams(3).sampling)
    x, y = make_data()
    z, caches = trainer.network.forward(x[lot])
    grads = trainer.network.param_grads(trainer.loss(z, y[lot])[1], caches)
    medians, _ = watched(monkeypatch, 2)
    for group in trainer.plan.sanitizer.groups:
        norms = [
            np.sqrt(sum((grads[key].materialise()[b] ** 2).sum() for key in group.keys))
            for b in range(len(lot))
        ]
        assert medians[group.name][0] == pytest.approx(np.median(norms))


def test_norms_that_are_not_finite_are_none(monkeypatch):
    medians, _ = watched(monkeypatch, 2, change=lambda x: x * np.nan)
    assert medians and all(median is None for found in medians.values() for median in found)
