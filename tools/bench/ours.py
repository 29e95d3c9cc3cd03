"""minidp's private step, and the floors that no implementation of it can go below."""

from minidp import host

host.tune()  # before NumPy loads

from itertools import count
from math import prod

import numpy as np
from minidp import nn
from minidp.arithmetic import EXACT, ORDINARY
from minidp.backend import Backend, synchronise
from minidp.data import LabelledExamples
from minidp.errors import DeviceUnavailableError
from minidp.mechanism import (
    Plan,
    PoissonSampler,
    Sanitizer,
    add_gaussian,
    flat_group,
    per_layer_groups,
)
from minidp.streams import Streams
from minidp.train import SGD, Trainer
from minidp.train.trainer import MAX_BATCH, cache_examples

from .workloads import CLIP_NORM, LEARNING_RATE, NOISE_MULTIPLIER, data

STRATEGIES = ("auto", "factored", "explicit", "exact")
FLOORS = ("floor", "copy")


def make(contender, workload, device):
    """(step, memory): a function without arguments, and None or one that tells the device's peak in
    bytes.
    """
    try:
        backend = Backend.pick(device)
    except DeviceUnavailableError as error:
        raise SystemExit(f"error: {error}") from error
    maker = {"floor": make_floor, "copy": make_copy}.get(contender)
    step = maker(workload, backend) if maker else make_step(workload, contender, backend)
    return step, _pool if backend.name == "gpu" else None


def network_of(workload, rng):
    """The workload's network in minidp's layers."""
    makers = {
        "dense": lambda inputs, outputs, bias: nn.Dense(inputs, outputs, rng=rng, bias=bias),
        "conv": lambda inputs, outputs, kernel, stride, padding: nn.Conv2D(
            inputs, outputs, kernel, rng=rng, stride=stride, padding=padding
        ),
        "maxpool": nn.MaxPool2D,
        "relu": nn.ReLU,
        "flatten": nn.Flatten,
    }
    return nn.Sequential(
        [makers[kind](*sizes) for kind, *sizes in workload.layers], workload.input_shape
    )


def trainer_of(workload, strategy, backend, seed=None):
    """(trainer, examples, streams) of private steps; strategy of the gradients, or "exact" for
    exact arithmetic.
    """
    streams = Streams(seed)
    examples = LabelledExamples(*map(backend.asarray, data(workload)))
    network = network_of(workload, streams.init).to(backend)
    groups = flat_group if workload.flat else per_layer_groups
    how = ("auto", EXACT) if strategy == EXACT else (strategy, ORDINARY)
    sanitizer = Sanitizer(groups(network.params, CLIP_NORM, NOISE_MULTIPLIER), *how)
    plan = Plan(PoissonSampler(workload.lot / workload.examples), sanitizer, 10**9, workload.lot)
    return Trainer(network, nn.SoftmaxCrossEntropy(), SGD(LEARNING_RATE), plan), examples, streams


def make_step(workload, strategy, backend):
    """One whole private step: the Poisson lot is drawn, clipped, summed, noised, and the parameters
    move.
    """
    trainer, examples, streams = trainer_of(workload, strategy, backend)
    steps = count()

    def step():
        step = next(steps)
        (lot,) = trainer.plan.sampler.lots(workload.examples, 1, streams.sampling, step)
        trainer.step(examples, lot, step, streams)
        synchronise(backend.xp)

    return step


def products(workload):
    """(positions, inputs, outputs) of each layer's matrix product; a position is a row an example,
    or a patch.
    """
    network = network_of(workload, np.random.default_rng(0))
    shape, found = network.input_shape, []
    for layer in network.layers:
        shape = layer.output_shape(shape)
        if "W" in layer.params:
            *inputs, outputs = layer.params["W"].shape
            found.append((prod(shape[:-1]), prod(inputs), outputs))
    return found


def make_floor(workload, backend):
    """The bare products of forward and backward on one lot, in the trainer's batches, and one draw
    of the noise.
    """
    xp, streams, rng = backend.xp, Streams(), np.random.default_rng(0)
    network = network_of(workload, rng).to(backend)
    rows = min(MAX_BATCH, cache_examples(network))
    batches = [min(rows, workload.lot - start) for start in range(0, workload.lot, rows)]

    def draw(*shape):
        return backend.asarray(rng.standard_normal(shape, dtype=np.float32))

    layers = [
        (rows, draw(batches[0] * rows, i), draw(batches[0] * rows, o), draw(i, o))
        for rows, i, o in products(workload)
    ]
    results = [tuple(map(xp.empty_like, arrays)) for _, *arrays in layers]
    sums, releases = (
        [np.zeros(array.shape, np.float32) for array in network.params.values()],
        count(),
    )

    def floor():
        for batch in batches:
            for k, ((rows, a, d, W), (da, y, dW)) in enumerate(zip(layers, results)):
                a, d = a[: batch * rows], d[: batch * rows]
                xp.matmul(a, W, out=y[: batch * rows])
                xp.matmul(a.T, d, out=dW)
                if k:
                    xp.matmul(d, W.T, out=da[: batch * rows])
        draws = streams.noise(next(releases))
        for raw in sums:
            xp.asarray(add_gaussian(raw, 1.0, draws))
        synchronise(xp)

    return floor


def make_copy(workload, backend):
    """A copy as large as a lot's materialised gradients: what is written once and read once costs
    no less.
    """
    params = network_of(workload, np.random.default_rng(0)).params
    numbers = workload.lot * sum(prod(p.shape) for p in params.values())
    source, target = (backend.xp.ones(numbers, dtype=np.float32) for _ in range(2))

    def copy():
        target[...] = source
        synchronise(backend.xp)

    return copy


def _pool():
    """Bytes that CuPy holds of the device."""
    import cupy

    return cupy.get_default_memory_pool().total_bytes()
