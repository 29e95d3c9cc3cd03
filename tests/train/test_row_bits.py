"""float64: batches of one number of rows, and the trial of rows' bits."""

import numpy as np
import pytest

from minidp import nn
from minidp.data import LabelledExamples
from minidp.data.persons import Persons
from minidp.grads import Explicit
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.mechanism.samplers import SAMPLERS
from minidp.run import row_bits
from minidp.run.row_bits import differing
from minidp.streams import Streams
from minidp.train import SGD, Trainer, batching
from minidp.train.batching import MULTIPLE, Batching
from minidp.units import Rows
from tests.support.training import make_data, make_network, make_trainer, side_by_side, values

LOSS = nn.SoftmaxCrossEntropy()


class Counting(nn.Layer):
    """Notes how many rows each batch has."""

    kind = "counting"

    def __init__(self):
        super().__init__()
        self.seen = set()

    def compute_y(self, x, rng):
        self.seen.add(len(x))
        return x, None

    def compute_dx(self, dy, kept):
        return dy


class Planted(nn.Layer):
    """y = x w, in the last bit of which something else takes part."""

    kind = "planted"

    def __init__(self, fault):
        super().__init__()
        self.params, self.fault = {"w": np.ones(1)}, fault

    def compute_y(self, x, rng):
        if self.fault == "place":
            scale = 1 + np.arange(len(x))[:, None] * 2.0**-52
        elif self.fault == "others":
            scale = 1 + np.isnan(x).any() * 2.0**-52
        else:
            scale = 1.0
        return x * self.params["w"] * scale, x

    def compute_dx(self, dy, x):
        return dy * self.params["w"]

    def compute_grads(self, dy, x):
        order = np.argsort(x[:, 0]) if self.fault == "gradient" else np.arange(len(x))
        g = (dy * x).sum(axis=1, keepdims=True)
        return (
            {"w": Explicit(g * (1 + order[:, None] * 2.0**-52))}
            if self.fault
            else {"w": Explicit(g)}
        )


def small(*layers):
    rng = Streams(6).init
    dense = nn.Dense(5, 3, rng=rng, dtype="float64")
    return nn.Sequential([*layers, dense], (5,))


@pytest.mark.parametrize("fault", [None, "place", "others", "gradient"])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_trial_names_the_layer_whose_rows_depend_on_place_or_others(fault, rows):
    network = small(nn.ReLU(), Planted(fault))
    found = differing(network, LOSS, np.zeros(4, int), 48, rows, "auto")
    assert found == ([] if fault is None else ["planted1"])


def test_the_trial_names_the_loss():
    def loss(z, target):
        losses, dz = LOSS(z, target)
        return losses, dz + np.arange(len(z))[:, None] * 1e-15

    assert differing(small(), loss, np.zeros(4, int), 48, 1, "auto") == ["loss loss"]


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("count", [1, 2])
def test_padding_changes_weights_by_rounding_only_and_the_ledger_not_at_all(
    sampler, count, monkeypatch
):
    side_by_side(count, monkeypatch)
    found = []
    for equal in (True, False):
        trainer = make_trainer(sampler=sampler, batch_size=None)
        trainer.batching.equal = equal
        trainer.train(*make_data(), Streams(1))
        found.append((values(trainer.network), trainer.ledger.sha256()))
    (padded, ledger), (plain, other) = found
    assert ledger == other
    for key, array in plain.items():
        np.testing.assert_allclose(padded[key], array, rtol=1e-12, atol=1e-12)


def test_all_batches_of_a_run_have_one_number_of_rows(monkeypatch):
    side_by_side(2, monkeypatch)
    monkeypatch.setattr(batching, "cache_examples", lambda network: 30)
    for x, y, more in (
        (*make_data(examples=500), {}),
        (*make_data(examples=0), {}),
        (*make_data(examples=500), {"augmentation_multiplicity": 5}),
        (*make_data(examples=500), {"rows_per_person": 3}),
    ):
        counting = Counting()
        network = small(counting)
        plan = Plan(PoissonSampler(0.3), Sanitizer(flat_group(network.params, 1.0, 1.0)), 5, 150)
        trainer = Trainer(network, LOSS, SGD(0.1), plan, **more)
        units = Rows(len(x), more.get("augmentation_multiplicity", 1))
        if "rows_per_person" in more:
            units = Persons(np.arange(500) % 200, 3)
        examples = LabelledExamples(x, y, units)
        streams = Streams(1)
        lots = list(plan.sampler.lots(len(examples), 5, streams.sampling, 0))
        for step, lot in enumerate([*lots, lots[0][:0]]):
            trainer.step(examples, lot, step, streams)
        (rows,) = counting.seen
        assert rows % MULTIPLE == 0
        assert rows == row_bits.tried(trainer, x, y)["rows"]


def test_padding_repeats_no_row_and_weighs_nothing():
    x, y = make_data()
    examples = LabelledExamples(x, y, weight=np.full(len(x), 0.5, np.float32))
    (shard,) = Batching(make_network(), 1, 96, 8).shards(examples, np.array([3, 7]), None)[:1]
    batch = next(shard)
    assert len(batch.x) == len(batch.y) == len(batch.weight) == len(batch.rows) >= 48
    held = np.flatnonzero(batch.weight)
    assert held.tolist() == [*range(len(held))] and not batch.x[len(held) :].any()
    assert batch.y.dtype == y.dtype and not batch.y[len(held) :].any()


def test_float32_is_not_padded_and_not_tried():
    trainer = make_trainer(dtype="float32")
    assert row_bits.tried(trainer, *make_data(dtype="float32")) == {"dtype": "float32"}
    examples = LabelledExamples(*make_data(dtype="float32"))
    shards = trainer.batching.shards(examples, np.arange(7), None)
    assert sum(len(batch.x) for shard in shards for batch in shard) == 7
