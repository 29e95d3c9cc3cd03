"""A fuzz of lots of persons with weights, beside a slow sum over persons that knows nothing of
rows, batches, threads or ranks.
"""

import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest

from minidp import nn, ranks
from minidp.data import LabelledExamples, Persons
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, per_layer_groups
from minidp.streams import Streams
from minidp.train import SGD, Trainer
from tests.support.training import side_by_side

CASES, SHARDS = 1000, 20
INPUTS, CLASSES = 3, 2
# clip norms, for each person of the lot: float32 norms are enlarged by a few times 2^-20
ROUNDING = {"float32": 2.0**-18, "float64": 1e-12}
PATIENCE = 20  # seconds for the other ranks
TEXTS = np.array("zoe Al ida 10 eve 9 bo cy di ann gil hal".split())


@dataclass(frozen=True)
class Case:
    """A table of persons' rows, the weight of each person by name, and how a step is computed."""

    x: np.ndarray
    y: np.ndarray
    names: np.ndarray
    weight: dict | None
    most: int  # K, the rows of a person that are used
    lot: list  # names
    layout: object
    clip: float
    strategy: str
    dtype: str
    batch_size: int | None
    threads: int
    ranks: int

    def without(self, name):
        """The case after a person left, with all rows and her weight."""
        stay = self.names != name
        weight = None
        if self.weight is not None:
            weight = {other: each for other, each in self.weight.items() if other != name}
        return replace(
            self,
            x=self.x[stay],
            y=self.y[stay],
            names=self.names[stay],
            weight=weight,
            lot=[other for other in self.lot if other != name],
        )


def make_case(seed):
    """A random case."""
    rng = np.random.default_rng(seed)
    persons = int(rng.integers(1, 13))
    known = rng.permutation(TEXTS)[:persons]
    if rng.random() < 0.5:
        known = rng.permutation(40)[:persons] - 20
    names = np.repeat(np.sort(known), rng.integers(1, 9, persons))
    order = rng.integers(3)
    if order == 1:  # in mixed order
        names = rng.permutation(names)
    elif order == 2:  # each person's rows together, persons in mixed order
        place = dict(zip(known.tolist(), rng.permutation(persons)))
        names = names[np.argsort([place[name] for name in names.tolist()], kind="stable")]
    x = rng.standard_normal((len(names), INPUTS)) * 10.0 ** rng.integers(-2, 1)
    if rng.random() < 0.2:
        x[rng.integers(len(names)), 0] = rng.choice([np.nan, np.inf])
    weight = None
    if rng.random() < 0.9:
        drawn = np.where(
            rng.random(persons) < 0.5, rng.integers(0, 2, persons), rng.random(persons)
        )
        weight = dict(zip(known.tolist(), drawn.astype("float32").tolist()))
    lot = known[rng.random(persons) < rng.choice([0, 0.5, 1])]
    return Case(
        x,
        rng.integers(0, CLASSES, len(names)),
        names,
        weight,
        most=int(rng.integers(1, 6)),
        lot=rng.permutation(lot).tolist(),
        layout=(flat_group, per_layer_groups)[rng.integers(2)],
        clip=float(rng.choice([0.01, 0.1, 1.0, 30.0])),
        strategy=str(rng.choice(["auto", "explicit", "factored"])),
        dtype=str(rng.choice(["float32", "float64"])),
        batch_size=(None, 1, 2, 5)[rng.integers(4)],
        threads=int(rng.integers(1, 3)),
        ranks=int(rng.integers(1, 3)),
    )


def make_network(dtype):
    """Two layers, so that there are two clip groups with one norm each."""
    rng = np.random.default_rng(0)
    layers = [
        nn.Dense(INPUTS, 4, rng=rng, dtype=dtype),
        nn.Tanh(),
        nn.Dense(4, CLASSES, rng=rng, dtype=dtype),
    ]
    return nn.Sequential(layers, (INPUTS,))


@np.errstate(all="ignore")
def expected(case):
    """{key: sum over the persons of the lot}, by lists of names, one row at a time, in float64."""
    network, loss = make_network("float64"), nn.SoftmaxCrossEntropy()
    groups = case.layout(network.params, case.clip, 0.0)
    total = {key: np.zeros(array.shape) for key, array in network.params.items()}
    x = case.x.astype(case.dtype).astype("float64")
    for name in case.lot:
        rows = [row for row, other in enumerate(case.names.tolist()) if other == name][: case.most]
        mean = {key: np.zeros(array.shape) for key, array in network.params.items()}
        for row in rows:
            z, caches = network.forward(x[row : row + 1])
            grads = network.param_grads(loss(z, case.y[row : row + 1])[1], caches)
            for key, g in grads.items():
                mean[key] += g.materialise()[0] / len(rows)
        weight = 1.0 if case.weight is None else case.weight[name]
        for group in groups:
            norm = np.sqrt(sum(float((mean[key] ** 2).sum()) for key in group.keys))
            for key in group.keys if np.isfinite(norm) else ():
                total[key] += weight * mean[key] / max(1.0, norm * (1 + 2.0**-20) / group.clip_norm)
    return total


class Pair(ranks.Solo):
    """One of several ranks that are threads of this process."""

    def __init__(self, rank, size, barrier, slots):
        self.rank, self.size, self.barrier, self.slots = rank, size, barrier, slots

    def collect(self, value):
        self.slots[self.rank] = value
        self.barrier.wait()
        found = list(self.slots)
        self.barrier.wait()
        return found

    def scatter_sum(self, flat):
        return np.split(sum(self.collect(flat.copy())), self.size)[self.rank]

    def gather(self, part):
        return np.concatenate(self.collect(part.copy()))


class Kept(SGD):
    """Keeps what was released."""

    def update(self, params, grads, step):
        self.released = {key: np.asarray(array, "float64") for key, array in grads.items()}


def released(case):
    """{key: the sum that `Trainer.step` releases, without noise}, of each rank."""
    names = np.unique(case.names)
    weight = None
    if case.weight is not None:
        weight = np.array([case.weight[name] for name in names.tolist()], "float32")
    lot = np.array([names.tolist().index(name) for name in case.lot], int)
    examples = LabelledExamples(
        case.x.astype(case.dtype), case.y, Persons(case.names, case.most), weight
    )
    found, barrier, slots = [], threading.Barrier(case.ranks, timeout=PATIENCE), [None] * case.ranks

    def step(rank):
        network = make_network(case.dtype)
        sanitizer = Sanitizer(case.layout(network.params, case.clip, 0.0), case.strategy)
        mine = Pair(rank, case.ranks, barrier, slots) if case.ranks > 1 else ranks.SOLO
        trainer = Trainer(
            network,
            nn.SoftmaxCrossEntropy(),
            Kept(1.0),
            Plan(PoissonSampler(0.5), sanitizer, 1, 1.0),
            batch_size=case.batch_size,
            ranks=mine,
            rows_per_person=case.most,
        )
        trainer.step(examples, lot, 0, Streams(0))
        found.append(trainer.optimizer.released)

    with pytest.MonkeyPatch.context() as patch:
        side_by_side(case.threads, patch)
        threads = [threading.Thread(target=step, args=[rank]) for rank in range(1, case.ranks)]
        for thread in threads:
            thread.start()
        try:
            step(0)
        except BaseException:
            barrier.abort()
            raise
        finally:
            for thread in threads:
                thread.join()
    assert len(found) == case.ranks
    return found


def off(case):
    """How far the step is from the slow sum, over the clip norm."""
    slow = expected(case)
    return max(
        float(np.abs(each[key] - slow[key]).max()) / case.clip
        for each in released(case)
        for key in slow
    )


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_step_sums_each_persons_clipped_mean_times_her_own_weight(shard):
    for seed in range(shard, CASES, SHARDS):
        case = make_case(seed)
        bound = ROUNDING[case.dtype] * max(len(case.lot), 1)
        assert off(case) <= bound, (seed, case)


@pytest.mark.parametrize("seed", range(200))
def test_one_person_who_leaves_moves_the_sum_by_no_more_than_is_charged(seed):
    case = replace(make_case(seed), ranks=1)
    for name in case.lot[:3]:
        (all_,), (others,) = released(case), released(case.without(name))
        for group in case.layout(make_network(case.dtype).params, case.clip, 0.0):
            moved = sum(float(((all_[key] - others[key]) ** 2).sum()) for key in group.keys)
            assert moved**0.5 <= case.clip * (1 + ROUNDING[case.dtype] * len(case.lot))


def numbers_of(batch, units):
    """The numbers of the persons of a batch."""
    return batch.rows[:: units.rows_per_unit] // units.rows_per_unit


def by_first_row(examples, numbers, at):
    """The fault that versions up to 0.1.0 had for K = 1."""
    rows = examples.units.slots(numbers)[0][:, 0]
    return examples.weight.take(rows, mode="clip")


def by_place_in_the_lot(examples, numbers, at):
    return examples.weight[at : at + len(numbers)]


def by_sorted_lot(examples, numbers, at):
    return examples.weight.take(np.argsort(np.argsort(numbers)))


def by_first_appearance(examples, numbers, at):
    first = examples.units.slots(np.arange(len(examples.units)))[0][:, 0]
    return examples.weight.take(np.argsort(np.argsort(first)))[numbers]


def by_names_as_texts(examples, numbers, at):
    order = np.argsort(examples.names_as_texts)
    return examples.weight.take(np.argsort(order))[numbers]


@pytest.mark.parametrize(
    "fault",
    [by_first_row, by_place_in_the_lot, by_sorted_lot, by_first_appearance, by_names_as_texts],
)
def test_weights_of_other_persons_are_noticed(fault, monkeypatch):
    right = LabelledExamples.batches

    def wrong(self, lot, most, draws=None):
        at = 0
        for batch in right(self, lot, most, draws):
            if batch.weight is not None:
                numbers = numbers_of(batch, self.units)
                batch = batch._replace(weight=fault(self, numbers, at))
                at += len(numbers)
            yield batch

    monkeypatch.setattr(LabelledExamples, "batches", wrong)
    noticed = 0
    for seed in range(60):
        case = replace(make_case(seed), ranks=1, threads=1)
        monkeypatch.setattr(
            LabelledExamples,
            "names_as_texts",
            np.unique(case.names).astype(str),
            raising=False,
        )
        noticed += off(case) > 1e-3
    assert noticed >= 5


@pytest.mark.parametrize("most", [1, 2])
def test_rows_of_persons_of_weight_0_change_no_weight_of_the_model(most):
    rng = np.random.default_rng(most)
    names = rng.permutation(np.repeat(np.arange(30), rng.integers(1, 4, 30)))
    x, y = rng.uniform(-1, 1, (len(names), INPUTS)), rng.integers(0, CLASSES, len(names))
    weight = (np.arange(30) % 2).astype("float32")

    def trained(x, y):
        network = make_network("float64")
        plan = Plan(PoissonSampler(0.5), Sanitizer(flat_group(network.params, 1.0, 1.0)), 6, 15.0)
        trainer = Trainer(network, nn.SoftmaxCrossEntropy(), SGD(0.5), plan, rows_per_person=most)
        trainer.train(x, y, Streams(3), example_weight=weight, person=names)
        return np.concatenate([array.ravel() for array in network.params.values()])

    def changed(rows):
        other = np.where(rows[:, None], rng.uniform(-1, 1, x.shape), x)
        return trained(other, np.where(rows, 1 - y, y))

    first, held = trained(x, y), weight[names] > 0
    assert np.array_equal(changed(~held), first)
    assert not np.allclose(changed(held), first, atol=1e-3)


def moved(copies, person=None, views=1):
    """How many clip norms a lot of equal rows moves the weights of one step, from all of them."""
    network = nn.Sequential([nn.Dense(INPUTS, CLASSES, rng=np.random.default_rng(0))], (INPUTS,))
    before = {key: array.copy() for key, array in network.params.items()}
    plan = Plan(PoissonSampler(1.0), Sanitizer(flat_group(network.params, 1.0, 0.0)), 1, 1)
    trainer = Trainer(
        network,
        nn.SoftmaxCrossEntropy(),
        SGD(1.0),
        plan,
        augmentation_multiplicity=views,
        rows_per_person=person and copies,
    )
    x, y = np.full((copies, INPUTS), 100, "float32"), np.zeros(copies, int)
    names = None if person is None else np.full(copies, person)
    trainer.train(x, y, Streams(0), person=names)
    squares = [((array - before[key]) ** 2).sum() for key, array in network.params.items()]
    return float(np.sqrt(np.sum(squares)))


def test_views_are_of_one_row_and_rows_that_are_views_already_need_a_person():
    assert moved(1, views=4) == pytest.approx(1, rel=1e-5)
    assert moved(4) == pytest.approx(4, rel=1e-5) == moved(4, views=4)
    assert moved(4, person="ann") == pytest.approx(1, rel=1e-5)
