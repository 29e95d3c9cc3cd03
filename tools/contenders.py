"""What `tools.benchmark` times: workloads, and the step of each contender on them.

A step has no arguments; its maker returns it with the number of its network's parameters. The
steps of PyTorch, Opacus and JAX are as their documentation has them.
"""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from minidp import nn
from minidp.backend import Backend
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
from minidp.train.batching import MAX_BATCH, cache_examples

STRATEGIES = ("auto", "factored", "explicit")
CLIP_NORM, NOISE_MULTIPLIER, LEARNING_RATE, CLASSES = 4.0, 4.0, 0.05, 10


@dataclass(frozen=True)
class Workload:
    """A network, its lot and the size of its data set: what every library builds its step from.

    layers       ("dense", inputs, outputs, bias), ("maxpool", window, stride), ("relu",),
                 ("flatten",), or ("conv", inputs, outputs, kernel, stride, padding) with padding
                 "same" or "valid"
    input_shape  of one example; images are (height, width, channels)
    flat         one clip group over all parameters; otherwise one per layer
    """

    name: str
    layers: tuple
    input_shape: tuple
    lot: int
    examples: int
    flat: bool = False

    def small(self):
        """The same network with a few examples, for trials of what uses it."""
        return replace(self, lot=16, examples=64)


def dense_relu(*widths, bias):
    """Dense layers of these widths with ReLU between them."""
    layers = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [("dense", inputs, outputs, bias), ("relu",)]
    return tuple(layers[:-1])


# Abadi et al., Section 5.3: convolutions 5x5x64 with ReLU and 2x2 max pooling, dense 384, 384, 10.
CIFAR_NETWORK = (
    *(("conv", 3, 64, 5, 1, "same"), ("relu",), ("maxpool", 2, 2)),
    *(("conv", 64, 64, 5, 1, "same"), ("relu",), ("maxpool", 2, 2)),
    ("flatten",),
    *dense_relu(6 * 6 * 64, 384, 384, 10, bias=True),
)

# The tutorial network for private MNIST: convolutions 8x8x16 and 4x4x32, stride 2, dense 32, 10.
MNIST_CNN = (
    *(("conv", 1, 16, 8, 2, "same"), ("relu",), ("maxpool", 2, 1)),
    *(("conv", 16, 32, 4, 2, "valid"), ("relu",), ("maxpool", 2, 1)),
    ("flatten",),
    *dense_relu(4 * 4 * 32, 32, 10, bias=True),
)

WORKLOADS = {
    "W1": Workload("W1", dense_relu(60, 1000, 10, bias=False), (60,), 600, 60_000),
    "W2": Workload("W2", dense_relu(784, 1000, 10, bias=False), (784,), 600, 60_000),
    "W3": Workload("W3", dense_relu(2304, 384, 384, 10, bias=False), (2304,), 2000, 50_000),
    "W4": Workload("W4", CIFAR_NETWORK, (24, 24, 3), 128, 10_000, flat=True),
    "W5": Workload("W5", MNIST_CNN, (28, 28, 1), 256, 60_000, flat=True),
}


def data(workload):
    """Draw x (examples, *input_shape) float32 and y (examples,) int64."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((workload.examples, *workload.input_shape), dtype=np.float32)
    return x, rng.integers(0, CLASSES, workload.examples)


def lots(workload):
    """Endless index arrays of exactly one lot: permutations of the data set, cut into lots."""
    rng = np.random.default_rng(1)
    while True:
        order = rng.permutation(workload.examples)
        for start in range(0, workload.examples - workload.lot + 1, workload.lot):
            yield order[start : start + workload.lot]


def network_of(workload, rng):
    """The workload's network in minidp's layers."""
    kinds = {"maxpool": nn.MaxPool2D, "relu": nn.ReLU, "flatten": nn.Flatten}
    layers = []
    for kind, *sizes in workload.layers:
        if kind == "dense":
            inputs, outputs, bias = sizes
            layers.append(nn.Dense(inputs, outputs, rng=rng, bias=bias))
        elif kind == "conv":
            *sizes, stride, padding = sizes
            layers.append(nn.Conv2D(*sizes, rng=rng, stride=stride, padding=padding))
        else:
            layers.append(kinds[kind](*sizes))
    return nn.Sequential(layers, workload.input_shape)


def parameters(network):
    """The number of a network's parameters."""
    return sum(math.prod(array.shape) for array in network.params.values())


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


def private_step(workload, strategy):
    """(a step without arguments, its network's parameters) of minidp."""
    trainer, examples, streams = trainer_of(workload, strategy, Backend.numpy())
    numbers = itertools.count()

    def step():
        number = next(numbers)
        (lot,) = trainer.plan.sampler.lots(len(examples), 1, streams.sampling, number)
        trainer.step(examples, lot, number, streams)

    return step, parameters(trainer.network)


def products(network):
    """(positions, inputs, outputs) of each layer's matrix product; a patch is a position."""
    shape = network.input_shape
    found = []
    for layer in network.layers:
        shape = layer.output_shape(shape)
        if "W" in layer.params:
            *inputs, outputs = layer.params["W"].shape
            found.append((math.prod(shape[:-1]), math.prod(inputs), outputs))
    return found


def floor_step(workload, contender):
    """The products of one lot, in the trainer's batches, and one draw of the noise."""
    rng, streams = np.random.default_rng(0), Streams()
    network = network_of(workload, rng)
    rows = min(MAX_BATCH, cache_examples(network))
    batches = [min(rows, workload.lot - start) for start in range(0, workload.lot, rows)]
    layers = []
    for positions, inputs, outputs in products(network):
        n = batches[0] * positions
        shapes = ((n, inputs), (n, outputs), (inputs, outputs))
        drawn = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
        layers.append((positions, *drawn, *map(np.empty_like, drawn)))
    sums = [np.zeros(array.shape, np.float32) for array in network.params.values()]
    releases = itertools.count()

    def step():
        for batch in batches:
            for k, (positions, a, d, W, da, y, dW) in enumerate(layers):
                n = batch * positions
                np.matmul(a[:n], W, out=y[:n])
                np.matmul(a[:n].T, d[:n], out=dW)
                if k:
                    np.matmul(d[:n], W.T, out=da[:n])
        draws = streams.noise(next(releases))
        for raw in sums:
            add_gaussian(raw, 1.0, draws)

    return step, parameters(network)


def torch_layers(workload):
    """The layers, in PyTorch's."""
    from torch import nn

    size = workload.input_shape[0]
    for kind, *sizes in workload.layers:
        if kind == "dense":
            inputs, outputs, bias = sizes
            yield nn.Linear(inputs, outputs, bias=bias)
        elif kind == "conv":
            inputs, outputs, kernel, stride, padding = sizes
            zeros = 0
            if padding == "same":  # the same on both sides, in these workloads
                zeros = ((-(-size // stride) - 1) * stride + kernel - size) // 2
            yield nn.Conv2d(inputs, outputs, kernel, stride, zeros)
            size = (size + 2 * zeros - kernel) // stride + 1
        elif kind == "maxpool":
            window, stride = sizes
            yield nn.MaxPool2d(window, stride)
            size = (size - window) // stride + 1
        else:
            yield nn.ReLU() if kind == "relu" else nn.Flatten()


def torch_step(workload, contender):
    """PyTorch's step without privacy, or Opacus's private one with ghost clipping."""
    import torch

    x, y = data(workload)
    if len(workload.input_shape) == 3:
        x = np.ascontiguousarray(x.transpose(0, 3, 1, 2))  # PyTorch's users keep channels first
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    model = torch.nn.Sequential(*torch_layers(workload))
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    criterion = torch.nn.CrossEntropyLoss()
    size = sum(each.numel() for each in model.parameters())
    if contender == "opacus-ghost":
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        model, optimizer, criterion, _ = PrivacyEngine().make_private(
            module=model,
            optimizer=optimizer,
            criterion=criterion,
            grad_sample_mode="ghost",
            data_loader=DataLoader(TensorDataset(x, y), batch_size=workload.lot),
            noise_multiplier=NOISE_MULTIPLIER,
            max_grad_norm=CLIP_NORM,
        )
    drawn = lots(workload)

    def step():
        lot = torch.from_numpy(next(drawn))
        optimizer.zero_grad()
        criterion(model(x[lot]), y[lot]).backward()
        optimizer.step()

    return step, size


def jax_step(workload, contender):
    """JAX's compiled step without privacy."""
    import jax
    import jax.numpy as jnp

    x, y = map(jnp.asarray, data(workload))
    network = network_of(workload, np.random.default_rng(0))
    params = [dict(layer.params) for layer in network.layers]

    def loss(params, x, y):
        for (kind, *sizes), p in zip(workload.layers, params):
            if kind == "dense":
                x = x @ p["W"] + p.get("b", 0)
            elif kind == "conv":
                *_, stride, padding = sizes
                axes = ("NHWC", "HWIO", "NHWC")
                strides = (stride, stride)
                x = p["b"] + jax.lax.conv_general_dilated(
                    x, p["W"], strides, padding.upper(), dimension_numbers=axes
                )
            elif kind == "maxpool":
                window, stride = ((1, size, size, 1) for size in sizes)
                x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, stride, "VALID")
            else:
                x = jax.nn.relu(x) if kind == "relu" else x.reshape(len(x), -1)
        return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], axis=1).mean()

    def update(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, grads)

    # apart, because XLA is slower where it fuses the two
    gather, run = jax.jit(lambda lot: (x[lot], y[lot])), jax.jit(update, donate_argnums=0)
    params, drawn = jax.device_put(params), lots(workload)

    def step():
        nonlocal params
        params = run(params, *gather(next(drawn)))
        jax.block_until_ready(params)

    return step, parameters(network)


MAKERS = dict.fromkeys(STRATEGIES, private_step) | {
    "floor": floor_step,
    "torch": torch_step,
    "opacus-ghost": torch_step,
    "jax": jax_step,
}
