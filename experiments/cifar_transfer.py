#!/usr/bin/env python3
"""CIFAR-10 with convolutions learned on public data (Abadi et al. 2016, Section 5.3, Figure 6).

    python experiments/cifar_transfer.py pretrain --public-data DIR --out DIR
    python experiments/cifar_transfer.py train --data-dir DIR --target-epsilon 2
    python experiments/cifar_transfer.py baseline --data-dir DIR
"""
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common.config import option, parse, to_json
from common.public import train_public
from common.report import git_commit, user_errors, versions, write_json
from common.training import stop_on_interrupt

from minidp import nn
from minidp.backend import Backend
from minidp.data import centre_crop, load_public, standardise_images
from minidp.errors import ParameterError
from minidp.mechanism import LinearDecay
from minidp.streams import Streams
from minidp.train import OPTIMIZERS, save_model
from minidp.validate import count, non_negative_finite

NAME = "cifar_transfer"
SIDE, CHANNELS, UNITS = 24, 64, 384  # Section 5.3: 24 x 24 crops, 64 channels, 384 units
SMOKE_IMAGES = 500


@dataclass(frozen=True)
class PretrainConfig:
    """Flags of `pretrain`: ordinary training on public images."""

    public_data: str | None = option(None, "folder with train.bin and test.bin in CIFAR-100's record layout")
    out: str | None = option(None, "folder for pretrained.npz and what it takes to go on")
    epochs: int = option(20, "passes over the data")
    batch_size: int = option(128, "examples per step")
    optimizer: str = option("adam", "of the mean gradient", choices=tuple(OPTIMIZERS))
    learning_rate: float = option(1e-3, "at the first step, falling linearly to a hundredth at the last")
    seed: int = option(0, "of initial values, order and augmentation (the data is public)")
    device: str = option("auto", "where to compute", choices=("auto", "cpu", "gpu"))
    quiet: bool = option(False, "no progress bar")
    smoke: bool = option(False, "a few hundred images, seconds")

    def __post_init__(self):
        for name in ("public_data", "out"):
            if getattr(self, name) is None:
                raise ParameterError(f"--{name.replace('_', '-')} DIR is needed")
        count(1, epochs=self.epochs, batch_size=self.batch_size)
        count(seed=self.seed)
        non_negative_finite(learning_rate=self.learning_rate)


def convolutions(rng):
    """Two 5 x 5 convolutions of 64 channels, each with ReLU and 2 x 2 max pooling: 24 -> 12 -> 6."""
    conv = lambda inputs: nn.Conv2D(inputs, CHANNELS, 5, rng=rng, padding="same", init=nn.init.he_normal)
    return [conv(3), nn.ReLU(), nn.MaxPool2D(2), conv(CHANNELS), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten()]


def dense_layers(rng, classes):
    """Two dense layers of 384 units and the softmax layer."""
    dense = lambda inputs, outputs: nn.Dense(inputs, outputs, rng=rng, init=nn.init.he_normal)
    return [dense((SIDE // 4) ** 2 * CHANNELS, UNITS), nn.ReLU(), dense(UNITS, UNITS), nn.ReLU(),
            dense(UNITS, classes)]


def pretrain(config):
    """Train the whole network on the public set; returns the exit status."""
    dataset = load_public(config.public_data)
    backend, streams, out = Backend.pick(config.device), Streams(config.seed), Path(config.out)
    size = SMOKE_IMAGES if config.smoke else None
    x, y = dataset.x_train[:size], dataset.y_train[:size]
    x_test, y_test = dataset.x_test[:size], dataset.y_test[:size]
    network = nn.Sequential(convolutions(streams.init) + dense_layers(streams.init, dataset.classes), (SIDE, SIDE, 3))
    network.to(backend)
    steps = config.epochs * math.ceil(x.shape[0] / config.batch_size)
    optimizer = OPTIMIZERS[config.optimizer](LinearDecay(config.learning_rate, config.learning_rate / 100, steps))
    out.mkdir(parents=True, exist_ok=True)
    fixed = {key: value for key, value in to_json(config).items() if key not in ("out", "public_data", "quiet")}
    with stop_on_interrupt() as stop:
        history, done = train_public(
            out, fixed, network, optimizer, streams, backend.asarray(x), backend.asarray(y),
            standardise_images(centre_crop(backend.asarray(x_test), SIDE)), backend.asarray(y_test),
            epochs=config.epochs, batch_size=config.batch_size, quiet=config.quiet, should_stop=stop)
    if not done:
        print(f"interrupted after epoch {len(history)}; the same command goes on from there", file=sys.stderr)
        return 130
    about = {"experiment": NAME, "config": fixed, "public_data": dataset.name, "classes": dataset.classes,
             "images": int(x.shape[0]), "test_accuracy": history[-1]["test_accuracy"], "history": history,
             "seconds": sum(row["seconds"] for row in history), "versions": versions(), "commit": git_commit()}
    save_model(out / "pretrained.npz", network, about)
    write_json(out / "pretrain.json", about)
    print(f"accuracy {about['test_accuracy']:.2%} on {dataset.classes} classes after {config.epochs} epochs; "
          f"wrote pretrained.npz and pretrain.json into {out}")
    return 0


COMMANDS = {"pretrain": (PretrainConfig, pretrain)}


def main(argv=None):
    """The command line; returns the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if not argv or argv[0] not in COMMANDS:
        print(f"error: expected one of {', '.join(COMMANDS)} first; each takes --help", file=sys.stderr)
        return 2
    config, command = COMMANDS[argv[0]]
    with user_errors():
        return command(parse(config, argv[1:], prog=f"{NAME}.py {argv[0]}", description=__doc__.splitlines()[0]))


if __name__ == "__main__":
    sys.exit(main())
