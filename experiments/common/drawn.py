"""Digits, tables and regressions drawn at random, to choose defaults on: no measured data is among them."""
import math
from functools import lru_cache

import numpy as np

from minidp.data.strokes import draw
from minidp.mechanism import mean_sanitizer, noisy_mean
from minidp.streams import Streams

TESTED = 4000  # rows
DIGITS = [("digits", size, blend) for size in (400, 1437) for blend in (0, 0.4)] + [("digits", 5000, 0.2)]
TABLES = [(family, *shape) for family in ("blobs", "lognormal", "sparse", "unbalanced")
          for shape in ((300, 8, 5), (455, 30, 2), (2000, 64, 2))]
LARGE = [("digits", 20_000, 0.2), ("lognormal", 20_000, 30, 2)]  # with two budgets, and fewer settings
REGRESSIONS = [("regression", size, which) for size in (2000, 20_000) for which in (0, 1)]


@lru_cache(None)
def drawn_digits(size):
    """(N, 64) grey levels 0..16 of drawn digits at 8 x 8 pixels, (N,) classes, (10, 64) the classes' means."""
    x, y = (np.concatenate(part)[:size] for part in zip(*(draw(0, chunk) for chunk in range(-(-size // 250)))))
    x = np.pad(x.astype("f4"), ((0, 0), (2, 2), (2, 2))).reshape(size, 8, 4, 8, 4).mean((2, 4)).reshape(size, 64)
    return np.floor(x / 255 * 16 + 0.5), y.astype(int), np.stack([x[y == k].mean(0) / 255 * 16 for k in range(10)])


def drawn(problem, seed):
    """x (N, D) with rows of norm at most 1, y (N,), the same to test on, number of classes (1: a regression)."""
    family, size, *shape = problem
    rng = np.random.default_rng([seed, *map(ord, family), size])
    n = size + TESTED
    if family == "digits":
        x, y, means = drawn_digits(26_000)
        chosen = rng.permutation(len(x))[:n]
        x, y, classes = unit((1 - shape[0]) * x[chosen] + shape[0] * means[y[chosen]]), y[chosen], 10
    elif family == "regression":
        x, classes = rng.uniform(-1, 1, (n, 8)), 1
        y = (x @ (1, -0.8, 0.6, 0.4, -0.3, 0.2, 0.1, 0) + np.sin(3 * x[:, 0]) * x[:, 1] / 2) / 3.5 if shape[0] == 0 else 0.3 + (
            np.tanh(x[:, 0] + x[:, 1]) + x[:, 2] ** 2 / 2 + 0.3 * x[:, 3] * x[:, 4] - 0.4 * x[:, 5]) / 4
        x, y = x / math.sqrt(8), np.clip(y + rng.normal(size=n) / 30, -1, 1)
    else:
        x, y, classes = *table(rng, n, family, *shape), shape[1]
    x = x.astype("f4")
    return x[:size], y[:size], x[size:], y[size:], classes


def table(rng, n, family, d, classes):
    """Features in public bounds over sqrt(D) (unit rows where unbalanced), and classes."""
    share = np.array([0.62, 0.38]) if classes == 2 else np.ones(classes) / classes
    if family == "unbalanced":
        share = np.array([0.8] + [0.2 / (classes - 1)] * (classes - 1))
    y = rng.choice(classes, n, p=share)
    mix = rng.normal(size=(max(2, d // 4), d)) / math.sqrt(max(2, d // 4))
    common = 0.9 * rng.normal(size=(n, len(mix))) @ mix + 0.45 * rng.normal(size=(n, d))
    if family == "lognormal":  # positive, of very different sizes, correlated; three numbers behind them tell the class
        hidden = 1.4 * rng.normal(size=(classes, 3))[y] + rng.normal(size=(n, 3))
        x = np.exp(rng.uniform(-6, 6, d) + rng.uniform(0.15, 0.6, d) * (hidden @ rng.normal(size=(3, d)) / 1.7 + common / 2))
        return (2 * x / x.max(0) - 1) / math.sqrt(d), y
    means = rng.normal(size=(classes, d))
    if family == "sparse":  # four features of all say anything
        means[:, 4:] = 0
        x = 1.3 * means[y] + rng.normal(size=(n, d))
    else:
        x = 2 * means[y] / np.linalg.norm(means, axis=1)[y, None] + common + rng.normal(size=d)
    return (unit(x) if family == "unbalanced" else x / (1.1 * abs(x).max(0)) / math.sqrt(d)), y


def unit(x):
    """Rows of norm 1."""
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)


def prepared(data, mu, rows, seed):
    """The data about a noisy mean that takes the share `rows` of mu^2, in unit rows again, and what is left of mu."""
    x, y, tested, wanted, classes = data
    if classes == 1 or rows == "given":
        return data, mu
    sanitizer = mean_sanitizer(1 / (mu * math.sqrt(rows)))
    mean = noisy_mean(x, sanitizer, len(x), Streams(seed).noise("mean"))
    return (unit(x - mean).astype("f4"), y, unit(tested - mean).astype("f4"), wanted, classes), mu * math.sqrt(1 - rows)
