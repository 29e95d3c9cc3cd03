#!/usr/bin/env python3
"""The main job: MNIST with private PCA and DP-SGD (Abadi et al. 2016, Section 5.2, Figure 3).

python experiments/mnist_pca.py                     # epsilon 2 at delta 1e-5, a minute or two
python experiments/mnist_pca.py --noise small       # epsilon 8
python experiments/mnist_pca.py --baseline          # the same network without privacy

`train` is the whole job, in the order in which it happens: a network, a plan of everything that
will be released and its cost, a projection that is released once, and training.
"""

import math
import sys
from dataclasses import dataclass
from functools import partial

import common

common.start(__name__)

from common.config import (
    POSITIVE,
    DecayFlags,
    clipping_option,
    digits_option,
    dtype_option,
    option,
    tell,
)
from common.job import command_line, experiment, load_digits, within_budget

import numpy as np

from minidp import nn
from minidp.errors import ParameterError
from minidp.mechanism import (
    Plan,
    PrivatePCA,
    Sanitizer,
    flat_group,
    per_layer_groups,
    random_projection,
)
from minidp.mechanism.samplers import make_sampler
from minidp.run import Model
from minidp.train import OPTIMIZERS
from minidp.util.validate import count, non_negative_finite, positive_finite

NAME = "mnist_pca"
BASELINE_EPOCHS = 100
# Section 5.2: sigma, sigma_pca, and the epsilon and the accuracy that are reported for them
NOISE = {"small": (2, 4, 8.0, 0.97), "medium": (4, 7, 2.0, 0.95), "large": (8, 16, 0.5, 0.9)}


@dataclass(frozen=True)
class Config(DecayFlags):
    """The flags. Defaults are the paper's if it names them. The target epsilon is 8, 2, 0.5 for
    small, medium, large noise, even if a flag changes a noise multiplier.
    """

    optimizer: str | None = option(
        None,
        "how gradients update the weights (default: sgd; with --baseline, momentum)",
        choices=tuple(OPTIMIZERS),
    )
    noise: str = option(
        "medium",
        "noise and target: (sigma, sigma_pca) = (2, 4), (4, 7) or (8, 16), and epsilon 8, 2 or 0.5",
        choices=tuple(NOISE),
    )
    noise_multiplier: float | None = option(
        None, "sigma, instead of that of --noise; 0 for no noise", non_negative_finite, noise=True
    )
    pca_noise_multiplier: float | None = option(
        None,
        "sigma_pca, instead of that of --noise; 0 for no noise",
        non_negative_finite,
        noise=True,
    )
    clip_norm: float = option(
        4.0, "C of each layer, or of all together with --clipping flat", positive_finite
    )
    clipping: str = clipping_option("per-layer")
    pca_dim: int = option(60, "dimensions of the projection", POSITIVE)
    projection: str = option("pca", "projection of the input", choices=("pca", "random", "none"))
    hidden: int = option(1000, "number of hidden units", partial(count, 1, 10**7))
    activation: str = option("relu", "activation of the hidden units", choices=("relu", "tanh"))
    dtype: str = dtype_option()
    dataset: str = digits_option()

    @property
    def sigma(self):
        """Noise multiplier of training."""
        return self.chosen(self.noise_multiplier, NOISE[self.noise][0])

    @property
    def pca_sigma(self):
        """Noise multiplier of PCA."""
        return self.chosen(self.pca_noise_multiplier, NOISE[self.noise][1])

    @property
    def private(self):
        """True if every release has noise."""
        return self.sigma > 0 and (self.projection != "pca" or self.pca_sigma > 0)

    @property
    def default_target(self):
        """The epsilon that Section 5.2 states for this noise."""
        return NOISE[self.noise][2]


def to_rows(images):
    """(N, D) float32 in [0, 1], the D pixels of an image in a row: public scaling."""
    return images.reshape((len(images), math.prod(images.shape[1:]))) / np.float32(255)


def make_network(config, width, classes, rng):
    """A hidden layer on rows of `width` numbers, and logits. No biases, as in the code of 2016."""
    activation = {"relu": nn.ReLU, "tanh": nn.Tanh}[config.activation]
    dense = partial(nn.Dense, rng=rng, bias=False, dtype=config.dtype)
    layers = [
        dense(width, config.hidden),
        activation(),
        dense(config.hidden, classes),
    ]
    return nn.Sequential(layers, (width,))


def make_sanitizer(config, network):
    """Clipping and noise, for each layer by itself or for all together; neither with --baseline."""
    groups = {"per-layer": per_layer_groups, "flat": flat_group}[config.clipping]
    clip_norm = math.inf if config.baseline else config.clip_norm
    return Sanitizer(groups(network.params, clip_norm, config.sigma), config.gradients)


def train(ready, make_network=make_network, make_sanitizer=make_sanitizer, about=None):
    """Train the network, or a variant of it, on projected images; returns how training stopped.

    about   further entries of the result
    """
    config, backend, dataset, streams = ready.config, ready.backend, ready.dataset, ready.streams
    images, tested = to_rows(dataset.x_train), to_rows(dataset.x_test)
    size, pixels = dataset.nominal_size, images.shape[1]  # public numbers
    if config.projection != "none" and config.pca_dim > pixels:
        raise ParameterError(f"expected pca_dim={config.pca_dim} to be at most the {pixels} pixels")
    width = pixels if config.projection == "none" else config.pca_dim
    network = make_network(config, width, dataset.classes, streams.init)

    # The plan: PCA once, then lots of clipped gradients with noise, as many as epsilon allows. All
    # of it follows from public numbers.
    pca = PrivatePCA(config.pca_dim, config.pca_sigma)
    before = [pca.event()] if config.projection == "pca" else []
    sampler = make_sampler(config.sampler, size, config.lot_size)
    plan = Plan(sampler, make_sanitizer(config, network), 1, config.lot_size)
    plan, budget = within_budget(config, plan, size, BASELINE_EPOCHS, before)
    # the paper does not say how its baseline was trained; plain descent ends half a point lower
    optimizer = config.optimizer or ("momentum" if config.baseline else "sgd")
    run = ready.run(network, config.falling_optimizer(size, optimizer), plan, budget)

    # The projection: principal components of noisy second moments, which are charged first.
    head = []
    if config.projection == "pca":
        what = (
            f"DP-PCA to {config.pca_dim} dimensions, all rows scaled to unit norm: noise std "
            f"{config.pca_sigma:g} on the second moments, whose sensitivity is "
            f"{pca.sensitivity:.4g}"
        )

        def release():  # of a new run; a resumed one has it
            tell(config, f"DP-PCA of {size:,} images")
            rows = backend.asarray(images)  # sums of whole numbers, exact on any device
            return pca.release(pca.raw_second_moments(rows), streams.noise("pca"))

        head = [nn.Project(run.release_first("pca", *before, what, release))]
    elif config.projection == "random":
        head = [nn.Project(random_projection(pixels, config.pca_dim, streams.init))]

    # Training, on projected images. The model that is saved projects and classifies: it takes
    # images.
    model = nn.Sequential([*head, *network.layers], (pixels,)).to(backend)
    projection = nn.Sequential(head, (pixels,))
    x, x_test = (
        projection.predict(backend.asarray(rows)).astype(config.dtype, copy=False)
        for rows in (images, tested)
    )
    saved = Model(model, range(dataset.classes), image_shape=dataset.x_train.shape[1:])
    return ready.train(run, x, x_test, saved, about)


run = experiment(NAME, load_digits, train)
main = command_line(NAME, Config, run, __doc__)

if __name__ == "__main__":
    sys.exit(main())
