#!/usr/bin/env python3
"""The main job: MNIST with differentially private PCA and DP-SGD (Abadi et al. 2016, Section 5.2, Figure 3).

    python experiments/mnist_pca.py                     # epsilon 2 at delta 1e-5, a minute or two
    python experiments/mnist_pca.py --noise small       # epsilon 8
    python experiments/mnist_pca.py --baseline          # the same network without privacy
"""
import math
import sys
from dataclasses import dataclass

from common.config import option, parse
from common.flags import RunFlags
from common.job import Job, exit_status, load_digits, shrink_for_smoke
import numpy as np

from minidp import nn
from minidp.cli import user_errors
from minidp.errors import ParameterError
from minidp.mechanism import LinearDecay, PrivatePCA, Sanitizer, flat_group, per_layer_groups, random_projection
from minidp.train import OPTIMIZERS
from minidp.validate import count, in_range, non_negative_finite, positive_finite

NAME = "mnist_pca"
# Section 5.2: small, medium and large noise (sigma, sigma_pca), and the epsilon each is reported for
NOISE = {"small": (2.0, 4.0, 8.0), "medium": (4.0, 7.0, 2.0), "large": (8.0, 16.0, 0.5)}
BASELINE_EPOCHS = 100
SMOKE_SIZES, SMOKE_LOT, SMOKE_EPOCHS = (600, 300), 60, 2


@dataclass(frozen=True)
class Config(RunFlags):
    """The flags. Defaults are the paper's, Section 5.2, where it names them.

    The target epsilon is 8, 2, 0.5 for small, medium, large noise, also where a multiplier is set singly.
    """

    optimizer: str | None = option(None, "of the released gradients (default: sgd; with --baseline, momentum)",
                                   choices=tuple(OPTIMIZERS))
    noise: str = option("medium", "(sigma, sigma_pca) = (2, 4), (4, 7) or (8, 16), and epsilon 8, 2 or 0.5",
                        choices=tuple(NOISE))
    noise_multiplier: float | None = option(None, "sigma, in place of that of --noise; 0 for no noise")
    pca_noise_multiplier: float | None = option(None, "sigma_pca, in place of that of --noise; 0 for no noise")
    clip_norm: float = option(4.0, "C, for each layer, or for all together with --clipping flat")
    clipping: str = option("per-layer", "what is clipped together", choices=("per-layer", "flat"))
    pca_dim: int = option(60, "dimensions of the projection")
    projection: str = option("pca", "of the input", choices=("pca", "random", "none"))
    hidden: int = option(1000, "hidden units")
    activation: str = option("relu", "of the hidden units", choices=("relu", "tanh"))
    learning_rate: float = option(0.1, "at the first step")
    final_learning_rate: float = option(0.052, "after --decay-epochs")
    decay_epochs: float = option(10.0, "epochs over which the rate falls linearly")
    dataset: str = option("auto", "digits", choices=("auto", "mnist", "strokes"))

    def __post_init__(self):
        super().__post_init__()
        self.check_noise(noise_multiplier=self.noise_multiplier, pca_noise_multiplier=self.pca_noise_multiplier)
        positive_finite(clip_norm=self.clip_norm)
        non_negative_finite(learning_rate=self.learning_rate, final_learning_rate=self.final_learning_rate)
        in_range(0, 1e6, decay_epochs=self.decay_epochs)
        count(1, pca_dim=self.pca_dim, hidden=self.hidden)
        in_range(1, 10**7, hidden=self.hidden)

    @property
    def sigma(self):
        """Noise multiplier of training."""
        chosen = NOISE[self.noise][0] if self.noise_multiplier is None else self.noise_multiplier
        return 0.0 if self.baseline else chosen

    @property
    def pca_sigma(self):
        """Noise multiplier of PCA."""
        chosen = NOISE[self.noise][1] if self.pca_noise_multiplier is None else self.pca_noise_multiplier
        return 0.0 if self.baseline else chosen

    @property
    def private(self):
        """True if everything that is released carries noise."""
        return self.sigma > 0 and (self.projection != "pca" or self.pca_sigma > 0)

    @property
    def default_target(self):
        """The epsilon that Section 5.2 reports for this noise."""
        return NOISE[self.noise][2]


def make_body(config, pixels, classes, rng):
    """The trained part, after the projection. No biases, as in the 2016 code."""
    if config.projection != "none" and config.pca_dim > pixels:
        raise ParameterError(f"expected pca_dim={config.pca_dim} to be at most the {pixels} pixels")
    width = pixels if config.projection == "none" else config.pca_dim
    activation = {"relu": nn.ReLU, "tanh": nn.Tanh}[config.activation]
    return nn.Sequential([nn.Dense(width, config.hidden, rng=rng, bias=False), activation(),
                          nn.Dense(config.hidden, classes, rng=rng, bias=False)], (width,))


def make_sanitizer(config, network):
    """Clipping and noise, for each layer by itself as in Section 5.2, or for all parameters together."""
    groups = {"per-layer": per_layer_groups, "flat": flat_group}[config.clipping]
    clip_norm = math.inf if config.baseline else config.clip_norm
    return Sanitizer(groups(list(network.params), clip_norm, config.sigma), config.gradients)


def make_projection(job, pca, images):
    """The projection layer, in a list, or none. DP-PCA is charged before its noise is drawn."""
    config = job.config
    if config.projection == "none":
        return []
    if job.start.begun:
        return [nn.Project(job.start.saved[0]["network/project1.P"])]
    if config.projection == "random":
        return [nn.Project(random_projection(images.shape[1], config.pca_dim, job.streams.init))]
    job.charge_setup()
    return [nn.Project(pca.release(pca.raw_second_moments(images), job.streams.noise))]


def make_optimizer(config, size):
    """The optimizer with the learning rate of Section 5.2: linear, then constant.

    The paper does not say how its baseline was trained; plain descent at these rates ends half a point lower.
    """
    decay = round(config.decay_epochs * size / config.lot_size)
    name = config.optimizer or ("momentum" if config.baseline else "sgd")
    return config.make_optimizer(LinearDecay(config.learning_rate, config.final_learning_rate, decay), name)


def to_float(images):
    """(N, D) float32 in [0, 1], D pixels in a row: public scaling."""
    return images.reshape((images.shape[0], math.prod(images.shape[1:]))) / np.float32(255)


def run(config, name=NAME, make_body=make_body, make_sanitizer=make_sanitizer, about=None):
    """Everything from data to files; returns (result, how it stopped).

    make_body and make_sanitizer may be those of another experiment, `name`, on the same data; about: what its result
    says beside.
    """
    config = shrink_for_smoke(config, SMOKE_LOT, SMOKE_EPOCHS)
    job = Job.begin(name, config, lambda: load_digits(config, SMOKE_SIZES))
    if job is None:
        return None, "finished"
    job.about = {} if about is None else about
    images = to_float(job.dataset.x_train)
    body = make_body(config, images.shape[1], job.dataset.classes, job.streams.init)
    pca = None
    if config.projection == "pca":
        pca, relation = PrivatePCA(config.pca_dim, config.pca_sigma), job.sampler.relation
        job.setup_event, job.released = pca.event(relation), ("the PCA projection",)
        job.setup_lines = (f"DP-PCA to {config.pca_dim} dimensions, all rows scaled to unit norm: noise std "
                           f"{config.pca_sigma:g} on the second moments, whose sensitivity is "
                           f"{pca.sensitivity(relation):.4g}",)
    job.open(make_sanitizer(config, body), BASELINE_EPOCHS)
    head = make_projection(job, pca, images)
    model = nn.Sequential(head + body.layers, (images.shape[1],)).to(job.backend)
    project = nn.Sequential(head, (images.shape[1],)).predict
    asarray, dataset = job.backend.asarray, job.dataset
    features = project(asarray(images)), dataset.y_train, project(asarray(to_float(dataset.x_test))), dataset.y_test
    return job.train(model, body, make_optimizer(config, dataset.nominal_size), features)


def main(argv=None):
    """The command line; returns the exit status."""
    with user_errors():
        return exit_status(*run(parse(Config, argv, prog=f"{NAME}.py", description=__doc__.splitlines()[0])))


if __name__ == "__main__":
    sys.exit(main())
