#!/usr/bin/env python3
"""A convolutional network on MNIST, trained privately from end to end.

    python experiments/mnist_cnn.py --setting 1         # 15 epochs at sigma 1.3
    python experiments/mnist_cnn.py --setting 3         # 45 epochs at sigma 0.7

The network and the three settings are those of TensorFlow Privacy's MNIST tutorial, which publishes
95.0%, 96.6% and 97.0% for them. Abadi et al. 2016 (Section 4) leave private convolutions open.
"""

import math
import sys
from dataclasses import dataclass
from functools import partial

import common

common.start(__name__)

from common.config import RunFlags, clipping_option, digits_option, dtype_option, option
from common.job import command_line, experiment, load_digits, within_budget

from features.learned import to_float
from minidp import nn
from minidp.mechanism import Plan, Sanitizer, flat_group, per_layer_groups
from minidp.mechanism.samplers import make_sampler
from minidp.run import Model
from minidp.util.validate import non_negative_finite, positive_finite

NAME = "mnist_cnn"
# TensorFlow Privacy, tutorials/README.md: (sigma, epochs, learning rate, C)
SETTINGS = {1: (1.3, 15, 0.25, 1.5), 2: (1.1, 60, 0.15, 1.0), 3: (0.7, 45, 0.25, 1.5)}
BASELINE_EPOCHS = 20
SMOKE_SIZES, SMOKE = (300, 100), (30, 1)  # images; lots and epochs
LOT = 256


@dataclass(frozen=True)
class Config(RunFlags):
    """The flags. Noise, length, learning rate and clip norm follow --setting unless they are
    given.
    """

    lot_size: int = option(LOT, "examples per lot, on average")
    setting: int = option(
        1,
        "(sigma, epochs, learning rate, C) = (1.3, 15, .25, 1.5), (1.1, 60, .15, 1.0) or "
        "(0.7, 45, .25, 1.5)",
        choices=tuple(SETTINGS),
    )
    noise_multiplier: float | None = option(
        None, "sigma, instead of that of --setting; 0 for no noise", non_negative_finite, noise=True
    )
    clip_norm: float | None = option(None, "C, instead of that of --setting", positive_finite)
    clipping: str = clipping_option("flat")
    activation: str = option(
        "relu", "activation of all layers but the last", choices=("relu", "tanh")
    )
    learning_rate: float | None = option(
        None, "constant learning rate, instead of that of --setting", non_negative_finite
    )
    dtype: str = dtype_option()
    dataset: str = digits_option()

    @property
    def sigma(self):
        """Noise multiplier."""
        return self.chosen(self.noise_multiplier, SETTINGS[self.setting][0])


def make_network(config, classes, rng):
    """Two convolutions with overlapping max pools, two dense layers; He's initial values (for
    ReLU), zero biases.
    """
    activation = {"relu": nn.ReLU, "tanh": nn.Tanh}[config.activation]
    conv = partial(nn.Conv2D, rng=rng, stride=2, init=nn.init.he_normal, dtype=config.dtype)
    dense = partial(nn.Dense, rng=rng, init=nn.init.he_normal, dtype=config.dtype)
    return nn.Sequential(
        [
            conv(1, 16, 8, padding="same"),
            activation(),
            nn.MaxPool2D(2, stride=1),  # 28 -> 14 -> 13
            conv(16, 32, 4, padding="valid"),
            activation(),
            nn.MaxPool2D(2, stride=1),  # 13 -> 5 -> 4
            nn.Flatten(),
            dense(512, 32),
            activation(),
            dense(32, classes),
        ],
        (28, 28, 1),
    )


def train(ready):
    """Train the network on images as they are; returns how training stopped."""
    config, dataset, size = ready.config, ready.dataset, ready.dataset.nominal_size
    network = make_network(config, dataset.classes, ready.streams.init)

    # The plan: lots of clipped gradients with noise, for as many epochs as the setting says.
    _, epochs, rate, clip_norm = SETTINGS[config.setting]
    if config.baseline:
        epochs, clip_norm = BASELINE_EPOCHS, math.inf
    elif config.clip_norm is not None:
        clip_norm = config.clip_norm
    groups = {"per-layer": per_layer_groups, "flat": flat_group}[config.clipping]
    sanitizer = Sanitizer(groups(network.params, clip_norm, config.sigma), config.gradients)
    sampler = make_sampler(config.sampler, size, config.lot_size)
    plan = Plan(sampler, sanitizer, 1, config.lot_size)
    plan, budget = within_budget(config, plan, size, epochs)
    rate = rate if config.learning_rate is None else config.learning_rate
    run = ready.run(network, config.make_optimizer(rate), plan, budget)

    # Training.
    x, tested = (
        ready.backend.asarray(to_float(images), config.dtype)
        for images in (dataset.x_train, dataset.x_test)
    )
    saved = Model(network, range(dataset.classes), image_shape=dataset.x_train.shape[1:])
    return ready.train(run, x, tested, saved)


run = experiment(NAME, partial(load_digits, smoke_sizes=SMOKE_SIZES), train, SMOKE)
main = command_line(NAME, Config, run, __doc__)

if __name__ == "__main__":
    sys.exit(main())
