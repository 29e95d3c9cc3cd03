"""Slow truths: each formula again, as loops over single numbers, written independently of the fast code.

They exist to be compared with. Nothing outside `audit`, tools and tests uses them.
"""
import math

import numpy as np


def dense(x, params):
    """y_bo = sum_i x_bi W_io + b_o."""
    W, b = params["W"], params.get("b")
    y = np.zeros((len(x), W.shape[1]))
    for n in range(len(x)):
        for o in range(W.shape[1]):
            y[n, o] = (0 if b is None else b[o]) + sum(x[n, i] * W[i, o] for i in range(W.shape[0]))
    return y


def project(x, params):
    """y_bk = sum_i x_bi P_ik."""
    return dense(x, {"W": params["P"]})


def coordinatewise(function):
    """A reference that applies a function of one number to every coordinate."""

    def apply(x, params):
        y = np.zeros(x.shape)
        for index in np.ndindex(x.shape):
            y[index] = function(float(x[index]))
        return y

    return apply


relu = coordinatewise(lambda v: v if v > 0 else 0.0)
tanh = coordinatewise(math.tanh)
sigmoid = coordinatewise(lambda v: 1 / (1 + math.exp(-v)))


def softmax(x, params):
    """y_bk = exp(x_bk) / sum_j exp(x_bj), over the last axis."""
    y = np.zeros(x.shape)
    for index in np.ndindex(x.shape[:-1]):
        total = sum(math.exp(v) for v in x[index])
        for k, v in enumerate(x[index]):
            y[index + (k,)] = math.exp(v) / total
    return y


def flatten(x, params):
    """All axes of an example in one, the last fastest."""
    return np.array([[example[index] for index in np.ndindex(example.shape)] for example in x]).reshape(
        (len(x), math.prod(x.shape[1:])))


def standardise(x, params):
    """(x - mean) / scale."""
    y = np.zeros(x.shape)
    mean, scale = (np.broadcast_to(params[name], x.shape[1:]) for name in ("mean", "scale"))
    for b, *index in np.ndindex(x.shape):
        at = tuple(index)
        y[(b, *at)] = (x[(b, *at)] - mean[at]) / scale[at]
    return y


def cross_entropy(z, target):
    """-log of the true class's softmax probability, one example after the other."""
    return np.array([-math.log(math.exp(z_b[t]) / sum(math.exp(v) for v in z_b)) for z_b, t in zip(z, target)])


def squared_error(z, target):
    """1/2 sum_k (z_k - t_k)^2, one example after the other."""
    return np.array([0.5 * sum((u - v) ** 2 for u, v in zip(z_b, t_b)) for z_b, t_b in zip(z, target)])


def single_example_grads(network, loss, x, y):
    """{key: (B, *shape)}: gradients of a network, one example and one forward and backward pass at a time."""
    rows = []
    for b in range(len(x)):
        z, caches = network.forward(x[b : b + 1])
        _, cache = loss.forward(z, y[b : b + 1])
        grads = network.backward(loss.backward(cache), caches)
        rows.append({key: grad.materialise()[0] for key, grad in grads.items()})
    return {key: np.stack([row[key] for row in rows]) for key in rows[0]}


def clipped_sum(grads, groups):
    """Algorithm 1, "Clip gradient" and the sum, example by example; grads {key: (B, *shape)}."""
    total = {key: np.zeros(g.shape[1:]) for key, g in grads.items()}
    for group in groups:
        for b in range(len(grads[group.keys[0]])):
            norm = math.sqrt(sum(float((grads[key][b] ** 2).sum()) for key in group.keys))
            for key in group.keys:
                total[key] += grads[key][b] / max(1.0, norm / group.clip_norm)
    return total
