"""A small training problem, which the tests of tests/train share."""

from minidp import nn
from minidp.backend import Backend, to_host
from minidp.host import threads
from minidp.mechanism import (
    Plan,
    Sanitizer,
    per_layer_groups,
)
from minidp.mechanism.samplers import SAMPLERS, make_sampler
from minidp.streams import Streams
from minidp.train import SGD, Trainer

EXAMPLES, INPUTS, CLASSES, LOT = 40, 5, 3, 8
LOTS = dict.fromkeys(SAMPLERS, 12) | {"poisson": LOT}  # shuffled: of 12, 12, 12 and 4
NUMPY = Backend.numpy()


def make_data(backend=NUMPY, dtype="float64", examples=EXAMPLES):
    """x (examples, INPUTS) and class labels y, always the same."""
    rng = Streams(5).init
    x = rng.standard_normal((examples, INPUTS)).astype(dtype)
    return backend.asarray(x), backend.asarray(rng.integers(0, CLASSES, examples))


def make_network(backend=NUMPY, dtype="float64"):
    """Two dense layers, always with the same initial values."""
    rng = Streams(6).init
    layers = [
        nn.Dense(INPUTS, 6, rng=rng, dtype=dtype),
        nn.Tanh(),
        nn.Dense(6, CLASSES, rng=rng, dtype=dtype),
    ]
    return nn.Sequential(layers, (INPUTS,)).to(backend)


def make_plan(
    network,
    sampler="poisson",
    steps=10,
    clip_norm=1.0,
    noise_multiplier=1.0,
    layout=per_layer_groups,
):
    """A plan over all parameters of the network."""
    groups = layout(network.params, clip_norm, noise_multiplier)
    size = LOTS[sampler]
    return Plan(make_sampler(sampler, EXAMPLES, size), Sanitizer(groups), steps, size)


def make_trainer(
    backend=NUMPY,
    optimizer=None,
    dtype="float64",
    batch_size=4096,
    budget=None,
    ledger=None,
    **plan,
):
    """A trainer of the network above; other keywords go to `make_plan`."""
    network = make_network(backend, dtype)
    loss, optimizer = nn.SoftmaxCrossEntropy(), optimizer or SGD(0.5)
    plan = make_plan(network, **plan)
    return Trainer(network, loss, optimizer, plan, budget, ledger, batch_size)


def side_by_side(count, monkeypatch):
    """Rows of any number go in `count` parts, in as many threads, and BLAS need not be told of
    them.
    """
    monkeypatch.setattr(threads, "limit", lambda: count)
    monkeypatch.setattr(threads, "thread_functions", lambda: (lambda: 1, lambda number: None))
    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setattr(threads, "shards_for", lambda *lot: count)


def values(network):
    """{key: host copy} of the trained parameters."""
    return {key: to_host(array).copy() for key, array in network.params.items()}
