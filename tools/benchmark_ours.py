"""minidp's private step, and the floor that no implementation of it can go below."""

from minidp import host

host.tune()  # before NumPy loads

from itertools import count
from math import prod

import numpy as np

from minidp import nn
from minidp.backend import Backend, synchronise
from minidp.data import LabelledExamples
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
from tools.benchmark import CLIP_NORM, LEARNING_RATE, NOISE_MULTIPLIER, contend, data

LAYERS = {"conv": nn.Conv2D, "maxpool": nn.MaxPool2D, "relu": nn.ReLU, "flatten": nn.Flatten}


def make(contender, workload, device):
    """(a step without arguments, its network's parameters) of a form of our step, or the floor."""
    backend = Backend.pick(device)
    if contender == "floor":
        return floor(workload, backend)
    trainer, examples, streams = trainer_of(workload, contender, backend)
    return step_of(trainer, examples, streams), size(trainer.network)


def step_of(trainer, examples, streams):
    """A function that draws the next lot and descends along its release."""
    steps = count()

    def step():
        number = next(steps)
        (lot,) = trainer.plan.sampler.lots(len(examples), 1, streams.sampling, number)
        trainer.step(examples, lot, number, streams)
        synchronise(examples.xp)

    return step


def size(network):
    """The number of a network's parameters."""
    return sum(prod(array.shape) for array in network.params.values())


def network_of(workload, rng):
    """The workload's network in minidp's layers."""
    layers = []
    for kind, *sizes in workload.layers:
        if kind == "dense":
            inputs, outputs, bias = sizes
            layers.append(nn.Dense(inputs, outputs, rng=rng, bias=bias))
        elif kind == "conv":
            inputs, outputs, kernel, stride, padding = sizes
            layers.append(
                nn.Conv2D(inputs, outputs, kernel, rng=rng, stride=stride, padding=padding)
            )
        else:
            layers.append(LAYERS[kind](*sizes))
    return nn.Sequential(layers, tuple(workload.input_shape))


def trainer_of(workload, strategy, backend, seed=None):
    """(trainer, examples, streams) of private steps; strategy: the form of their gradients."""
    streams = Streams(seed)
    examples = LabelledExamples(*map(backend.asarray, data(workload)))
    network = network_of(workload, streams.init).to(backend)
    layout = flat_group if workload.flat else per_layer_groups
    sanitizer = Sanitizer(layout(network.params, CLIP_NORM, NOISE_MULTIPLIER), strategy)
    sampler = PoissonSampler(workload.lot / workload.examples)
    plan = Plan(sampler, sanitizer, 10**9, workload.lot)
    return Trainer(network, nn.SoftmaxCrossEntropy(), SGD(LEARNING_RATE), plan), examples, streams


def products(network):
    """(positions, inputs, outputs) of each layer's matrix product; a patch is a position."""
    shape = network.input_shape
    found = []
    for layer in network.layers:
        shape = layer.output_shape(shape)
        if "W" in layer.params:
            *inputs, outputs = layer.params["W"].shape
            found.append((prod(shape[:-1]), prod(inputs), outputs))
    return found


def floor(workload, backend):
    """The products of one lot, in the trainer's batches, and one draw of the noise."""
    xp = backend.xp
    rng = np.random.default_rng(0)
    streams = Streams()
    network = network_of(workload, rng).to(backend)
    rows = min(MAX_BATCH, cache_examples(network))
    batches = [min(rows, workload.lot - start) for start in range(0, workload.lot, rows)]

    def draw(*shape):
        return backend.asarray(rng.standard_normal(shape, dtype=np.float32))

    layers = []
    for positions, inputs, outputs in products(network):
        n = batches[0] * positions
        layers.append((positions, draw(n, inputs), draw(n, outputs), draw(inputs, outputs)))
    results = [tuple(map(xp.empty_like, arrays)) for _, *arrays in layers]
    sums = [np.zeros(array.shape, np.float32) for array in network.params.values()]
    releases = count()

    def step():
        for batch in batches:
            for k, ((positions, a, d, W), (da, y, dW)) in enumerate(zip(layers, results)):
                n = batch * positions
                xp.matmul(a[:n], W, out=y[:n])
                xp.matmul(a[:n].T, d[:n], out=dW)
                if k:
                    xp.matmul(d[:n], W.T, out=da[:n])
        draws = streams.noise(next(releases))
        for raw in sums:
            xp.asarray(add_gaussian(raw, 1.0, draws))
        synchronise(xp)

    return step, size(network)


if __name__ == "__main__":
    contend(make)
