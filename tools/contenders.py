"""What `tools.benchmark` times: workloads, and the step of each contender on them.

A maker returns a step without arguments, which returns when its device is done. The steps of
PyTorch, Opacus and JAX are as their documentation has them.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

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
from minidp.train.batching import MAX_BATCH, cache_examples
from minidp.train.device_trial import try_twins
from minidp.train.flat import flattened

STRATEGIES = ("auto", "factored", "explicit")
SUM_DTYPE = {"cpu": np.float32, "gpu": np.float64}  # which each device's kernel of noise takes
CLIP_NORM, NOISE_MULTIPLIER, LEARNING_RATE, CLASSES = 4.0, 4.0, 0.05, 10


@dataclass(frozen=True)
class Workload:
    """A network, its lot and the size of its data set: what every library builds its step from.

    layers       function of `rng`, a NumPy generator, which returns the layers
    input_shape  of one example; images are (height, width, channels)
    flat         one clip group over all parameters; otherwise one per layer
    """

    name: str
    layers: Callable
    input_shape: tuple
    lot: int
    examples: int
    flat: bool = False

    def small(self):
        """The same network with a few examples, for trials of what uses it."""
        return replace(self, lot=16, examples=64)

    def network(self, rng=None):
        """The network in minidp's layers, which the other libraries translate."""
        return nn.Sequential(self.layers(rng=rng), self.input_shape)


def dense_relu(*widths, rng, bias=True):
    """Dense layers of these widths with ReLU between them."""
    layers = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Dense(inputs, outputs, rng=rng, bias=bias), nn.ReLU()]
    return layers[:-1]


def cifar_network(rng):
    """Abadi et al., Section 5.3: convolutions 5x5x64 with ReLU and 2x2 max pooling, dense 384, 384,
    10.
    """
    return [
        *(nn.Conv2D(3, 64, 5, rng=rng, padding="same"), nn.ReLU(), nn.MaxPool2D(2, 2)),
        *(nn.Conv2D(64, 64, 5, rng=rng, padding="same"), nn.ReLU(), nn.MaxPool2D(2, 2)),
        nn.Flatten(),
        *dense_relu(6 * 6 * 64, 384, 384, 10, rng=rng),
    ]


def mnist_cnn(rng):
    """The tutorial network for private MNIST: convolutions 8x8x16 and 4x4x32, stride 2, dense 32,
    10.
    """
    return [
        *(nn.Conv2D(1, 16, 8, rng=rng, stride=2, padding="same"), nn.ReLU(), nn.MaxPool2D(2, 1)),
        *(nn.Conv2D(16, 32, 4, rng=rng, stride=2, padding="valid"), nn.ReLU(), nn.MaxPool2D(2, 1)),
        nn.Flatten(),
        *dense_relu(4 * 4 * 32, 32, 10, rng=rng),
    ]


WORKLOADS = {
    "W1": Workload("W1", partial(dense_relu, 60, 1000, 10, bias=False), (60,), 600, 60_000),
    "W2": Workload("W2", partial(dense_relu, 784, 1000, 10, bias=False), (784,), 600, 60_000),
    "W3": Workload(
        "W3", partial(dense_relu, 2304, 384, 384, 10, bias=False), (2304,), 2000, 50_000
    ),
    "W4": Workload("W4", cifar_network, (24, 24, 3), 128, 10_000, flat=True),
    "W5": Workload("W5", mnist_cnn, (28, 28, 1), 256, 60_000, flat=True),
}


def data(workload):
    """Draw x (examples, *input_shape) float32 and y (examples,) int64."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((workload.examples, *workload.input_shape), dtype=np.float32)
    return x, rng.integers(0, CLASSES, workload.examples)


def lots(workload):
    """Endless index arrays of exactly one lot: a permutation of the data set, cut into lots."""
    order = np.random.default_rng(1).permutation(workload.examples)
    whole = workload.examples // workload.lot * workload.lot
    return itertools.cycle(order[:whole].reshape(-1, workload.lot))


def trainer_of(workload, strategy, backend, seed=None):
    """(trainer, examples, streams) of private steps; strategy: the form of their gradients."""
    streams = Streams(seed)
    examples = LabelledExamples(*map(backend.asarray, data(workload)))
    network = workload.network(streams.init).to(backend)
    layout = flat_group if workload.flat else per_layer_groups
    sanitizer = Sanitizer(layout(network.params, CLIP_NORM, NOISE_MULTIPLIER), strategy)
    sampler = PoissonSampler(workload.lot / workload.examples)
    plan = Plan(sampler, sanitizer, 10**9, workload.lot)
    return Trainer(network, nn.SoftmaxCrossEntropy(), SGD(LEARNING_RATE), plan), examples, streams


def private_step(workload, device, strategy):
    """minidp's private step."""
    backend = Backend.pick(device)
    try_twins(backend.xp)
    trainer, examples, streams = trainer_of(workload, strategy, backend)
    numbers = itertools.count()
    run = flattened(trainer)  # as while it trains, for as long as the process lives
    run.__enter__()

    def step(run=run):
        number = next(numbers)
        (lot,) = trainer.plan.sampler.lots(len(examples), 1, streams.sampling, number)
        trainer.step(examples, lot, number, streams)
        synchronise(backend.xp)

    return step


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


def floor_step(workload, device):
    """The products of one lot, in the trainer's batches, and one draw of the noise."""
    rng, streams, backend = np.random.default_rng(0), Streams(), Backend.pick(device)
    try_twins(backend.xp)
    xp, network = backend.xp, workload.network().to(backend)
    rows = min(MAX_BATCH, cache_examples(network))
    batches = [min(rows, workload.lot - start) for start in range(0, workload.lot, rows)]
    layers = []
    for positions, inputs, outputs in products(network):
        n = batches[0] * positions
        shapes = ((n, inputs), (n, outputs), (inputs, outputs))
        drawn = [xp.asarray(rng.standard_normal(shape, dtype=np.float32)) for shape in shapes]
        layers.append((positions, *drawn, *map(xp.empty_like, drawn)))
    sums = [xp.zeros(array.shape, SUM_DTYPE[device]) for array in network.params.values()]
    releases = itertools.count()

    def step():
        for batch in batches:
            for k, (positions, a, d, W, da, y, dW) in enumerate(layers):
                n = batch * positions
                xp.matmul(a[:n], W, out=y[:n])
                xp.matmul(a[:n].T, d[:n], out=dW)
                if k:
                    xp.matmul(d[:n], W.T, out=da[:n])
        draws = streams.noise(next(releases))
        for raw in sums:
            add_gaussian(raw, 1.0, draws)
        synchronise(xp)

    return step


def torch_network(workload):
    """The network in PyTorch's layers."""
    from torch import nn

    layers = []
    for layer in workload.network().layers:
        if layer.kind == "dense":
            layers.append(nn.Linear(*layer.params["W"].shape, bias="b" in layer.params))
        elif layer.kind == "conv":
            kernel, _, inputs, outputs = layer.params["W"].shape
            stride, _ = layer.window.stride
            # "same" pads both sides alike where the stride divides the image's side
            zeros = (kernel - stride) // 2 if layer.window.padding == "same" else 0
            layers.append(nn.Conv2d(inputs, outputs, kernel, stride, zeros))
        elif layer.kind == "maxpool":
            layers.append(nn.MaxPool2d(layer.window.size, layer.window.stride))
        else:
            layers.append(nn.ReLU() if layer.kind == "relu" else nn.Flatten())
    return nn.Sequential(*layers)


def torch_step(workload, device, ghost=False):
    """PyTorch's step without privacy, or Opacus's private one with ghost clipping."""
    import torch

    x, y = data(workload)
    if len(workload.input_shape) == 3:
        x = np.ascontiguousarray(x.transpose(0, 3, 1, 2))  # PyTorch's users keep channels first
    place = torch.device("cuda" if device == "gpu" else "cpu")
    x, y = torch.from_numpy(x).to(place), torch.from_numpy(y).to(place)
    model = torch_network(workload).to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    criterion = torch.nn.CrossEntropyLoss()
    if ghost:
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
        lot = torch.from_numpy(next(drawn)).to(place)
        optimizer.zero_grad()
        criterion(model(x[lot]), y[lot]).backward()
        optimizer.step()
        if device == "gpu":
            torch.cuda.synchronize()

    return step


def jax_step(workload, device):
    """JAX's compiled step without privacy."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_platforms", "cuda" if device == "gpu" else "cpu")

    x, y = map(jnp.asarray, data(workload))
    layers = workload.network(np.random.default_rng(0)).layers
    params = jax.device_put([dict(layer.params) for layer in layers])

    def loss(params, x, y):
        for layer, p in zip(layers, params):
            if layer.kind == "dense":
                x = x @ p["W"] + p.get("b", 0)
            elif layer.kind == "conv":
                axes = ("NHWC", "HWIO", "NHWC")
                stride, padding = layer.window.stride, layer.window.padding.upper()
                x = p["b"] + jax.lax.conv_general_dilated(
                    x, p["W"], stride, padding, dimension_numbers=axes
                )
            elif layer.kind == "maxpool":
                sizes = (layer.window.size, layer.window.stride)
                window, stride = ((1, *size, 1) for size in sizes)
                x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, stride, "VALID")
            else:
                x = jax.nn.relu(x) if layer.kind == "relu" else x.reshape(len(x), -1)
        return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], axis=1).mean()

    def update(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, grads)

    # apart, because XLA is slower where it fuses the two
    gather, run = jax.jit(lambda lot: (x[lot], y[lot])), jax.jit(update, donate_argnums=0)
    drawn = lots(workload)

    def step():
        nonlocal params
        params = run(params, *gather(next(drawn)))
        jax.block_until_ready(params)

    return step


MAKERS = {
    **{strategy: partial(private_step, strategy=strategy) for strategy in STRATEGIES},
    "floor": floor_step,
    "torch": torch_step,
    "opacus-ghost": partial(torch_step, ghost=True),
    "jax": jax_step,
}
