"""Slow truths of what takes several equations: a network example by example, a noisy and a clipped
sum. Nothing outside `audit`, tools and tests uses them.
"""

import math

import numpy as np


def single_example_grads(network, loss, x, y):
    """{key: (B, *shape)}: gradients of a network, one example and one forward and backward pass at
    a time.
    """
    rows = []
    for b in range(len(x)):
        z, caches = network.forward(x[b : b + 1])
        rows.append(network.param_grads(loss(z, y[b : b + 1])[1], caches))
    return {key: np.concatenate([row[key].materialise() for row in rows]) for key in rows[0]}


def noisy(raw, noise_std, draws):
    """raw + N(0, noise_std^2), on the grid of 2^-20 of the power of two below noise_std; raw itself
    without noise.
    """
    if not noise_std:
        return raw
    grid = 2.0 ** (math.floor(math.log2(noise_std)) - 20)
    return np.round((raw + noise_std * draws.standard_normal(raw.shape)) / grid) * grid


def clipped_sum(grads, groups):
    """Algorithm 1, "Clip gradient" and the sum, example by example, with the margin for roundings;
    grads {key: (B, *shape)}.
    """
    total = {key: np.zeros(g.shape[1:]) for key, g in grads.items()}
    for group in groups:
        for b in range(len(grads[group.keys[0]])):
            norm = math.sqrt(sum(float((grads[key][b] ** 2).sum()) for key in group.keys))
            for key in group.keys:
                total[key] += grads[key][b] / max(1.0, norm * (1 + 2.0**-20) / group.clip_norm)
    return total
