#!/usr/bin/env python3
"""Train a small convolutional network on synthetic digits, for its features. It opens no image of
MNIST.

    # a minute of one core
    python experiments/strokes_features.py --out experiments/pretrained/strokes_features-1.npz

There is no privacy to protect. Every epoch has new digits, some close to their skeletons and some
far from them. mnist_learned.py takes networks of several seeds.
"""

import sys
import time
from dataclasses import dataclass

import common

common.start(__name__)

from common.config import Checked, command_of, main_of, option

from features.learned import STRAYS, draw, to_float, train
from minidp import nn
from minidp.run import save_model
from minidp.run.versions import git_commit, versions
from minidp.train import evaluate
from minidp.util.validate import seed_number

# epochs, each of so many new digits, and chunks to test on
WHOLE, SMOKE = (4, 60_000, 40), (1, 1000, 4)


@dataclass(frozen=True)
class Config(Checked):
    """The flags."""

    out: str | None = option(None, "file to write: the network, with its settings and accuracy")
    seed: int = option(1, "seed of initial values, order and shifts", seed_number)
    smoke: bool = option(False, "test one epoch of 1,000 digits, in seconds")


def make(typed):
    """Train and write the file; returns the exit status."""
    began = time.process_time()
    epochs, size, tested = SMOKE if typed.smoke else WHOLE
    network = train(typed.seed, epochs, size)
    images, labels = draw(1, tested)
    accuracy = evaluate(network, nn.SoftmaxCrossEntropy(), to_float(images), labels).accuracy
    print(
        f"accuracy {accuracy:.2%} on {len(labels):,} synthetic digits that it was not trained on\n"
        "quote: nothing private was trained on: no epsilon"
    )
    if typed.out:
        about = {
            "command": command_of("strokes_features.py", typed),
            "strays": STRAYS,
            "tested": len(labels),
            "accuracy on synthetic digits": accuracy,
            "cpu_seconds": round(time.process_time() - began),
            "versions": versions(),
            "commit": git_commit(),
        }
        save_model(typed.out, network, about)
    return 0


main = main_of("strokes_features.py", __doc__, {"": (Config, make)})

if __name__ == "__main__":
    sys.exit(main())
