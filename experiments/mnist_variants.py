#!/usr/bin/env python3
"""Variants of the main job that Section 5.2 of Abadi et al. 2016 mentions: two hidden layers,
falling noise, norms.

# two hidden layers after PCA
python experiments/mnist_variants.py --first-hidden 500 --hidden 500
# 60 trained units in PCA's place
python experiments/mnist_variants.py --projection none --first-hidden 60
# sigma falls in stages
python experiments/mnist_variants.py --noise-multiplier 6 --final-noise-multiplier 3
# medians of the unclipped norms
python experiments/mnist_variants.py --watch-norms --epochs 50
"""

import sys
from dataclasses import dataclass, replace
from functools import partial

import common

common.start(__name__)

from common.config import POSITIVE, option
from common.job import command_line, experiment, load_digits
from common.watching import MedianNorms

import mnist_pca

from minidp import nn
from minidp.errors import ParameterError
from minidp.mechanism import Stages
from minidp.util.validate import count, positive_finite

NAME = "mnist_variants"


@dataclass(frozen=True)
class Config(mnist_pca.Config):
    """The main job's flags, and those of the variants."""

    first_hidden: int | None = option(
        None, "number of units of one more hidden layer, before the other", POSITIVE
    )
    final_noise_multiplier: float | None = option(
        None,
        "sigma of the last stage; it falls in equal steps from sigma",
        positive_finite,
        noise=True,
    )
    stages: int = option(
        4, "number of stages; the last is as long as the target allows", partial(count, 2)
    )
    stage_lots: int = option(4000, "lots of each stage but the last", POSITIVE)
    watch_norms: bool = option(
        False, "record the median of each layer's norms before clipping (not private)"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.final_noise_multiplier is not None and self.watch_norms:
            raise ParameterError(
                "--watch-norms goes with constant noise; leave out --final-noise-multiplier"
            )


def make_network(config, width, classes, rng):
    """The main job's network, with one more trained layer at its front if asked for."""
    if config.first_hidden is None:
        return mnist_pca.make_network(config, width, classes, rng)
    activation = {"relu": nn.ReLU, "tanh": nn.Tanh}[config.activation]
    dense = partial(nn.Dense, rng=rng, bias=False, dtype=config.dtype)
    layers = [
        dense(width, config.first_hidden),
        activation(),
        dense(config.first_hidden, config.hidden),
        activation(),
        dense(config.hidden, classes),
    ]
    return nn.Sequential(layers, (width,))


def make_sanitizer(config, network, watcher=None):
    """The main job's clipping; its noise too, or noise that falls in stages."""
    sanitizer = replace(mnist_pca.make_sanitizer(config, network), watcher=watcher)
    if config.final_noise_multiplier is None:
        return sanitizer
    sigma = Stages(config.sigma, config.final_noise_multiplier, config.stages, config.stage_lots)
    groups = [replace(group, noise_multiplier=sigma) for group in sanitizer.groups]
    return replace(sanitizer, groups=groups)


def train(ready):
    """Train a variant; returns how it stopped."""
    watcher = MedianNorms() if ready.config.watch_norms else None
    about = watcher and {"median_norms_not_private": watcher.medians}
    return mnist_pca.train(ready, make_network, partial(make_sanitizer, watcher=watcher), about)


run = experiment(NAME, load_digits, train)
main = command_line(NAME, Config, run, __doc__)

if __name__ == "__main__":
    sys.exit(main())
