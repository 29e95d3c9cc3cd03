"""The steps of PyTorch, Opacus and JAX, as their documentation has them.

Lots are of a fixed size (for another one JAX would compile again) and were drawn before: drawing
them costs nothing here.
"""

import warnings
from functools import partial

import numpy as np

from tools.benchmark import (
    CLIP_NORM,
    LEARNING_RATE,
    NOISE_MULTIPLIER,
    contend,
    data,
    same_padding,
    weights,
)


def make(contender, workload, device):
    """(a step without arguments, its network's parameters)."""
    if contender == "jax":
        return jax_step(workload, device)
    return torch_step(workload, device, ghost=contender == "opacus-ghost")


def lots(workload):
    """Endless index arrays of exactly one lot: permutations of the data set, cut into lots."""
    rng = np.random.default_rng(1)
    while True:
        order = rng.permutation(workload.examples)
        for start in range(0, workload.examples - workload.lot + 1, workload.lot):
            yield order[start : start + workload.lot]


def torch_step(workload, device, ghost):
    """PyTorch's step without privacy; ghost: Opacus's private one with ghost clipping."""
    import torch

    on = torch.device("cuda" if device == "gpu" else "cpu")
    x, y = data(workload)
    if len(workload.input_shape) == 3:
        x = np.ascontiguousarray(x.transpose(0, 3, 1, 2))  # PyTorch's users keep channels first
    x, y = torch.from_numpy(x).to(on), torch.from_numpy(y).to(on)
    model = torch.nn.Sequential(*torch_layers(workload)).to(on)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    criterion = torch.nn.CrossEntropyLoss()
    parameters = sum(each.numel() for each in model.parameters())
    if ghost:
        model, optimizer, criterion = opacus_parts(model, optimizer, criterion, x, y, workload.lot)
    drawn = lots(workload)

    def step():
        lot = torch.from_numpy(next(drawn)).to(on)
        optimizer.zero_grad()
        criterion(model(x[lot]), y[lot]).backward()
        optimizer.step()
        if device == "gpu":
            torch.cuda.synchronize()

    return step, parameters


def torch_layers(workload):
    """The layers, in PyTorch's. Raises ValueError for padding that PyTorch does not have."""
    from torch import nn

    size = workload.input_shape[0]
    for kind, *sizes in workload.layers:
        if kind == "dense":
            inputs, outputs, bias = sizes
            yield nn.Linear(inputs, outputs, bias=bias)
        elif kind == "conv":
            inputs, outputs, kernel, stride, padding = sizes
            before, after = same_padding(size, kernel, stride) if padding == "same" else (0, 0)
            if before != after:
                raise ValueError(f"PyTorch pads both sides alike, not by {before} and {after}")
            yield nn.Conv2d(inputs, outputs, kernel, stride, before)
            size = (size + 2 * before - kernel) // stride + 1
        elif kind == "maxpool":
            window, stride = sizes
            yield nn.MaxPool2d(window, stride)
            size = (size - window) // stride + 1
        else:
            yield nn.ReLU() if kind == "relu" else nn.Flatten()


def opacus_parts(model, optimizer, criterion, x, y, lot):
    """Model, optimizer and criterion of Opacus's PrivacyEngine with ghost clipping."""
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    warnings.simplefilter("ignore")
    private = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        criterion=criterion,
        grad_sample_mode="ghost",
        data_loader=DataLoader(TensorDataset(x, y), batch_size=lot),
        noise_multiplier=NOISE_MULTIPLIER,
        max_grad_norm=CLIP_NORM,
    )
    return private[:3]


def jax_step(workload, device):
    """JAX's compiled step without privacy."""
    import jax

    on = jax.devices(device)[0]
    x, y = (jax.device_put(array, on) for array in data(workload))
    params = jax.device_put(jax_params(workload), on)
    parameters = sum(each.size for each in jax.tree.leaves(params))
    drawn = lots(workload)
    # apart, because XLA is slower where it fuses the two
    gather = jax.jit(lambda lot: (x[lot], y[lot]))

    def update(params, x, y):
        grads = jax.grad(partial(jax_loss, workload))(params, x, y)
        return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, grads)

    run = jax.jit(update, donate_argnums=0)

    def step():
        nonlocal params
        params = run(params, *gather(jax.device_put(next(drawn), on)))
        jax.block_until_ready(params)

    return step, parameters


def jax_params(workload):
    """A list [W] or [W, b] for each layer that has parameters."""
    rng = np.random.default_rng(0)
    params = []
    for shape, bias in weights(workload):
        W = rng.standard_normal(shape, dtype=np.float32)
        W /= np.sqrt(np.prod(shape[:-1]), dtype=np.float32)
        params.append([W, np.zeros(shape[-1], np.float32)] if bias else [W])
    return params


def jax_loss(workload, params, x, y):
    """The mean cross-entropy of a lot."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    layers = iter(params)
    for kind, *sizes in workload.layers:
        if kind == "dense":
            W, *b = next(layers)
            x = x @ W + (b[0] if b else 0)
        elif kind == "conv":
            _, _, kernel, stride, padding = sizes
            W, b = next(layers)
            pads = [same_padding(size, kernel, stride) for size in x.shape[1:3]]
            if padding == "valid":
                pads = "VALID"
            axes = ("NHWC", "HWIO", "NHWC")
            strides = (stride, stride)
            x = b + lax.conv_general_dilated(x, W, strides, pads, dimension_numbers=axes)
        elif kind == "maxpool":
            window, stride = sizes
            over = (1, window, window, 1)
            x = lax.reduce_window(x, -jnp.inf, lax.max, over, (1, stride, stride, 1), "VALID")
        elif kind == "relu":
            x = jax.nn.relu(x)
        else:
            x = x.reshape(len(x), -1)
    return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], axis=1).mean()


if __name__ == "__main__":
    contend(make)
