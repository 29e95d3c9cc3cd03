#!/usr/bin/env python3
"""The main job: MNIST with differentially private PCA and DP-SGD (Abadi et al. 2016, Section 5.2, Figure 3).

    python experiments/mnist_pca.py                     # epsilon 2 at delta 1e-5, about a minute
    python experiments/mnist_pca.py --noise small       # epsilon 8
    python experiments/mnist_pca.py --baseline          # the same network without privacy
"""
import math
import sys
import time
from dataclasses import dataclass, replace

import numpy as np

from common.accounting import ACCOUNTANTS, make_accountant
from common.config import option, parse, to_json
from common.finish import finish
from common.folder import RunFolder
from common.report import user_errors
from common.training import Task, train
from minidp import data, nn
from minidp.backend import Backend
from minidp.errors import BudgetExceededError, ParameterError
from minidp.mechanism import (FixedSizeSampler, LinearDecay, Plan, PoissonSampler, PrivatePCA, Sanitizer,
                              ShuffleSampler, flat_group, per_layer_groups, random_projection)
from minidp.privacy import Filter, Ledger
from minidp.streams import Streams
from minidp.train import OPTIMIZERS
from minidp.validate import count, in_range, non_negative_finite, positive_finite

NAME = "mnist_pca"
# Section 5.2: small, medium and large noise (sigma, sigma_pca), and the epsilon each is reported for
NOISE = {"small": (2.0, 4.0, 8.0), "medium": (4.0, 7.0, 2.0), "large": (8.0, 16.0, 0.5)}
BASELINE_EPOCHS = 100
SMOKE_SIZES, SMOKE_LOT, SMOKE_EPOCHS = (600, 300), 60, 2


@dataclass(frozen=True)
class Config:
    """The flags. Defaults are the paper's, Section 5.2, where it names them."""

    device: str = option("auto", "where to compute", choices=("auto", "cpu", "gpu"))
    noise: str = option("medium", "(sigma, sigma_pca) = (2, 4), (4, 7) or (8, 16)", choices=tuple(NOISE))
    noise_multiplier: float | None = option(None, "sigma, in place of that of --noise; 0 for no noise")
    pca_noise_multiplier: float | None = option(None, "sigma_pca, in place of that of --noise; 0 for no noise")
    target_epsilon: float | None = option(
        None, "train until this would be exceeded (default: 8, 2, 0.5 for small, medium, large noise)",
        exclusive="length")
    epochs: float | None = option(None, "passes over the data, instead of a target", exclusive="length")
    steps: int | None = option(None, "lots, instead of a target", exclusive="length")
    delta: float = option(1e-5, "delta of the guarantee")
    lot_size: int = option(600, "examples per lot, on average")
    clip_norm: float = option(4.0, "C, for each layer, or for all together with --clipping flat")
    clipping: str = option("per-layer", "what is clipped together", choices=("per-layer", "flat"))
    pca_dim: int = option(60, "dimensions of the projection")
    projection: str = option("pca", "of the input", choices=("pca", "random", "none"))
    hidden: int = option(1000, "hidden units")
    activation: str = option("relu", "of the hidden units", choices=("relu", "tanh"))
    learning_rate: float = option(0.1, "at the first step")
    final_learning_rate: float = option(0.052, "after --decay-epochs")
    decay_epochs: float = option(10.0, "epochs over which the rate falls linearly")
    optimizer: str = option("sgd", "of the released gradients", choices=tuple(OPTIMIZERS))
    batch_size: int = option(4096, "examples computed at once; bounds memory, changes no result")
    train_metrics: bool = option(True, "do not evaluate on training data (which is not private)")
    gradients: str = option("auto", "per-example gradients", choices=("auto", "explicit", "factored"))
    sampler: str = option("poisson", "how lots are drawn", choices=("poisson", "fixed", "shuffle"))
    accountant: str = option("moments", "that the target is held by", choices=tuple(ACCOUNTANTS))
    baseline: bool = option(False, "the non-private network: no clipping, no noise")
    dataset: str = option("auto", "digits", choices=("auto", "mnist", "strokes"))
    data_dir: str | None = option(None, "folder that holds the MNIST files")
    seed: int | None = option(None, "one seed for everything: reproducible, and not to be released")
    out: str | None = option(None, f"folder for the results (default: runs/{NAME}-TIME)")
    resume: bool = option(False, "go on with the run in --out")
    quiet: bool = option(False, "no progress bar")
    smoke: bool = option(False, "a few hundred examples, seconds")

    def __post_init__(self):
        if self.noise_multiplier is not None:
            non_negative_finite(noise_multiplier=self.noise_multiplier)
        if self.pca_noise_multiplier is not None:
            non_negative_finite(pca_noise_multiplier=self.pca_noise_multiplier)
        in_range(0, 1, open_low=True, open_high=True, delta=self.delta)
        positive_finite(clip_norm=self.clip_norm)
        non_negative_finite(learning_rate=self.learning_rate, final_learning_rate=self.final_learning_rate,
                            decay_epochs=self.decay_epochs)
        count(1, lot_size=self.lot_size, pca_dim=self.pca_dim, hidden=self.hidden, batch_size=self.batch_size)
        for name in ("target_epsilon", "epochs"):
            if getattr(self, name) is not None:
                positive_finite(**{name: getattr(self, name)})
        if self.steps is not None:
            count(1, steps=self.steps)
        if self.seed is not None:
            count(seed=self.seed)
        if self.target_epsilon is not None and not self.private:
            raise ParameterError("--target-epsilon needs noise: epsilon is infinite with --baseline or a noise of 0; "
                                 "set --epochs or --steps")
        if self.baseline and (self.noise_multiplier or self.pca_noise_multiplier):
            raise ParameterError("--baseline has no noise; leave out --noise-multiplier and --pca-noise-multiplier")

    @property
    def sigma(self):
        """Noise multiplier of training."""
        return 0.0 if self.baseline else _either(self.noise_multiplier, NOISE[self.noise][0])

    @property
    def pca_sigma(self):
        """Noise multiplier of PCA."""
        return 0.0 if self.baseline else _either(self.pca_noise_multiplier, NOISE[self.noise][1])

    @property
    def private(self):
        """True if everything that is released carries noise."""
        return self.sigma > 0 and (self.projection != "pca" or self.pca_sigma > 0)

    @property
    def target(self):
        """The epsilon to stop before, infinite if the length is set otherwise."""
        if self.epochs is not None or self.steps is not None or not self.private:
            return math.inf
        return _either(self.target_epsilon, NOISE[self.noise][2])


def _either(value, default):
    return default if value is None else value


def for_smoke(config):
    """The configuration on a few hundred examples: what was left at its default shrinks with them."""
    if not config.smoke:
        return config
    lot = SMOKE_LOT if config.lot_size == Config.lot_size else config.lot_size
    free = config.target_epsilon is None and config.epochs is None and config.steps is None
    return replace(config, lot_size=lot, epochs=SMOKE_EPOCHS if free else config.epochs)


def make_sampler(config, size):
    """The sampler over `size` examples, the data set's public number."""
    if config.lot_size > size:
        raise ParameterError(f"expected lot_size={config.lot_size} to be at most the {size} training examples")
    if config.sampler == "poisson":
        return PoissonSampler(config.lot_size / size)
    return {"fixed": FixedSizeSampler, "shuffle": ShuffleSampler}[config.sampler](size, config.lot_size)


def make_network(config, inputs, classes, rng):
    """The trained part, after the projection. No biases, as in the 2016 code."""
    activation = {"relu": nn.ReLU, "tanh": nn.Tanh}[config.activation]
    width = inputs if config.projection == "none" else config.pca_dim
    if width > inputs:
        raise ParameterError(f"expected pca_dim={width} to be at most the {inputs} pixels")
    layers = [nn.Dense(width, config.hidden, rng=rng, bias=False), activation(),
              nn.Dense(config.hidden, classes, rng=rng, bias=False)]
    return nn.Sequential(layers, (width,))


def make_plan(config, network, size, steps):
    """Sampler, clip groups and steps."""
    keys = list(network.params())
    groups = {"per-layer": per_layer_groups, "flat": flat_group}[config.clipping]
    clip_norm = math.inf if config.baseline else config.clip_norm
    sanitizer = Sanitizer(groups(keys, clip_norm, config.sigma), config.gradients)
    return Plan(make_sampler(config, size), sanitizer, steps, config.lot_size)


def planned_steps(config, size):
    """Steps where no target sets them: ceil(E N / L)."""
    if config.steps is not None:
        return config.steps
    epochs = _either(config.epochs, BASELINE_EPOCHS)
    return math.ceil(epochs * size / config.lot_size)


def to_float(images):
    """(N, D) float32 in [0, 1], D pixels in a row: public scaling."""
    return images.reshape((images.shape[0], math.prod(images.shape[1:]))) / np.float32(255)


def run(config):
    """Everything from data to files; returns (result dictionary, how it stopped)."""
    began = time.perf_counter()
    config = for_smoke(config)
    backend = Backend.pick(config.device)
    folder = RunFolder(config.out, NAME, config.resume)
    if folder.finished:
        print(f"{folder.path} is finished; its result is in {folder.path / 'result.json'}")
        return None, "finished"
    say = print if not config.quiet else (lambda line: None)
    if config.device == "auto":
        say(f"device auto: took {backend.name}")
    dataset = data.load(config.dataset, config.data_dir, on_notice=lambda line: print(f"NOTICE: {line}"),
                        sizes=SMOKE_SIZES if config.smoke else None, progress=not config.quiet)
    size = dataset.nominal_size
    streams = Streams(config.seed)
    images = to_float(dataset.x_train)
    network = make_network(config, images.shape[1], dataset.classes, streams.init)
    plan = make_plan(config, network, size, 1)
    accountant = make_accountant(config.accountant, plan.relation)
    pca = PrivatePCA(config.pca_dim, config.pca_sigma) if config.projection == "pca" else None

    fixed = {**to_json(replace(config, out=None, resume=False, quiet=False, device=backend.name)),
             "dataset": dataset.name, "dataset_sha256": dataset.sha256}
    del fixed["out"], fixed["resume"], fixed["quiet"], fixed["data_dir"]
    plan = plan_length(config, plan, accountant, pca, size, Ledger(plan.relation))
    start = folder.open(fixed, plan.relation, streams.reproducible)
    if not start.begun:
        plan = plan_length(config, plan, accountant, pca, size, start.ledger)
    filter = Filter(accountant, config.target, config.delta, start.ledger)
    projection = make_projection(config, pca, images, folder, start, filter, streams)
    model = nn.Sequential(([nn.Project(projection)] if projection is not None else []) + network.layers,
                          (images.shape[1],), frozen=["project1"] if projection is not None else []).to(backend)
    head = nn.Sequential(model.layers[: -len(network.layers)], (images.shape[1],))
    task = Task(
        network=network, model=model, loss=nn.SoftmaxCrossEntropy(), optimizer=make_optimizer(config, size), plan=plan,
        filter=filter, streams=streams, batch_size=config.batch_size, train_metrics=config.train_metrics,
        quiet=config.quiet, curve_epsilon=fixed_epsilon(config, accountant, plan, pca),
        features=head.predict(backend.asarray(images)), labels=backend.asarray(dataset.y_train),
        test_features=head.predict(backend.asarray(to_float(dataset.x_test))),
        test_labels=backend.asarray(dataset.y_test))
    del images
    record, history, seconds = train(task, folder, start, fixed, began)
    if record.stopped == "interrupted":
        return {"steps": record.progress.step, "out": folder.path}, "interrupted"
    setup = [] if pca is None else [f"DP-PCA to {config.pca_dim} dimensions over all rows, scaled to unit norm: noise "
                                    f"multiplier {config.pca_sigma:g}, sensitivity {pca.sensitivity(plan.relation):.4g}"]
    result = finish(NAME, task, folder, record, history, seconds, config=to_json(config), dataset=dataset,
                    device=backend.name, setup=setup, pca_event=pca and pca.event(plan.relation))
    return result, record.stopped


def plan_length(config, plan, accountant, pca, size, ledger):
    """The plan with its steps: as many as the target allows on top of the ledger and PCA, or as set."""
    if math.isinf(config.target):
        return plan.with_steps(planned_steps(config, size))
    before = ledger.copy()
    if pca is not None:
        before.append(pca.event(plan.relation))
    plan = plan.fitted(accountant, before, config.target, config.delta)
    if plan.steps == 0:
        raise BudgetExceededError(f"not one lot fits into epsilon {config.target:g} at delta={config.delta:g}; raise "
                                  "the target or the noise, or make lots smaller")
    return plan


def make_projection(config, pca, images, folder, start, filter, streams):
    """The matrix (D, pca_dim), or None. DP-PCA is charged, and the charge is on disk, before its noise."""
    if config.projection == "none":
        return None
    if start.begun:
        return start.saved[0]["network/project1.P"]
    if config.projection == "random":
        return random_projection(images.shape[1], config.pca_dim, streams.init)
    filter.charge(pca.event(filter.ledger.relation))
    folder.charge(filter.ledger)
    return pca.release(pca.raw_second_moments(images), streams.noise)


def fixed_epsilon(config, accountant, plan, pca):
    """Where delta is drawn against epochs: the target, or what the planned steps come to."""
    if not math.isinf(config.target):
        return config.target
    whole = Ledger(plan.relation)
    if pca is not None:
        whole.append(pca.event(plan.relation))
    for event, times in plan.charges(0, plan.steps):
        whole.append(event, times)
    return accountant.epsilon(whole, config.delta).upper


def make_optimizer(config, size):
    """The optimizer with the learning rate of Section 5.2: linear, then constant."""
    decay = round(config.decay_epochs * size / config.lot_size)
    return OPTIMIZERS[config.optimizer](LinearDecay(config.learning_rate, config.final_learning_rate, decay))


def main(argv=None):
    """The command line; returns the exit status."""
    with user_errors():
        result, stopped = run(parse(Config, argv, prog=f"{NAME}.py", description=__doc__.splitlines()[0]))
        if stopped == "interrupted":
            print(f"interrupted after {result['steps']} lots; go on with --resume --out {result['out']}",
                  file=sys.stderr)
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
