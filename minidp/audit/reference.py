"""Slow truths: each formula again, as loops over single numbers, written independently of the fast
code.

They exist to be compared with. Nothing outside `audit`, tools and tests uses them.
"""

import math

import numpy as np


def _set(apply):
    """apply(x, params, *settings) as a function of the settings that returns a reference: a
    function of (x, params).
    """
    return lambda *settings: lambda x, params: apply(x, params, *settings)


@_set
def coordinatewise(x, params, function):
    """function(x, params, index) at every index of the output, which has x's shape."""
    y = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        y[index] = function(x, params, index)
    return y


def dense(x, params):
    """y_bo = sum_i x_bi W_io + b_o."""
    W, b = params["W"], params.get("b")
    return np.array(
        [
            [
                (0 if b is None else b[o]) + sum(x[n, i] * W[i, o] for i in range(W.shape[0]))
                for o in range(W.shape[1])
            ]
            for n in range(len(x))
        ]
    ).reshape((len(x), W.shape[1]))


def project(x, params):
    """y_bk = sum_i x_bi P_ik."""
    return dense(x, {"W": params["P"]})


clamp = coordinatewise(
    lambda x, params, at: 0.5 if x[at] > 0.5 else -0.5 if x[at] < -0.5 else x[at]
)
relu = coordinatewise(lambda x, params, at: x[at] if x[at] > 0 else 0.0)
tanh = coordinatewise(lambda x, params, at: math.tanh(x[at]))
sigmoid = coordinatewise(lambda x, params, at: 1 / (1 + math.exp(-x[at])))
softmax = coordinatewise(
    lambda x, params, at: math.exp(x[at]) / sum(math.exp(v) for v in x[at[:-1]])
)
standardise = coordinatewise(
    lambda x, params, at: (x[at] - _at(params["mean"], x, at)) / _at(params["scale"], x, at)
)
identity = coordinatewise(lambda x, params, at: x[at])


def _at(array, x, index):
    """The number of a parameter that belongs to one number of x, where the parameter spans trailing
    axes or 1s.
    """
    return np.broadcast_to(array, x.shape)[index]


def flatten(x, params):
    """All axes of an example in one, the last fastest."""
    return np.array(
        [[example[index] for index in np.ndindex(example.shape)] for example in x]
    ).reshape((len(x), math.prod(x.shape[1:])))


def _on(setting, axis):
    return setting[axis] if isinstance(setting, tuple) else setting


def _windows(n, size, stride, padding):
    """The pixels that each window along one axis of n sees, as lists of (place in the window,
    pixel).
    """
    if padding == "same":
        windows = math.ceil(n / stride)
        before = max((windows - 1) * stride + size - n, 0) // 2
    else:
        before = 0 if padding == "valid" else padding
        windows = math.floor((n + 2 * before - size) / stride) + 1
    return [
        [(k, w * stride - before + k) for k in range(size) if 0 <= w * stride - before + k < n]
        for w in range(windows)
    ]


@_set
def conv2d(x, params, stride, padding):
    """y_bijo = sum_klc x_b,(window i, j sees k, l),c W_klco + b_o, seven loops."""
    W, b = params["W"], params.get("b")
    rows, columns = (
        _windows(x.shape[a + 1], W.shape[a], _on(stride, a), _on(padding, a)) for a in (0, 1)
    )
    y = np.zeros((len(x), len(rows), len(columns), W.shape[3]))
    for n, i, j, o in np.ndindex(y.shape):
        y[n, i, j, o] = (0 if b is None else b[o]) + sum(
            x[n, r, s, c] * W[k, l, c, o]
            for k, r in rows[i]
            for l, s in columns[j]
            for c in range(W.shape[2])
        )
    return y


@_set
def pool2d(x, params, function, window, stride, padding):
    """`function` of the list of numbers that each window sees of a channel."""
    rows, columns = (
        _windows(x.shape[a + 1], _on(window, a), _on(stride, a), _on(padding, a)) for a in (0, 1)
    )
    y = np.zeros((len(x), len(rows), len(columns), x.shape[3]))
    for n, i, j, c in np.ndindex(y.shape):
        y[n, i, j, c] = function([float(x[n, r, s, c]) for _, r in rows[i] for _, s in columns[j]])
    return y


@_set
def normalised(x, params, sets, epsilon=1e-5):
    """GroupNorm and LayerNorm; sets(example's shape): lists of indices normalised together."""
    y = np.zeros(x.shape)
    for example, out in zip(x, y):
        for together in sets(x.shape[1:]):
            values = [float(example[index]) for index in together]
            mean = sum(values) / len(values)
            deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values) + epsilon)
            for index, v in zip(together, values):
                out[index] = (v - mean) / deviation * _at(params["scale"], out, index) + _at(
                    params["shift"], out, index
                )
    return y


def unit_norm(x, params):
    """x_b / sqrt(sum of the squares of all numbers of x_b)."""
    return np.array([x_b / math.sqrt(sum(float(v) ** 2 for v in x_b.flat)) for x_b in x]).reshape(
        x.shape
    )


def channel_groups(groups):
    """For `normalised`: the indices of each group of neighbouring channels, all positions
    together.
    """
    return lambda shape: [
        [index for index in np.ndindex(shape) if index[-1] * groups // shape[-1] == g]
        for g in range(groups)
    ]


def last_axes(count):
    """For `normalised`: the indices of the last `count` axes, each position before them by
    itself.
    """
    return lambda shape: [
        [before + index for index in np.ndindex(shape[-count:])]
        for before in np.ndindex(shape[:-count])
    ]


def cross_entropy(z, target):
    """-log of the true class's softmax probability, one example after the other."""
    return np.array(
        [-math.log(math.exp(z_b[t]) / sum(math.exp(v) for v in z_b)) for z_b, t in zip(z, target)]
    )


def squared_error(z, target):
    """1/2 sum_k (z_k - t_k)^2, one example after the other."""
    return np.array(
        [0.5 * sum((u - v) ** 2 for u, v in zip(z_b, t_b)) for z_b, t_b in zip(z, target)]
    )


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


def integer_noisy(raw, noise_std, grid, draws):
    """raw plus discrete Gaussian noise, whole multiples of `grid`."""
    units = raw / grid
    draws.add_integers(units, noise_std / grid)
    return units * grid


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
