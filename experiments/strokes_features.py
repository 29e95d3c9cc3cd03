#!/usr/bin/env python3
"""A small convolutional network, trained without privacy on drawn digits for its features: no image
of MNIST is opened.

    # a minute of one core
    python experiments/strokes_features.py --out experiments/pretrained/strokes_features-1.npz

Every epoch draws new digits, which stray from their skeletons from little to much; mnist_learned.py
takes networks of several seeds.
"""

import math
import sys
import time
from dataclasses import dataclass, replace
from functools import partial

from common.config import POSITIVE, Checked, command_of, option, parse

import numpy as np
from tqdm import tqdm

from features.pretraining import step
from minidp import nn
from minidp.commands.flags import user_errors
from minidp.data import strokes
from minidp.mechanism import LinearDecay
from minidp.run import save_model
from minidp.run.result import git_commit, versions
from minidp.streams import Streams
from minidp.train import Momentum, evaluate
from minidp.util.validate import count, seed_number

STRAYS = (0.7, 0.9, 1.1, 1.3, 1.6)  # of a chunk each, in turn
HIDDEN, BATCH, RATE, DECAY, SHIFT = 128, 128, 0.05, 5e-4, 2
FIRST_SPLIT = 2  # of strokes.draw; 0 and 1 are what experiments train and test on
TESTED = 40  # chunks


@dataclass(frozen=True)
class Config(Checked):
    """The flags."""

    out: str | None = option(None, "file to write: the network, with what it took")
    epochs: int = option(4, "passes over newly drawn digits", POSITIVE)
    images: int = option(60_000, "digits an epoch", partial(count, BATCH))
    seed: int = option(1, "of initial values, order and shifts", seed_number)
    smoke: bool = option(False, "one epoch of 1,000 digits, seconds")


def make_network(rng):
    """28 x 28 pixels in [0, 1] to ten logits; the last layer but one gives the features, normalised
    within each image.
    """
    he = nn.init.he_normal
    return nn.Sequential(
        [
            nn.Conv2D(1, 16, 5, rng=rng, stride=2, padding="valid", init=he),
            nn.ReLU(),  # 28 -> 12
            nn.Conv2D(16, 32, 3, rng=rng, padding="valid", init=he),
            nn.ReLU(),
            nn.MaxPool2D(2),  # 12 -> 10 -> 5
            nn.Flatten(),
            nn.Dense(800, HIDDEN, rng=rng, init=he),
            nn.ReLU(),
            nn.LayerNorm((HIDDEN,)),
            nn.Dense(HIDDEN, 10, rng=rng),
        ],
        (28, 28, 1),
    )


def to_float(images):
    """(B, 28, 28, 1) float32 in [0, 1]."""
    return images[..., None] / np.float32(255)


def draw(split, chunks, held_out=0):
    """Images and labels of a split's first chunks, STRAYS in turn."""
    drawn = zip(
        *(
            strokes.draw(split, chunk, STRAYS[chunk % len(STRAYS)], held_out)
            for chunk in range(chunks)
        )
    )
    images, labels = map(np.concatenate, drawn)
    return images, labels.astype(np.int64)


def train(config, held_out=0):
    """The network, trained on digits less the last `held_out` ways of writing each."""
    streams, loss = Streams(config.seed), nn.SoftmaxCrossEntropy()
    network = make_network(streams.init)
    chunks, steps = math.ceil(config.images / strokes.CHUNK), config.images // BATCH
    optimizer = Momentum(LinearDecay(RATE, RATE / 100, config.epochs * steps))
    with tqdm(
        total=config.epochs * steps, unit="batch", disable=None, file=sys.stderr, dynamic_ncols=True
    ) as bar:
        for epoch in range(config.epochs):
            (images, labels), draws = (
                draw(FIRST_SPLIT + epoch, chunks, held_out),
                streams.sampling(epoch),
            )
            order = draws.permutation(len(images))
            for i in range(steps):
                batch, number = order[i * BATCH : (i + 1) * BATCH], epoch * steps + i
                moved = np.roll(images[batch], draws.integers(-SHIFT, SHIFT + 1, 2), (1, 2))
                step(network, loss, optimizer, to_float(moved), labels[batch], number, None, DECAY)
                bar.update()
    return network


def main(argv=None):
    """Train and write the file."""
    with user_errors():
        typed = parse(Config, argv, prog="strokes_features.py", description=__doc__.splitlines()[0])
        config = replace(typed, epochs=1, images=1000) if typed.smoke else typed
        began = time.process_time()
        network = train(config)
        images, labels = draw(1, 4 if config.smoke else TESTED)
        accuracy = evaluate(network, nn.SoftmaxCrossEntropy(), to_float(images), labels).accuracy
        print(
            f"accuracy {accuracy:.2%} on {len(labels):,} drawn digits that it was not trained on\n"
            "quote: nothing private was trained on: no epsilon"
        )
        if config.out:
            save_model(
                config.out,
                network,
                {
                    "command": command_of("strokes_features.py", typed),
                    "strays": STRAYS,
                    "tested": len(labels),
                    "accuracy on drawn digits": accuracy,
                    "cpu_seconds": round(time.process_time() - began),
                    "versions": versions(),
                    "commit": git_commit(),
                },
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
