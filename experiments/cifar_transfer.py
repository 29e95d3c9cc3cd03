#!/usr/bin/env python3
"""CIFAR-10 with convolutions learned on public data (Abadi et al. 2016, Section 5.3, Figure 6).

python experiments/cifar_transfer.py pretrain --public-data DIR --out DIR
# one layer on fixed features
python experiments/cifar_transfer.py head --data-dir DIR --target-epsilon 2
python experiments/cifar_transfer.py train --data-dir DIR --target-epsilon 2   # the paper's way
python experiments/cifar_transfer.py figure --data-dir DIR --seeds 3      # also: sentences
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
    main_of,
    option,
    pretrained_option,
)
from common.figures import Figure, claims_figure, gain, levels
from common.job import exit_status, experiment, load_colours, within_budget
from common.linear import NORM, LinearFlags, Problem, fixed_features, train_linear
from common.plots import draw_noise_levels
from common.sweep_flags import SweepFlags
from common.sweeps import Point
from common.watching import MedianNorms

from features.frozen import Taps, transferred
from features.pretraining import NAME, SIDE, UNITS, PretrainConfig, pretrain
from features.views import BATCH, TEST_VIEWS, make_inputs, mean_over_views, of_crops
from minidp import nn
from minidp.errors import ParameterError
from minidp.mechanism import Plan, Sanitizer, flat_group, per_layer_groups
from minidp.mechanism.samplers import make_sampler
from minidp.util.validate import count, non_negative_finite, positive_finite

FEW = 50, 1  # lot size and epochs of --smoke
BASELINE_EPOCHS = 30
# Chosen on other data (results/cifar_transfer_settings.json): from how many layers `head` takes
# features; the rule (see common/linear.py)
TAPS = 3
RULE = {"steps": 100, "sigma": 3.0, "share": 0.03, "travel": 1.0, "clip": 0.121, "decay": 0.9}
SPACE = (
    "the space that was searched was known from the literature and from earlier work on CIFAR-10, "
    "which no epsilon covers"
)
PAPER = {2: 0.67, 4: 0.70, 8: 0.73}  # its accuracy at each epsilon of Figure 6
TRAINED = {"softmax": 1, "top": 2, "both": 3}  # of the last three dense layers


@dataclass(frozen=True)
class TrainConfig(DecayFlags):
    """Flags of `train`. Section 5.3."""

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
    clipping: str = clipping_option("per-layer")
    train_layers: str = option(
        "both",
        "trained layers; softmax: the last; top: one of 384 units too; both: two of 384 units too",
        choices=tuple(TRAINED),
    )
    pretrained: str | None = pretrained_option()
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
        False, "record the median of each clip group's norms before clipping (not private)"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.multiplicity > self.views + 1:
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

    pretrained: str | None = pretrained_option()


def split(config, layers, classes, rng):
    """(frozen layers, trained layers): everything but the softmax layer starts from the pre-trained
    network.
    """
    layers = [*layers[:-1], nn.Dense(UNITS, classes, rng=rng, name=layers[-1].name)]
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


def train_head(ready):
    """Train one dense layer on fixed features privately; returns how it stopped."""
    layers, ready, public, inputs, about = transferred(ready)
    (width,) = Taps(layers, TAPS, NORM).output_shape

    def rows(name, of_images):
        def features(images, backend, form):
            frozen = Taps(layers, TAPS, NORM).to(backend)
            for start in range(0, len(images), BATCH):
                yield of_images(frozen, backend.asarray(images[start : start + BATCH]), SIDE)

        return fixed_features(NAME, {"of": name, "taps": TAPS, **inputs}, features)

    problem = Problem(
        width,
        rows("crops", of_crops),
        public,
        "public images",
        SPACE,
        inputs=inputs,
        about={**about, "test_views": TEST_VIEWS},
        others={"test_accuracy_over_views": rows("views", mean_over_views)},
        command="head",
    )
    return train_linear(problem, ready)


def train_layers(ready):
    """Train the pre-trained dense layers further, privately; returns how it stopped."""
    whole, ready, public, inputs, named = transferred(ready)
    config, backend, dataset = ready.config, ready.backend, ready.dataset
    frozen_layers, layers = split(config, whole, dataset.classes, ready.streams.init)
    frozen = nn.Sequential(frozen_layers, (SIDE, SIDE, 3)).to(backend)
    body = nn.Sequential(layers, frozen.output_shape)
    model = nn.Sequential(
        frozen_layers + layers, (SIDE, SIDE, 3), frozen=[layer.name for layer in frozen_layers]
    )
    watcher = MedianNorms() if config.watch_norms else None
    groups = make_groups(config, body)
    sanitizer = Sanitizer(groups, config.gradients, watcher=watcher)
    size = dataset.nominal_size
    if config.multiplicity > 1:
        public.append(
            f"each example's gradient: the mean over {config.multiplicity} views of it, clipped as "
            "one"
        )
    sampler = make_sampler(config.sampler, size, config.lot_size)
    plan = Plan(sampler, sanitizer, 1, config.lot_size)
    plan, budget = within_budget(config, plan, size, BASELINE_EPOCHS)
    run = ready.run(
        body,
        config.falling_optimizer(size),
        plan,
        budget,
        multiplicity=config.multiplicity,
        command="train",
        public=public,
        inputs=inputs,
    )
    run.open()
    views, tested = make_inputs(ready, frozen, inputs)

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

    return ready.train(run, views, tested, model, about)


def run(config):
    """Train privately on CIFAR-10, by the configuration's class; returns how it stopped."""
    train = train_head if isinstance(config, HeadConfig) else train_layers
    return experiment(NAME, load_colours, train, FEW)(config)


def train(config):
    """The same; returns the exit status."""
    return exit_status(run(config))


COMMON = "--accountant pld --clipping flat --clip-norm 1 --optimizer momentum --average 0.98"
SMOKE = "--smoke --lot-size 50 --epochs 1"


def found(lot, sigma, rate, falling=None):
    """Flags of about 600 lots, at a constant rate or with the flags `falling`."""
    falling = falling or f"--final-learning-rate {rate}"
    return f"{COMMON} --lot-size {lot} --noise-multiplier {sigma} --learning-rate {rate} {falling}"


RUNS = {  # name: (command, target epsilon or None, flags)
    **{f"eps{epsilon}": ("head", epsilon, "") for epsilon in PAPER},  # every setting follows
    "finetuned2": ("train", 2, found(4000, 4.04, 0.17)),
    "finetuned4": (
        "train",
        4,
        found(4000, 2.29, 0.45, "--final-learning-rate 0.11 --decay-epochs 48 --multiplicity 4"),
    ),
    "finetuned8": (
        "train",
        8,
        found(6000, 1.94, 0.6, "--final-learning-rate 0.15 --decay-epochs 72 --multiplicity 4"),
    ),
    "lot4000": ("train", 4, found(4000, 2.29, 0.3)),
    "lot600": ("train", 4, f"{found(600, 1.1, 0.1)} --no-train-metrics"),
    # else the paper's: lots of 2,000, sigma 6, per-layer clipping
    "watched-norms": ("train", None, "--watch-norms --steps 100"),
    "baseline": (
        "train",
        None,
        "--baseline --epochs 25 --lot-size 250 --optimizer momentum --learning-rate 0.02 "
        "--final-learning-rate 0.0002 --decay-epochs 24 --average 0.998",
    ),
}


def full(name):
    """The name of a point, and so of its files."""
    return f"{NAME}-{name}"


def points(names, smoke):
    """The points of some of RUNS."""
    made = []
    for name in names:
        command, epsilon, flags = RUNS[name]
        if smoke:
            kept = [flag for flag in ("--baseline", "--watch-norms") if flag in flags]
            views = "" if command == "head" else "--views 1"
            flags = " ".join([SMOKE, views, *kept])
        elif epsilon is not None:
            flags += f" --target-epsilon {epsilon}"
        made.append(Point(full(name), flags, NAME, command))
    return made


def level_figure(stem):
    """Figure 6: accuracy against epochs at its epsilons."""
    about = {
        f"{stem}{epsilon}": (full(f"{stem}{epsilon}"), {"target_epsilon": epsilon, "paper": paper})
        for epsilon, paper in PAPER.items()
    }
    draw = partial(draw_noise_levels, limits=(0.4, 0.85))
    return Figure(partial(points, about), lambda results, smoke: levels(about, results), draw)


def softmax_norm(of):
    """The median norm of the softmax layer's gradients over the mean of the other layers'."""
    first, second, softmax = (of.median_norm(full("watched-norms"), f"dense{i}") for i in (1, 2, 3))
    return softmax / ((first + second) / 2)


CLAIMS = {
    "lots_of_600_cost": gain(full("lot4000"), full("lot600")),
    "softmax_norm_over_others_not_private": softmax_norm,
    "privacy_costs": gain(full("baseline"), full("finetuned8")),
}
OTHERS = ("finetuned8", "lot4000", "lot600", "watched-norms", "baseline")
FIGURES = {  # command: (name in the summary, stem of its files, figure)
    "figure": ("6", "figure_6", level_figure("eps")),
    "finetuned": ("6, dense layers fine-tuned", "figure_6-finetuned", level_figure("finetuned")),
    "sentences": (
        "sentences",
        f"{NAME}-sentences",
        claims_figure(CLAIMS, partial(points, OTHERS), section="5.3"),
    ),
}


def figure(command, config):
    """Make the missing runs of a figure, or of the claims in Section 5.3, and draw it; returns the
    exit status.
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
        **{command: (SweepFlags, partial(figure, command)) for command in FIGURES},
    },
)

if __name__ == "__main__":
    sys.exit(main())
