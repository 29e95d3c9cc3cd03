#!/usr/bin/env python3
"""Which settings mnist_learned.py should take: tried on drawn digits only, no image of MNIST is
opened.

    python experiments/mnist_learned_settings.py --json experiments/results/mnist_learned_settings.json     # ten minutes

Learned features fit the generator that they learned from too well. So the networks that settings
are tried with never saw one way of writing each digit, and the digits that they are tried on have
all of them, half with a broader pen than any that was drawn. The rule is that of mnist_best.py;
travel, and what is new, change in one entry at a time, and an entry stays changed if that gains
GAIN on the mean over budgets and strays. A layer by least squares from noisy moments is tried
beside.
"""

import math
import sys
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from common.config import option, parse
from common.linear import NORM, begin, settings
from features.learned import Learned
from mnist_best import FORM as SCATTERED, cosines
from mnist_best_settings import DELTA, SEED, Search
from mnist_learned import FORM, RULE, Config as Run, coefficients, first_weights, joined
import numpy as np
from scipy.ndimage import maximum_filter
import strokes_features

from minidp import nn
from minidp.backend import Backend
from minidp.cli import user_errors
from minidp.data import load_strokes
from minidp.defaults import mu_of
from minidp.mechanism import (
    Plan,
    PoissonSampler,
    PrivatePCA,
    Sanitizer,
    flat_group,
    mean_sanitizer,
    noisy_mean,
)
from minidp.privacy import Filter
from minidp.privacy.catalogue import make
from minidp.streams import Streams
from minidp.train import Trainer

GAIN = 0.001
SMALL, LARGE, STRAYS = (20_000, 10_000), (60_000, 10_000), (1.1, 1.5)
LAST, EPSILONS, LEAST = (
    (0.05, 0.5, 2.93),
    (0.15, 1.5, 8.0),
    0.03,
)  # at LARGE and SMALL: a third of the digits, about the same noise
FIRST = {"inside": 0.7, "beside": 0.4, "prior": 1.0, "cosines": 1024, "travel": 4.0, "networks": 2}
ALONE = {
    "networks": (1, 4),
    "inside": (0.0, 0.35, 1.4),
    "beside": (0.2, 0.7, 1.0),
    "travel": (2.0, 8.0),
    "prior": (0.0, 0.5, 2.0),
}
BIAS, LABEL, RIDGES = (
    0.3,
    1.0,
    (0.3, 1.0, 3.0),
)  # of least squares: lengths beside features of length 1; see `least_squares`


def digits(sizes, stray):
    """Drawn images and labels to train and to test on; half of the images in a pen one pixel
    broader.
    """
    drawn = load_strokes(sizes, progress=False, stray=stray)
    broad = lambda images: np.where(
        np.arange(len(images))[:, None, None] % 2, maximum_filter(images, (1, 2, 2)), images
    )
    return broad(drawn.x_train), drawn.y_train, broad(drawn.x_test), drawn.y_test


def accuracy(x, y, tested, wanted, epsilon, travel, first=None):
    """Of a layer that is trained as mnist_learned.py does it, on features; first: its first weights
    and biases.
    """
    size, streams = len(x), Streams(SEED)
    chosen = settings(epsilon, DELTA, size, {**RULE, "travel": travel})
    mean, lot = mean_sanitizer(chosen["mean_noise_multiplier"], NORM), chosen["lot_size"]
    dense = nn.Dense(x.shape[1], 10, rng=streams.init, init=nn.init.constant(0.0))
    accountant, network = make("loss_distribution"), nn.Sequential([dense], x.shape[1:])
    plan = Plan(
        PoissonSampler(lot / size),
        Sanitizer(flat_group(network.params, chosen["clip_norm"], 1.0)),
        RULE["steps"],
        lot,
    )
    before = [mean.event(plan.relation)]
    plan = plan.calibrated(accountant, epsilon, DELTA, before)
    centre = noisy_mean(x, mean, size, streams.noise("mean")).astype("f4")
    begin(dense, first, centre)
    optimizer, budget = (
        Run(average=RULE["decay"]).make_optimizer(chosen["learning_rate"]),
        Filter(accountant, epsilon, DELTA),
    )
    budget.charge(*before)
    Trainer(network, nn.SoftmaxCrossEntropy(), optimizer, plan, budget).run(x - centre, y, streams)
    with optimizer.averaged_weights(network.params):
        return float((network.predict(tested - centre).argmax(axis=1) == wanted).mean())


def least_squares(x, y, noise_multiplier, ridge):
    r"""(D + 1, 10): weights of unit rows and a bias by least squares, from one noisy matrix of
    second moments.

    That is PrivatePCA's release, which is all it costs. Of rows z = (u, LABEL onehot(y)) of equal
    norm, u a row (x / |x|, BIAS), it holds A ~ sum u u^T and B ~ sum u onehot(y)^T; the weights are
    (A+ + l)^-1 B, A+ the part of A above 0, l = ridge noise_multiplier sqrt(2 D + 2): `ridge` norms
    of the noise on A.
    """
    pca, inputs = PrivatePCA(1, noise_multiplier), x.shape[1] + 1
    raw = pca.raw_second_moments(
        np.concatenate([unit_rows(x), LABEL * np.eye(10, dtype="f4")[y]], axis=1)
    )
    moments = pca.noisy_second_moments(raw, Streams(SEED).noise("moments"))
    values, vectors = np.linalg.eigh(moments[:inputs, :inputs])
    values = np.maximum(values, 0) + ridge * noise_multiplier * math.sqrt(2 * inputs)
    return vectors / values @ (vectors.T @ moments[:inputs, inputs:])


def unit_rows(x):
    """(N, D + 1): rows at length 1, and BIAS."""
    return np.pad(
        x / np.linalg.norm(x, axis=1, keepdims=True), ((0, 0), (0, 1)), constant_values=BIAS
    )


class Digits:
    """Drawn digits to try settings on: their coefficients, computed once."""

    def __init__(self, sizes, stray, networks):
        x, self.y, tested, self.wanted = digits(sizes, stray)
        self.networks, self.about = (
            networks,
            {"training images": len(x), "tested": len(tested), "stray": stray},
        )
        take = lambda images: [
            np.concatenate(parts)
            for parts in zip(*coefficients(images, Learned(networks), Backend.numpy()))
        ]
        self.x, self.tested = take(x), take(tested)

    def features(self, take):
        """What `take` makes of both coefficients, with float16's precision as mnist_learned.py
        keeps them.
        """
        parts = lambda x, h: np.concatenate(
            [take(x[i : i + 1000], h[i : i + 1000]).astype("f2") for i in range(0, len(x), 1000)]
        )
        return parts(*self.x).astype("f4"), self.y, parts(*self.tested).astype("f4"), self.wanted

    @lru_cache(1)
    def joined(self, inside, beside, number, networks):
        """Features of a form, of the first `networks` networks."""
        hidden = networks * strokes_features.HIDDEN
        take = joined(
            self.x[0].shape[1], hidden, {"inside": inside, "beside": beside, "cosines": number}
        )
        return self.features(lambda x, h: take(x, h[:, :hidden]))


@dataclass(frozen=True)
class Config:
    """The flags."""

    json: str | None = option(
        None, "file to write: every setting tried with its accuracies, and the choice"
    )
    smoke: bool = option(False, "small sets and networks, seconds")


def search(args):
    """Try everything, print it, write the JSON; returns the choice."""
    search = Search("mnist_learned_settings.py", args)
    sizes, strays, epsilons, first, learn = (
        (SMALL, LARGE),
        STRAYS,
        EPSILONS,
        FIRST,
        strokes_features.Config(),
    )
    if args.smoke:
        sizes, strays, epsilons = ((300, 100), (400, 100)), STRAYS[:1], EPSILONS[-1:]
        first, learn = {**FIRST, "cosines": 64}, replace(learn, epochs=1, images=1000)
    networks = [
        strokes_features.train(replace(learn, seed=seed), held_out=1)
        for seed in range(1, max(ALONE["networks"]) + 1)
    ]

    def note(drawn, what, epsilon, found, **more):
        search.tried.append(
            {"what": what, **drawn.about, "epsilon": epsilon, **more, "accuracy": round(found, 4)}
        )
        print(f"{time.process_time():5.0f} s  {search.tried[-1]}", file=sys.stderr)
        return found

    def run(drawn, setting, epsilon):
        at = drawn.joined(*(setting[name] for name in ("inside", "beside", "cosines", "networks")))
        begun = first_weights(Learned(networks[: setting["networks"]]), setting)
        return note(
            drawn, "joined", epsilon, accuracy(*at, epsilon, setting["travel"], begun), **setting
        )

    sets = [Digits(sizes[0], stray, networks) for stray in strays]
    score = lambda setting: float(
        np.mean([run(drawn, setting, epsilon) for drawn in sets for epsilon in epsilons])
    )
    best = search.improved(first, ALONE, score, GAIN)
    hidden = best["networks"] * strokes_features.HIDDEN
    for drawn, epsilon, ridge in product(sets, (LEAST, *epsilons), RIDGES):
        weights = least_squares(drawn.x[1][:, :hidden], drawn.y, 1 / mu_of(epsilon, DELTA), ridge)
        right = (unit_rows(drawn.tested[1][:, :hidden]) @ weights).argmax(axis=1) == drawn.wanted
        note(drawn, "learned alone, least squares", epsilon, float(right.mean()), ridge=ridge)
    for drawn in sets:
        run(drawn, best, LEAST)
    sets.clear()
    drawn = Digits(sizes[1], STRAYS[0], networks)
    alone = drawn.features(lambda x, h, take=cosines(drawn.x[0].shape[1], SCATTERED): take(x))
    for epsilon in LAST:
        run(drawn, best, epsilon)
        note(drawn, "scattering alone", epsilon, accuracy(*alone, epsilon, first["travel"]))
    choice = {
        "form": {name: best[name] for name in FORM},
        "rule": {**RULE, "travel": best["travel"]},
    }
    return search.chosen(choice, "strokes")


if __name__ == "__main__":
    with user_errors():
        search(parse(Config, prog="mnist_learned_settings.py", description=__doc__.splitlines()[0]))
