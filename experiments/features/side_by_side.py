"""Layers of many settings trained side by side, for the search behind a rule."""

from common.linear import NORM, settings

import numpy as np
from scipy.special import softmax

from minidp.fitting.rule import MOMENTUM
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, mean_sanitizer, noisy_mean
from minidp.streams import Streams


def descend(x, y, tested, wanted, first, epsilon, delta, rule, travels, clips, decays, seed):
    """Accuracies (decays, travels, clips) of layers trained side by side, and the noise multiplier.

    All take the same lots and noise; otherwise each is trained as `train_linear` does it.

    x, y             features (N, D) and labels to train on; tested, wanted: the same to test on
    first            weights and biases to begin with, or None
    rule             for `settings`, but for "travel" and "clip"
    travels, clips   what is tried for these; decays: of the average of the weights
    """
    size, steps, rng = len(x), rule["steps"], np.random.default_rng(seed)
    grid = [
        settings(epsilon, delta, size, rule | {"travel": travel, "clip": clip})
        for travel in travels
        for clip in clips
    ]
    expected = grid[0]["lot_size"]
    mean = mean_sanitizer(grid[0]["mean_noise_multiplier"], NORM)
    sanitizer = Sanitizer(flat_group([("w", "W")], 1.0, 1.0))
    plan = Plan(PoissonSampler(expected / size), sanitizer, steps, expected)
    plan = plan.calibrated("loss_distribution", epsilon, delta, [mean.event(plan.relation)])
    sigma = plan.sanitizer.groups[0].noise_multiplier
    centre = noisy_mean(x, mean, size, Streams(seed).noise("mean")).astype("f4")
    ones = (0, 0), (0, 1)  # for the biases
    x, tested = (np.pad(each - centre, ones, constant_values=1) for each in (x, tested))
    bounds = np.array([one["clip_norm"] for one in grid], "f4")[:, None]
    rates = np.array([one["learning_rate"] for one in grid], "f4")[:, None]
    w = np.zeros((x.shape[1], len(grid), int(y.max()) + 1), "f4")
    if first is not None:
        weights, biases = first
        w[:-1] = weights[:, None]
        w[-1] = biases + centre @ weights
    v = np.zeros_like(w)
    averages = [np.zeros_like(w) for _ in decays]
    lengths = np.linalg.norm(x, axis=1)

    def logits(rows, w):
        return (rows @ w.reshape(len(w), -1)).reshape(len(rows), *w.shape[1:])

    for step in range(steps):
        lot = np.flatnonzero(rng.random(size) < expected / size)
        z = softmax(logits(x[lot], w), axis=2)
        z[np.arange(len(lot)), :, y[lot]] -= 1
        norms = np.linalg.norm(z, axis=2) * lengths[lot, None]
        z *= bounds / np.maximum(norms, bounds[:, 0])[:, :, None]
        g = (x[lot].T @ z.reshape(len(lot), w[0].size)).reshape(w.shape)
        noise = rng.standard_normal((len(w), 1, w.shape[2]), "f4")
        g += noise * (np.float32(sigma) * bounds)
        v = np.float32(MOMENTUM) * v + g / np.float32(expected)
        w -= rates * v
        for decay, average in zip(decays, averages):
            average += np.float32(1 - min(decay, step / (step + 9))) * (w - average)
    found = [(logits(tested, each).argmax(2) == wanted[:, None]).mean(0) for each in averages]
    return np.reshape(found, (len(decays), len(travels), len(clips))), sigma
