"""Checks of random Fourier features: against single cosines, and against the laws of their directions and products."""
import math

import numpy as np

from ...backend import to_host
from ...data.random_features import RandomFeatures
from . import measures, worst

CARD = "data.random_features.RandomFeatures"
SEEDS, FEATURES, WIDTH = 2000, 48, 1.7


@measures(CARD, "F1", method="one cosine at a time, of numbers drawn again from the seed", tolerance=1e-14)
def features_equal_single_cosines(bench):
    largest = 0.0
    for inputs, features, width, seed in ((3, 5, 2.0, 0), (7, 4, 0.6, 9), (1, 1, 1.0, 2)):
        again = np.random.default_rng(seed)
        w = (again.standard_normal((inputs, features), dtype=np.float32) / np.float32(width)).tolist()
        p = again.uniform(0, 2 * math.pi, features).tolist()
        x = bench.rng.standard_normal((4, inputs))
        angles = lambda row: (math.fsum([p[d], *(row[i] * w[i][d] for i in range(inputs))]) for d in range(features))
        expected = [[math.sqrt(2 / features) * math.cos(angle) for angle in angles(row)] for row in x.tolist()]
        largest = max(largest, worst(RandomFeatures(inputs, features, width, seed=seed)(bench.asarray(x)), expected))
    return largest


@measures(CARD, "F1", method="Kolmogorov's sqrt(n) distance of |w| from half a normal law and of p, folded, from a "
          "uniform one (beyond 3: once in 30 million)", tolerance=3)
def draws_follow_their_laws(bench):
    inputs, count = 3, 30_000
    steps = 0.25 * WIDTH * np.concatenate([np.zeros((1, inputs)), np.eye(inputs), -np.eye(inputs)])
    z = to_host(RandomFeatures(inputs, count, WIDTH)(bench.asarray(steps))) * math.sqrt(count / 2)
    cosines = (z[1 : inputs + 1] + z[inputs + 1 :]) / (2 * z[0])  # cos(p + t) + cos(p - t) = 2 cos p cos t
    sizes = np.arccos(np.clip(cosines, -1, 1)) / 0.25  # |w| in units of 1 / width
    normal = np.vectorize(lambda size: math.erf(size / math.sqrt(2)))
    return max(_distance(np.arccos(np.clip(z[0], -1, 1)) / math.pi), *(_distance(normal(row)) for row in sizes))


def _distance(levels):
    """sqrt(n) times the largest distance of the empirical law of n levels from the uniform one on [0, 1]."""
    levels, steps = np.sort(levels), np.arange(len(levels) + 1) / len(levels)
    return math.sqrt(len(levels)) * max((steps[1:] - levels).max(), (levels - steps[:-1]).max())


@measures(CARD, "F2", method="average and variance over 2000 seeds, in standard errors", tolerance=4)
def inner_products_are_those_of_the_kernel_and_vary_as_stated(bench):
    x = np.array([[0.0, 0.0, 0.0], [0.5, -0.3, 0.2], [-1.0, 1.2, 0.4], [2.0, 2.5, -3.0]])
    b, c = np.triu_indices(len(x))
    drawn = (RandomFeatures(3, FEATURES, WIDTH, seed=seed)(bench.asarray(x)) for seed in range(SEEDS))
    found = np.stack([to_host(z @ z.T)[b, c] for z in drawn])
    kernel = np.exp(-((x[b] - x[c]) ** 2).sum(axis=1) / (2 * WIDTH**2))
    # var cos d = (1 + E cos 2d) / 2 - kernel^2 with E cos 2d = kernel^4; var cos s = 1/2: at most 1 / D together
    variance = ((1 - kernel**2) ** 2 + 1) / 2 / FEATURES
    squares = (found - kernel) ** 2
    mean = np.abs(found.mean(axis=0) - kernel) / np.sqrt(variance / SEEDS)
    return max(mean.max(), (np.abs(squares.mean(axis=0) - variance) / (squares.std(axis=0) / math.sqrt(SEEDS))).max())
