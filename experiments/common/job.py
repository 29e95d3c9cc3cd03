"""What all private experiments share before and after `minidp.run.Run`: folder, device, data, plan,
budget, verdict; and the main job, whose variants are another script.
"""

import math
import sys
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from datasets import cifar, mnist
from datasets.dataset import Dataset
from minidp import nn
from minidp.backend import Backend, to_host
from minidp.errors import ParameterError
from minidp.mechanism import (
    Plan,
    PrivatePCA,
    Sanitizer,
    flat_group,
    per_layer_groups,
    random_projection,
    samplers,
)
from minidp.privacy import Filter
from minidp.privacy.catalogue import make
from minidp.privacy.meaning import large_delta
from minidp.ranks import current
from minidp.run import About, Model, Privacy, Run, RunFolder, Training
from minidp.run.record import git_commit
from minidp.streams import Streams

from .config import FREE, command_of, main_of, tell, to_json
from .results import compare

SMOKE_COLOURS = 500  # images
BASELINE_EPOCHS = 100
SMOKE = 60, 2  # lot size, epochs
EVERY = 10  # norms are recorded for every tenth lot


def flags_of(config):
    """The flags that decide about a result, as JSON values."""
    return {key: value for key, value in to_json(config).items() if key not in FREE}


@dataclass(frozen=True)
class Ready:
    """What a run has before its network is made; name: of the experiment."""

    name: str
    config: Any
    folder: RunFolder
    backend: Backend
    streams: Streams
    dataset: Dataset

    def run(
        self,
        body,
        sampler,
        sanitizer,
        optimizer,
        epochs,
        *,
        config=None,
        before=(),
        calibrated=None,
        multiplicity=1,
        **about,
    ):
        """The `Run` that trains `body`.

        epochs              if no flag sets the length of training
        config              flags, where some follow from others
        before, calibrated  see `plan_and_budget`
        about               command: that of a script with commands; more facts: see `About`
        """
        config = config or self.config
        plan, budget = plan_and_budget(
            config, sampler, sanitizer, self.dataset.nominal_size, epochs, before, calibrated
        )
        script = f"{self.name}.py {about.pop('command', '')}".strip()
        return Run(
            self.folder,
            Training(
                body.to(self.backend),
                nn.SoftmaxCrossEntropy(),
                optimizer,
                self.streams,
                config.batch_size,
                multiplicity,
            ),
            Privacy(plan, budget, train_metrics=config.train_metrics),
            About(
                name=self.name,
                flags=flags_of(self.config),
                command=command_of(script, self.config, FREE),
                data=self.dataset,
                commit=git_commit(),
                quiet=config.quiet,
                **about,
            ),
        )

    def train(self, run, x, tested, model, about=None):
        """Train on rows x, test on the rows `tested`, and print the outcome; returns how the run
        stopped.
        """
        labels, test_labels = map(self.backend.asarray, (self.dataset.y_train, self.dataset.y_test))
        result = run.train(x, labels, tested, test_labels, model=model, about=about)
        if result is None:
            words = (
                "interrupted; run the same command again with --resume --out "
                f"{run.folder.path} to resume it"
            )
            print(words, file=sys.stderr)
        else:
            compare(result)
            print(run.summary())
        return run.stopped


def experiment(name, load, train, smoke=SMOKE):
    """The function run(config) of an experiment: everything from data to files; it returns how the
    run stopped.

    load    function of the configuration that returns the data set
    train   function of a `Ready`; not called where the run in --out is finished already
    smoke   lot size and epochs that --smoke sets where no flag does
    """

    def run(config):
        if config.smoke:
            lot, epochs = smoke
            lot = lot if config.lot_size == type(config).lot_size else config.lot_size
            epochs = config.epochs if config.length_is_set else epochs
            config = replace(config, lot_size=lot, epochs=epochs)
        if config.resume and config.out is None:
            raise ParameterError("--resume needs --out DIR, the folder of the run to resume")
        folder = RunFolder(
            config.out or Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}", config.resume
        )
        if folder.finished:  # whatever was deleted of it since, nothing is charged again
            folder.check_result(flags_of(config))
            print(f"{folder.path} is finished; its result is in {folder.path / 'result.json'}")
            return "finished"
        backend = Backend.pick(config.device, partial(tell, config))
        dataset = current().of_first(lambda: load(config))
        return train(Ready(name, config, folder, backend, Streams(config.seed), dataset))

    return run


def load_digits(config, smoke_sizes=(600, 300)):
    """The digits of --dataset; with --smoke the first few of them."""
    return mnist.load(
        config.dataset,
        config.data_dir,
        on_notice=lambda line: print(f"NOTICE: {line}"),
        sizes=smoke_sizes if config.smoke else None,
        progress=not config.quiet,
    )


def load_colours(config):
    """CIFAR-10; with --smoke the first SMOKE_COLOURS images of each part."""
    dataset = cifar.load_cifar10(config.data_dir, progress=not config.quiet)
    if dataset.notice:
        print(f"NOTICE: {dataset.notice}")
    return dataset.first(SMOKE_COLOURS, SMOKE_COLOURS) if config.smoke else dataset


def make_sanitizer(config, network, clip_norm):
    """Clipping and noise, for each layer by itself or for all parameters together; neither with
    --baseline.
    """
    groups = {"per-layer": per_layer_groups, "flat": flat_group}[config.clipping]
    made = groups(network.params, math.inf if config.baseline else clip_norm, config.sigma)
    return Sanitizer(made, config.gradients)


def make_sampler(config, size):
    """The sampler of --sampler over `size`, the public number of training examples."""
    return samplers.make_sampler(config.sampler, size, config.lot_size)


def plan_and_budget(config, sampler, sanitizer, size, default_epochs, before=(), calibrated=None):
    """(Plan, privacy.Filter): as many steps as the target allows after the events `before`, or the
    number that the flags set.

    calibrated: a number of steps for which the least noise is found that keeps them within the
    target, or within the default target. Raises BudgetExceededError if no step fits.
    """
    plan = Plan(sampler, sanitizer, 1, config.lot_size)
    accountant = make(config.accountant, plan.relation)
    if calibrated and config.private:
        target = config.default_target if math.isinf(config.target) else config.target
        plan = plan.with_steps(calibrated).calibrated(accountant, target, config.delta, before)
    if config.private and (why := large_delta(config.delta, size)):
        print(f"NOTICE: delta={config.delta:g} is {why}")
    if math.isinf(config.target):
        epochs = default_epochs if config.epochs is None else config.epochs
        lots = math.ceil(samplers.steps_of_epochs(sampler, epochs) * (1 - 1e-12))
        plan = plan.with_steps(config.steps or lots)
        return plan, Filter(accountant, config.target, config.delta)
    if accountant.kind != "bound":
        print(
            f"NOTICE: {accountant.name} is an approximation: the true epsilon may exceed "
            f"{config.target:g}; for a bound use --accountant loss_distribution, renyi or moments"
        )
    what = f"epsilon {config.target:g} at delta {config.delta:g}"
    tell(config, f"computing how many lots fit into {what}")
    plan = plan.fitted(accountant, plan.ledger(0, before), config.target, config.delta)
    return plan, Filter(accountant, config.target, config.delta)


def make_body(config, pixels, classes, rng, hidden=None):
    """The trained part, after the projection; hidden: numbers of units. No biases, as in the 2016
    code.
    """
    if config.projection != "none" and config.pca_dim > pixels:
        raise ParameterError(f"expected pca_dim={config.pca_dim} to be at most the {pixels} pixels")
    width = pixels if config.projection == "none" else config.pca_dim
    activation = {"relu": nn.ReLU, "tanh": nn.Tanh}[config.activation]
    layers = []
    for inputs, outputs in pairwise([width, *(hidden or [config.hidden]), classes]):
        layers += [nn.Dense(inputs, outputs, rng=rng, bias=False), activation()]
    return nn.Sequential(layers[:-1], (width,))


def to_float(images):
    """(N, D) float32 in [0, 1], D pixels in a row: public scaling."""
    return images.reshape((images.shape[0], math.prod(images.shape[1:]))) / np.float32(255)


def main_job(ready, make_body=make_body, make_sanitizer=make_sanitizer, about=None):
    """Train the main job, or a variant of its network, clipping and noise; returns how it stopped.

    about: further entries of the result
    """
    config, dataset, streams = ready.config, ready.dataset, ready.streams
    size, images = dataset.nominal_size, to_float(dataset.x_train)
    sampler, pixels = make_sampler(config, size), images.shape[1]
    body = make_body(config, pixels, dataset.classes, streams.init)
    sanitizer = make_sanitizer(config, body, config.clip_norm)
    before = []
    if config.projection == "pca":
        pca = PrivatePCA(config.pca_dim, config.pca_sigma)
        before.append(pca.event())
    # the paper does not say how its baseline was trained; plain descent ends half a point lower
    name = config.optimizer or ("momentum" if config.baseline else "sgd")
    optimizer = config.falling_optimizer(size, name)
    run = ready.run(body, sampler, sanitizer, optimizer, BASELINE_EPOCHS, before=before)
    head = []
    if config.projection == "pca":
        what = (
            f"DP-PCA to {config.pca_dim} dimensions, all rows scaled to unit norm: noise std "
            f"{config.pca_sigma:g} on the second moments, whose sensitivity is "
            f"{pca.sensitivity:.4g}"
        )

        def release():  # of a new run; a resumed one has it
            tell(config, f"DP-PCA of {size:,} images")
            return pca.release(pca.raw_second_moments(images), streams.noise("pca"))

        head.append(nn.Project(run.release_first("pca", *before, what, release)))
    elif config.projection == "random":
        head.append(nn.Project(random_projection(pixels, config.pca_dim, streams.init)))
    model = nn.Sequential([*head, *body.layers], (pixels,)).to(ready.backend)
    projection = nn.Sequential(head, (pixels,))
    x, tested = (
        projection.predict(ready.backend.asarray(each))
        for each in (images, to_float(dataset.x_test))
    )
    released = Model(model, range(dataset.classes), image_shape=dataset.x_train.shape[1:])
    return ready.train(run, x, tested, released, about)


def exit_status(stopped):
    """130 after an interrupt, else 0."""
    return 130 if stopped == "interrupted" else 0


class MedianNorms:
    """A sanitizer's watcher that keeps each clip group's median norm in every tenth lot. The
    medians are not private.

    medians   {group: [median of each watched lot, in their order]}; None for one that is not finite
    """

    def __init__(self):
        self.medians = {}
        self._norms = []  # (group, norms) of parts of one lot: its threads append them in any order
        self._lots = 0

    def take_norms(self, group, sq_norms):
        """Keep the norms of one part of a watched lot."""
        if self._lots % EVERY == 0:
            self._norms.append((group, to_host(sq_norms) ** 0.5))

    def end_lot(self):
        """Add the medians of a watched lot, over the parts of all threads and ranks."""
        if self._lots % EVERY == 0:
            parts = [part for rank in current().collect(self._norms) for part in rank]
            for group in dict.fromkeys(group for group, _ in parts):
                norms = np.concatenate([norms for name, norms in parts if name == group])
                if norms.size:
                    with np.errstate(invalid="ignore"):  # where training diverged
                        median = float(np.median(norms))
                    found = median if np.isfinite(median) else None
                    self.medians.setdefault(group, []).append(found)
            self._norms.clear()
        self._lots += 1


def command_line(name, config, run, about):
    """The function main(argv) of a script: `run` on a `config` of its flags; it returns the exit
    status.
    """
    return main_of(f"{name}.py", about, {"": (config, lambda config: exit_status(run(config)))})
