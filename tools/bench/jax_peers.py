"""JAX's compiled steps: without privacy, and with per-example gradients by vmap(grad), clipped and
noised.

As for the other peers, lots are of a fixed size (another size would compile again) and drawn
before.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .workloads import CLIP_NORM, LEARNING_RATE, NOISE_MULTIPLIER, data, same_padding, slices


def make(contender, workload, device):
    """(step, memory): a function without arguments, and None or one that tells the device's peak in
    bytes.
    """
    try:
        on = jax.devices("gpu" if device == "gpu" else "cpu")[0]
    except RuntimeError as error:
        raise SystemExit(
            f"error: device gpu: JAX finds no GPU ({str(error).splitlines()[0]})"
        ) from error
    x, y = (jax.device_put(array, on) for array in data(workload))
    params = jax.device_put(_params(workload), on)
    key = jax.device_put(jax.random.key(0), on)
    update = _private if contender == "jax-vmap" else _plain
    lots = (jax.device_put(lot, on) for lot in slices(workload))
    gather = jax.jit(
        lambda lot: (x[lot], y[lot])
    )  # on its own: XLA is slower where it fuses the two
    run = jax.jit(lambda *state: update(workload, *state), donate_argnums=(0, 1))
    run = run.lower(params, key, *gather(next(lots))).compile()

    def step():
        nonlocal params, key
        params, key = run(params, key, *gather(next(lots)))
        jax.block_until_ready(params)

    return step, (lambda: on.memory_stats()["peak_bytes_in_use"]) if device == "gpu" else None


def _params(workload):
    rng = np.random.default_rng(0)
    params = []
    for kind, *sizes in workload.layers:
        if kind in ("dense", "conv"):
            inputs, outputs, third = sizes[:3]
            shape = (inputs, outputs) if kind == "dense" else (third, third, inputs, outputs)
            W = rng.standard_normal(shape, dtype=np.float32) * np.float32(
                np.prod(shape[:-1]) ** -0.5
            )
            params.append(
                [W] if kind == "dense" and not third else [W, np.zeros(outputs, np.float32)]
            )
    return params


def _forward(workload, params, x):
    layers = iter(params)
    for kind, *sizes in workload.layers:
        if kind == "dense":
            W, *b = next(layers)
            x = x @ W + (b[0] if b else 0)
        elif kind == "conv":
            _, _, kernel, stride, padding = sizes
            W, b = next(layers)
            pads = [
                same_padding(size, kernel, stride) if padding == "same" else (0, 0)
                for size in x.shape[1:3]
            ]
            x = b + lax.conv_general_dilated(
                x, W, (stride, stride), pads, dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        elif kind == "maxpool":
            window, stride = sizes
            x = lax.reduce_window(
                x, -jnp.inf, lax.max, (1, window, window, 1), (1, stride, stride, 1), "VALID"
            )
        elif kind == "relu":
            x = jax.nn.relu(x)
        else:
            x = x.reshape(len(x), -1)
    return x


def _losses(workload, params, x, y):
    z = jax.nn.log_softmax(_forward(workload, params, x))
    return -jnp.take_along_axis(z, y[:, None], axis=1)[:, 0]


def _plain(workload, params, key, x, y):
    grads = jax.grad(lambda p: _losses(workload, p, x, y).mean())(params)
    return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, grads), key


def _private(workload, params, key, x, y):
    def loss_of_one(p, x_1, y_1):
        return _losses(workload, p, x_1[None], y_1[None])[0]

    grads = jax.vmap(jax.grad(loss_of_one), in_axes=(None, 0, 0))(params, x, y)
    sq_norms = sum(jnp.sum(g.reshape(len(g), -1) ** 2, axis=1) for g in jax.tree.leaves(grads))
    weights = jnp.minimum(1, CLIP_NORM / jnp.sqrt(sq_norms))
    key, *keys = jax.random.split(key, 1 + len(jax.tree.leaves(params)))
    keys = jax.tree.unflatten(jax.tree.structure(params), keys)

    def moved(p, g, k):
        noise = CLIP_NORM * NOISE_MULTIPLIER * jax.random.normal(k, p.shape)
        return p - LEARNING_RATE / workload.lot * (jnp.tensordot(weights, g, axes=1) + noise)

    return jax.tree.map(moved, params, grads, keys), key
