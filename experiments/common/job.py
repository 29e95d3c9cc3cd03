"""Steps that all private experiments share before and after `minidp.run.Run`: folder, device, data,
plan, budget, verdict; and the main job, whose variants are another script.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np

from minidp import data, nn
from minidp.backend import Backend, to_host
from minidp.errors import BudgetExceededError, CheckpointError, ParameterError
from minidp.mechanism import (
    Plan,
    PrivatePCA,
    Sanitizer,
    flat_group,
    per_layer_groups,
    random_projection,
    samplers,
)
from minidp.privacy import Filter, Ledger
from minidp.privacy.catalogue import make
from minidp.privacy.meaning import large_delta
from minidp.ranks import current
from minidp.run import About, Model, Privacy, Run, RunFolder, Training
from minidp.run.folder import FILES, MANIFEST
from minidp.run.result import git_commit
from minidp.streams import Streams
from minidp.util.text import upper_text

from .config import FREE, command_of, main_of, tell, to_json
from .results import compare

SMOKE_COLOURS = 500  # images
BASELINE_EPOCHS = 100
SMOKE_LOT, SMOKE_EPOCHS = 60, 2
EVERY = 10  # norms are recorded for every tenth lot


def flags_of(config):
    """The flags that decide about a result, as JSON values."""
    return {key: value for key, value in to_json(config).items() if key not in FREE}


def prepare(name, config, smoke_lot, smoke_epochs, load):
    """(config, folder, backend, streams, data set) of a run; None if the run in --out is finished
    already.

    load: function of the configuration that returns the data set. With --smoke, settings that were
    left at their defaults shrink.
    """
    if config.smoke:
        lot = smoke_lot if config.lot_size == type(config).lot_size else config.lot_size
        config = replace(
            config, lot_size=lot, epochs=config.epochs if config.length_is_set else smoke_epochs
        )
    if config.resume and config.out is None:
        raise ParameterError("--resume needs --out DIR, the folder of the run to resume")
    folder = RunFolder(
        config.out or Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}", config.resume
    )
    if folder.finished:
        folder.check_result(flags_of(config))
        missing = current().of_first(
            lambda: [name for name in (*FILES, MANIFEST) if not (folder.path / name).is_file()]
        )
        if missing:
            raise CheckpointError(
                f"{folder.path} is finished, and {', '.join(missing)} of it "
                f"{'is' if len(missing) == 1 else 'are'} missing: put back what was deleted, or "
                "start another run in another folder"
            )
        print(f"{folder.path} is finished; its result is in {folder.path / 'result.json'}")
        return None
    backend = Backend.pick(config.device, partial(tell, config))
    return config, folder, backend, Streams(config.seed), current().of_first(lambda: load(config))


def load_digits(config, smoke_sizes=(600, 300)):
    """The digits of --dataset; with --smoke the first few of them."""
    return data.load(
        config.dataset,
        config.data_dir,
        on_notice=lambda line: print(f"NOTICE: {line}"),
        sizes=smoke_sizes if config.smoke else None,
        progress=not config.quiet,
    )


def load_colours(config):
    """CIFAR-10; with --smoke the first SMOKE_COLOURS images of each part."""
    dataset = data.load_cifar10(config.data_dir, progress=not config.quiet)
    if dataset.notice:
        print(f"NOTICE: {dataset.notice}")
    return dataset.first(SMOKE_COLOURS, SMOKE_COLOURS) if config.smoke else dataset


def make_sanitizer(config, network, clip_norm):
    """Clipping and noise, for each layer by itself or for all parameters together; neither with
    --baseline.
    """
    groups = {"per-layer": per_layer_groups, "flat": flat_group}[config.clipping]
    made = groups(network.params, math.inf if config.baseline else clip_norm, config.sigma)
    return Sanitizer(made, config.gradients, config.arithmetic)


def make_sampler(config, size):
    """The sampler of --sampler over `size`, the public number of training examples."""
    if config.lot_size > size:
        raise ParameterError(
            f"expected lot_size={config.lot_size} to be at most the {size} training examples"
        )
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


def facts(name, config, dataset, subcommand="", public=(), inputs=None):
    """Facts about a run: those that follow from the flags and the data set, and public lines."""
    return About(
        name=name,
        flags=flags_of(config),
        command=command_of(f"{name}.py {subcommand}".strip(), config, FREE),
        data=dataset,
        public=public,
        inputs=inputs or {},
        commit=git_commit(),
        quiet=config.quiet,
    )


def finish(run, result):
    """Print the outcome; returns how the run stopped."""
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
class MainJob:
    """The main job, or a variant on the same data: its name, network, clipping and noise, and
    further entries of its result.
    """

    name: str
    make_body: Callable = make_body
    make_sanitizer: Callable = make_sanitizer
    about: dict | None = None

    def run(self, config):
        """Everything from data to files; returns how it stopped."""
        ready = prepare(self.name, config, SMOKE_LOT, SMOKE_EPOCHS, load_digits)
        if ready is None:
            return "finished"
        config, folder, backend, streams, dataset = ready
        size, images = dataset.nominal_size, to_float(dataset.x_train)
        sampler, pixels = make_sampler(config, size), images.shape[1]
        body = self.make_body(config, pixels, dataset.classes, streams.init)
        sanitizer = self.make_sanitizer(config, body, config.clip_norm)
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
            facts(self.name, config, dataset),
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
        model = nn.Sequential([*head, *body.layers], (pixels,)).to(backend)
        projection = nn.Sequential(head, (pixels,)).use(config.arithmetic)
        x, tested = (
            projection.predict(backend.asarray(each)) for each in (images, to_float(dataset.x_test))
        )
        labels, test_labels = backend.asarray(dataset.y_train), backend.asarray(dataset.y_test)
        released = Model(model, range(dataset.classes), image_shape=dataset.x_train.shape[1:])
        result = run.train(x, labels, tested, test_labels, model=released, about=self.about)
        return finish(run, result)


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
                norms = [norms for name, norms in parts if name == group]
                self._add_median(group, np.concatenate(norms))
            self._norms.clear()
        self._lots += 1

    def _add_median(self, group, norms):
        if norms.size:
            with np.errstate(invalid="ignore"):  # where training diverged
                median = float(np.median(norms))
            self.medians.setdefault(group, []).append(median if np.isfinite(median) else None)


def command_line(name, config, run, about):
    """The function main(argv) of a script: `run` on a `config` of its flags; it returns the exit
    status.
    """
    return main_of(f"{name}.py", about, {"": (config, lambda config: exit_status(run(config)))})
