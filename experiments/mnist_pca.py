#!/usr/bin/env python3
"""The main job: MNIST with differentially private PCA and DP-SGD (Abadi et al. 2016, Section 5.2,
Figure 3).

python experiments/mnist_pca.py                     # epsilon 2 at delta 1e-5, a minute or two
python experiments/mnist_pca.py --noise small       # epsilon 8
python experiments/mnist_pca.py --baseline          # the same network without privacy
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import common

common.start(__name__)

from common.config import POSITIVE, DecayFlags, digits_option, option, tell
from common.job import (
    command_line,
    facts,
    finish,
    load_digits,
    make_sampler,
    make_sanitizer,
    plan_and_budget,
    prepare,
)

import numpy as np

from minidp import nn
from minidp.errors import BudgetExceededError, ParameterError
from minidp.mechanism import PrivatePCA, random_projection
from minidp.privacy import Ledger
from minidp.privacy.catalogue import make
from minidp.run import Model, Privacy, Run, Training
from minidp.train import OPTIMIZERS
from minidp.util.text import upper_text
from minidp.util.validate import count, non_negative_finite, positive_finite

NAME = "mnist_pca"
# Section 5.2: small, medium and large noise (sigma, sigma_pca), and the epsilon each is reported
# for
NOISE = {"small": (2.0, 4.0, 8.0), "medium": (4.0, 7.0, 2.0), "large": (8.0, 16.0, 0.5)}
BASELINE_EPOCHS = 100
SMOKE_SIZES, SMOKE_LOT, SMOKE_EPOCHS = (600, 300), 60, 2


@dataclass(frozen=True)
class Config(DecayFlags):
    """The flags. Defaults are the paper's (Section 5.2) if it names them.

    The target epsilon is 8, 2, 0.5 for small, medium, large noise, even if a flag changes a noise
    multiplier.
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
        None, "sigma, instead of that of --noise; 0 for no noise", non_negative_finite
    )
    pca_noise_multiplier: float | None = option(
        None, "sigma_pca, instead of that of --noise; 0 for no noise", non_negative_finite
    )
    clip_norm: float = option(
        4.0, "C of each layer, or of all together with --clipping flat", positive_finite
    )
    clipping: str = option(
        "per-layer",
        "clip all parameters together (flat) or each layer separately",
        choices=("per-layer", "flat"),
    )
    pca_dim: int = option(60, "dimensions of the projection", POSITIVE)
    projection: str = option("pca", "projection of the input", choices=("pca", "random", "none"))
    hidden: int = option(1000, "number of hidden units", partial(count, 1, 10**7))
    activation: str = option("relu", "activation of the hidden units", choices=("relu", "tanh"))
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


def make_body(config, pixels, classes, rng):
    """The trained part, after the projection. No biases, as in the 2016 code."""
    if config.projection != "none" and config.pca_dim > pixels:
        raise ParameterError(f"expected pca_dim={config.pca_dim} to be at most the {pixels} pixels")
    width = pixels if config.projection == "none" else config.pca_dim
    activation = {"relu": nn.ReLU, "tanh": nn.Tanh}[config.activation]
    return nn.Sequential(
        [
            nn.Dense(width, config.hidden, rng=rng, bias=False),
            activation(),
            nn.Dense(config.hidden, classes, rng=rng, bias=False),
        ],
        (width,),
    )


def make_optimizer(config, size):
    """The optimizer with the learning rate of Section 5.2: linear, then constant.

    The paper does not say how its baseline was trained; plain descent at these rates ends half a
    point lower.
    """
    name = config.optimizer or ("momentum" if config.baseline else "sgd")
    return config.falling_optimizer(size, name)


def check_pca(config, ledger):
    """Raise BudgetExceededError, which names the flags that help, if PCA, which is charged in
    `ledger`, costs more than the target alone.
    """
    cost = make(config.accountant, ledger.relation).epsilon(ledger, config.delta).upper
    if cost > config.target:
        raise BudgetExceededError(
            f"the PCA before the first step costs epsilon {upper_text(cost)} at delta="
            f"{config.delta:g}, above the target of {config.target:g}; use "
            f"{'' if config.noise == 'large' else '--noise large or '}a larger "
            "--pca-noise-multiplier"
        )


def to_float(images):
    """(N, D) float32 in [0, 1], D pixels in a row: public scaling."""
    return images.reshape((images.shape[0], math.prod(images.shape[1:]))) / np.float32(255)


@dataclass(frozen=True)
class Job:
    """The main job, or a variant on the same data: its name, network, clipping and noise, and
    further entries of its result.
    """

    name: str = NAME
    make_body: Callable = make_body
    make_sanitizer: Callable = make_sanitizer
    about: dict | None = None


def run(config, job=Job()):
    """Everything from data to files; returns how it stopped."""
    name = job.name
    ready = prepare(
        name, config, SMOKE_LOT, SMOKE_EPOCHS, partial(load_digits, smoke_sizes=SMOKE_SIZES)
    )
    if ready is None:
        return "finished"
    config, folder, backend, streams, dataset = ready
    size, images = dataset.nominal_size, to_float(dataset.x_train)
    sampler, pixels = make_sampler(config, size), images.shape[1]
    body = job.make_body(config, pixels, dataset.classes, streams.init)
    sanitizer = job.make_sanitizer(config, body, config.clip_norm)
    before = []
    if config.projection == "pca":
        pca = PrivatePCA(config.pca_dim, config.pca_sigma, config.arithmetic)
        before.append(pca.charge(sampler.relation, pixels))
        check_pca(config, Ledger(sampler.relation, [(before[0], 1)]))
    plan, budget = plan_and_budget(config, sampler, sanitizer, size, BASELINE_EPOCHS, before)
    run = Run(
        folder,
        Training(
            body.to(backend),
            nn.SoftmaxCrossEntropy(),
            make_optimizer(config, size),
            streams,
            config.batch_size,
        ),
        Privacy(plan, budget, train_metrics=config.train_metrics),
        facts(name, config, dataset),
    )
    head = []
    if config.projection == "pca":
        what = (
            f"DP-PCA to {config.pca_dim} dimensions, all rows scaled to unit norm: noise std "
            f"{config.pca_sigma:g} on the second moments, whose sensitivity is "
            f"{pca.sensitivity(sampler.relation):.4g}"
        )

        def release():  # of a new run; a resumed one has it
            tell(config, f"DP-PCA of {size:,} images")
            return pca.release(pca.raw_second_moments(images), streams.noise("pca"))

        head.append(nn.Project(run.release_first("pca", *before, what, release)))
    elif config.projection == "random":
        head.append(nn.Project(random_projection(pixels, config.pca_dim, streams.init)))
    model = nn.Sequential(head + body.layers, (pixels,)).to(backend)
    projection = nn.Sequential(head, (pixels,)).use(config.arithmetic)
    x, tested = (
        projection.predict(backend.asarray(each)) for each in (images, to_float(dataset.x_test))
    )
    labels, test_labels = backend.asarray(dataset.y_train), backend.asarray(dataset.y_test)
    released = Model(model, range(dataset.classes), image_shape=dataset.x_train.shape[1:])
    return finish(run, run.train(x, labels, tested, test_labels, model=released, about=job.about))


main = command_line(NAME, Config, run, __doc__)

if __name__ == "__main__":
    sys.exit(main())
