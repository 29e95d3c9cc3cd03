#!/usr/bin/env python3
"""CIFAR-10 with convolutions learned on public data (Abadi et al. 2016, Section 5.3, Figure 6).

python experiments/cifar_transfer.py pretrain --public-data DIR --out DIR
# one layer on fixed features
python experiments/cifar_transfer.py head --data-dir DIR --target-epsilon 2
python experiments/cifar_transfer.py train --data-dir DIR --target-epsilon 2   # the paper's way
python experiments/cifar_transfer.py baseline --data-dir DIR
python experiments/cifar_transfer.py figure --data-dir DIR --seeds 3      # also: sentences
"""

import hashlib
import math
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from common.config import POSITIVE, RunFlags, main_of, option
from common.job import (
    MedianNorms,
    exit_status,
    facts,
    finish,
    load_colours,
    make_sampler,
    plan_and_budget,
    prepare,
)
from common.linear import NORM, SEARCH, LinearFlags, train_linear
from common.sweep_flags import SweepFlags
from common.transfer_figures import FIGURES

import numpy as np
from tqdm import tqdm

from features.frozen import (
    BATCH,
    PRETRAINED_BY,
    TEST_VIEWS,
    CachedViews,
    FreshViews,
    feature_file,
    kept_features,
    load_pretrained,
    mean_over_views,
    taps,
)
from features.pretraining import NAME, SIDE, UNITS, PretrainConfig, pretrain
from minidp import nn
from minidp.backend import to_host
from minidp.data import centre_crop, standardise_images
from minidp.errors import ParameterError
from minidp.mechanism import LinearDecay, Sanitizer, flat_group, per_layer_groups
from minidp.run import Privacy, Run, Training
from minidp.streams import Streams
from minidp.util.validate import count, non_negative_finite, positive_finite

SMOKE_LOT, SMOKE_EPOCHS = 50, 1
BASELINE_EPOCHS = 30
PRETRAINED = Path(__file__).resolve().parent / "pretrained"
# What `settings.py cifar_transfer` chose: from how many layers `head` takes features; the rule (see
# common/linear.py)
TAPS = 3
RULE = {"steps": 100, "sigma": 3.0, "share": 0.03, "travel": 1.0, "clip": 0.121, "decay": 0.9}
SPACE = (
    "the space that was searched was known from the literature and from earlier work on CIFAR-10, "
    "which no epsilon covers"
)
TRAINED = {"softmax": 1, "top": 2, "both": 3}  # of the last three dense layers


@dataclass(frozen=True)
class TrainConfig(RunFlags):
    """Flags of `train`, and of `baseline`, which is the same without clipping and noise. Section
    5.3.
    """

    default_target = 2.0  # epsilon of the paper's tightest result
    shipped = "cifar_transfer.npz"  # the paper's layers

    lot_size: int = option(
        2000, "examples per lot, on average; the paper's best are 2,000 and 4,000", POSITIVE
    )
    noise_multiplier: float = option(6.0, "sigma; 0 for no noise", non_negative_finite)
    clip_norm: float = option(
        3.0,
        "C of each dense layer, or of all together; the softmax layer's is twice that",
        positive_finite,
    )
    clipping: str = option("per-layer", "what is clipped together", choices=("per-layer", "flat"))
    train_layers: str = option(
        "both",
        "softmax: the last layer; top: one of 384 units too; both: two of 384 too",
        choices=tuple(TRAINED),
    )
    pretrained: str | None = option(
        None, "file that `pretrain` wrote, in place of the one in experiments/pretrained"
    )
    views: int = option(
        8,
        "fixed distorted views of each example, whose features are computed once; 0: crops only",
        count,
    )
    multiplicity: int = option(
        1,
        "views of each example of a lot, whose gradients are averaged before they are clipped",
        POSITIVE,
    )
    watch_norms: bool = option(
        False, "take down the median of each clip group's unclipped norms (not private)"
    )
    fresh_augmentation: bool = option(
        False, "a new distortion at every use, as in the paper; far slower"
    )
    learning_rate: float = option(0.1, "at the first step", non_negative_finite)
    final_learning_rate: float = option(0.052, "after --decay-epochs", non_negative_finite)
    decay_epochs: float = option(
        10.0, "epochs over which the rate falls linearly", non_negative_finite
    )

    def __post_init__(self):
        super().__post_init__()
        if not self.fresh_augmentation and self.multiplicity > self.views + 1:
            raise ParameterError(
                f"expected --multiplicity {self.multiplicity} to be at most {self.views + 1}: the "
                f"--views {self.views} of each image and its centre crop"
            )

    @property
    def sigma(self):
        """Noise multiplier."""
        return self.chosen(self.noise_multiplier, None)


@dataclass(frozen=True)
class HeadConfig(LinearFlags):
    """Flags of `head`: a dense layer on what layers of the pre-trained network give. Lots and noise
    follow the target.
    """

    default_target = 2.0
    rule = RULE
    shipped = "cifar_transfer_deep.npz"

    pretrained: str | None = option(
        None, "file that `pretrain` wrote, in place of the one in experiments/pretrained"
    )


def split(config, layers, classes, rng):
    """(frozen layers, trained layers): everything but the softmax layer starts from the pre-trained
    network.
    """
    layers = layers[:-1] + [nn.Dense(UNITS, classes, rng=rng, name=layers[-1].name)]
    dense = [i for i, layer in enumerate(layers) if layer.kind == "dense"]
    if len(dense) < TRAINED[config.train_layers]:
        raise ParameterError(
            f"--train-layers {config.train_layers}: expected a network with "
            f"{TRAINED[config.train_layers]} dense layers, got one with {len(dense)} (pretrain "
            "--network deep, which `head` takes features of)"
        )
    first = dense[-TRAINED[config.train_layers]]
    return layers[:first], layers[first:]


def make_groups(config, body):
    """Clip groups: the softmax layer's C is twice the others', since its gradients are (Section
    5.3).
    """
    params = body.params
    softmax, _ = list(params)[-1]
    if config.baseline:
        return flat_group(params, math.inf, 0.0)
    if config.clipping == "flat":
        return flat_group(params, config.clip_norm, config.sigma)
    return per_layer_groups(
        params,
        {layer: config.clip_norm * (2 if layer == softmax else 1) for layer, _ in params},
        config.sigma,
    )


def make_inputs(config, dataset, frozen, backend, streams):
    """The trained layers' inputs for training (views) and for testing (centre crops)."""
    images, test = backend.asarray(dataset.x_train), backend.asarray(dataset.x_test)
    tested = frozen.predict(standardise_images(centre_crop(test, SIDE)), batch_size=500)
    if config.fresh_augmentation:
        return FreshViews(images, frozen, SIDE), tested
    with tqdm(
        total=images.shape[0],
        unit="image",
        desc="frozen features",
        file=sys.stderr,
        disable=True if config.quiet else None,
    ) as bar:
        fixed = Streams(
            0
        ).init  # the same views in every run: they are public, and looked at by no one
        file = feature_file(
            dataset.x_train, frozen, config.views, SIDE, backend.name, config.arithmetic
        )
        return CachedViews(
            images, frozen, config.views, SIDE, fixed, bar.update, file, config.multiplicity
        ), tested


def file_of(config):
    """The pre-trained file of the flags."""
    return Path(config.pretrained or PRETRAINED / config.shipped)


def history(config, pretrained, dataset):
    """(dataset whose notice names the pre-training, lines of the statement, inputs of Run, entries
    of result.json).
    """
    told = (
        f"pre-trained on {pretrained['images']:,} public images of {pretrained['classes']} "
        f"classes, {pretrained['test_accuracy']:.2%} there"
    )
    inputs = {"pretrained_sha256": hashlib.sha256(file_of(config).read_bytes()).hexdigest()}
    return (
        replace(dataset, notice="; ".join(filter(None, (dataset.notice, told)))),
        [f"all layers but the last: {told}; {pretrained['public_data']}"],
        inputs,
        {"pretrained": {key: pretrained[key] for key in PRETRAINED_BY}, **inputs},
    )


def run_head(config):
    """One dense layer on fixed features is trained privately."""
    ready = prepare(NAME, config, SMOKE_LOT, SMOKE_EPOCHS, load_colours)
    if ready is None:
        return None, "finished"
    *others, backend, streams, dataset = ready
    layers, pretrained = load_pretrained(file_of(config), streams.init)
    dataset, public, inputs, named = history(config, pretrained, dataset)
    frozen = taps(layers, TAPS, NORM).to(backend, config.arithmetic)
    (width,) = frozen.output_shape

    def rows(images, views=1):
        """Features of the centre crops, or their mean over views."""

        def compute():
            whole = backend.asarray(images)
            if views > 1:
                return mean_over_views(frozen, whole, SIDE).astype("float16")
            return np.concatenate(
                [
                    to_host(frozen(standardise_images(centre_crop(part, SIDE)))).astype("float16")
                    for part in np.split(whole, range(BATCH, len(whole), BATCH))
                ]
            )

        file = feature_file(images, frozen, views, SIDE, backend.name, config.arithmetic)
        return backend.asarray(
            kept_features(file, (len(images), width), compute)[0], dtype="float32"
        )

    tuning = {
        "chosen_on": "public images",
        "looked_at_training_data": False,
        "by": SEARCH,
        "space": SPACE,
    }

    def make():
        return (
            rows(dataset.x_train),
            rows(dataset.x_test),
            {"test_accuracy_over_views": rows(dataset.x_test, TEST_VIEWS)},
        )

    return train_linear(
        NAME,
        (*others, backend, streams, dataset),
        width,
        make,
        public,
        tuning,
        "head",
        {**named, "test_views": TEST_VIEWS},
        inputs=inputs,
    )


def run(config):
    """Private training on CIFAR-10 as the configuration's class says; returns (result, how it
    stopped).
    """
    return (run_head if isinstance(config, HeadConfig) else run_layers)(config)


def run_layers(config):
    """The dense layers that were pre-trained go on being trained, privately."""
    ready = prepare(NAME, config, SMOKE_LOT, SMOKE_EPOCHS, load_colours)
    if ready is None:
        return None, "finished"
    config, folder, backend, streams, dataset = ready
    whole, pretrained = load_pretrained(file_of(config), streams.init)
    frozen_layers, layers = split(config, whole, dataset.classes, streams.init)
    frozen = nn.Sequential(frozen_layers, (SIDE, SIDE, 3)).to(backend).use(config.arithmetic)
    body = nn.Sequential(layers, frozen.output_shape).to(backend)
    model = nn.Sequential(
        frozen_layers + layers, (SIDE, SIDE, 3), frozen=[layer.name for layer in frozen_layers]
    )
    watcher = MedianNorms() if config.watch_norms else None
    groups = make_groups(config, body)
    sanitizer = Sanitizer(groups, config.gradients, config.arithmetic, watcher=watcher)
    sampler = make_sampler(config, dataset.nominal_size)
    plan, budget = plan_and_budget(
        config, sampler, sanitizer, dataset.nominal_size, BASELINE_EPOCHS
    )
    decay = round(config.decay_epochs * dataset.nominal_size / config.lot_size)
    optimizer = config.make_optimizer(
        LinearDecay(config.learning_rate, config.final_learning_rate, decay)
    )
    dataset, public, inputs, named = history(config, pretrained, dataset)
    if config.multiplicity > 1:
        public.append(
            f"each example's gradient: the mean over {config.multiplicity} views of it, clipped as "
            "one"
        )
    run = Run(
        folder,
        Training(
            body,
            nn.SoftmaxCrossEntropy(),
            optimizer,
            streams,
            config.batch_size,
            config.multiplicity,
        ),
        Privacy(plan, budget, train_metrics=config.train_metrics),
        facts(NAME, config, dataset, "baseline" if config.baseline else "train", public, inputs),
    )
    run.open()
    views, tested = make_inputs(config, dataset, frozen, backend, streams)

    def about():
        logits = mean_over_views(
            lambda view: model.forward(view)[0], backend.asarray(dataset.x_test), SIDE
        )
        return {
            **named,
            "test_views": TEST_VIEWS,
            "test_accuracy_over_views": float((logits.argmax(axis=1) == dataset.y_test).mean()),
            **({"median_norms_not_private": watcher.medians} if watcher else {}),
        }

    labels, test_labels = backend.asarray(dataset.y_train), backend.asarray(dataset.y_test)
    return finish(run, run.train(views, labels, tested, test_labels, model=model, about=about))


def train(config, **changes):
    """The same with some changes; returns the exit status."""
    return exit_status(run(replace(config, **changes))[1])


def figure(command, config):
    """Run what a figure lacks, or the sentences of Section 5.3, and draw it; returns the exit
    status.
    """
    name, stem, made = FIGURES[command]
    config.make(NAME, made, stem, subcommand=command, figure=name)
    return 0


Config, CONFIGS = TrainConfig, {"head": HeadConfig}  # of `run`: by its subcommand
main = main_of(
    f"{NAME}.py",
    __doc__,
    {
        "pretrain": (PretrainConfig, pretrain),
        "head": (HeadConfig, train),
        "train": (TrainConfig, train),
        "baseline": (TrainConfig, partial(train, baseline=True)),
        **{command: (SweepFlags, partial(figure, command)) for command in FIGURES},
    },
)

if __name__ == "__main__":
    sys.exit(main())
