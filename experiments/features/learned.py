"""Networks that strokes_features.py trains on synthetic digits, without private data, and their
features.
"""

import hashlib
import math
import sys
from pathlib import Path

from common.linear import NORM, ROWS

import numpy as np
from tqdm import tqdm

from datasets import strokes
from minidp import load_model, nn
from minidp.mechanism import LinearDecay
from minidp.streams import Streams
from minidp.train import Momentum

from .digits import cosines, inputs, normalised
from .pretraining import step

FILES = [
    Path(__file__).parents[1] / "pretrained" / f"strokes_features-{seed}.npz"
    for seed in (1, 2, 3, 4)
]
SCATTERING = {"side": 24, "groups": 27}  # as in mnist_best.py
STRAYS = (0.7, 0.9, 1.1, 1.3, 1.6)  # of a chunk each, in turn
HIDDEN, BATCH, RATE, SHIFT = 128, 128, 0.05, 2
FIRST_SPLIT = 2  # of strokes.draw; 0 and 1 are what experiments train and test on


def make_network(rng):
    """28 x 28 pixels in [0, 1] to ten logits; the last layer but one gives the features, normalised
    within each image.
    """
    he = {"rng": rng, "init": nn.init.he_normal}
    return nn.Sequential(
        [
            nn.Conv2D(1, 16, 5, stride=2, padding="valid", **he),
            nn.ReLU(),  # 28 -> 12
            nn.Conv2D(16, 32, 3, padding="valid", **he),
            nn.ReLU(),
            nn.MaxPool2D(2),  # 12 -> 10 -> 5
            nn.Flatten(),
            nn.Dense(800, HIDDEN, **he),
            nn.ReLU(),
            nn.LayerNorm((HIDDEN,)),
            nn.Dense(HIDDEN, 10, rng=rng),
        ],
        (28, 28, 1),
    )


def to_float(images):
    """(B, 28, 28, 1) float32 in [0, 1]."""
    return images[..., None] / np.float32(255)


def draw(split, chunks):
    """Images and labels of a split's first chunks, STRAYS in turn."""
    drawn = [strokes.draw(split, chunk, STRAYS[chunk % len(STRAYS)]) for chunk in range(chunks)]
    images, labels = map(np.concatenate, zip(*drawn))
    return images, labels.astype(np.int64)


def train(seed, epochs, size):
    """The network, trained on `size` new digits an epoch."""
    streams, loss = Streams(seed), nn.SoftmaxCrossEntropy()
    network = make_network(streams.init)
    steps = size // BATCH
    optimizer = Momentum(LinearDecay(RATE, RATE / 100, epochs * steps))
    for epoch in range(epochs):
        images, labels = draw(FIRST_SPLIT + epoch, math.ceil(size / strokes.CHUNK))
        draws = streams.sampling(epoch)
        order = draws.permutation(len(images))
        for i in tqdm(range(steps), f"epoch {epoch + 1}", disable=None, file=sys.stderr):
            batch, number = order[i * BATCH : (i + 1) * BATCH], epoch * steps + i
            moved = np.roll(images[batch], draws.integers(-SHIFT, SHIFT + 1, 2), (1, 2))
            step(network, loss, optimizer, to_float(moved), labels[batch], number, None)
    return network


class Learned:
    """The last hidden layers of networks side by side: H numbers, of norm about sqrt(H).

    W (H, K) and b give the mean logits.
    """

    def __init__(self, networks):
        """networks: nn.Sequential each, which end in a norm over a vector and a dense layer."""
        self.bodies = [
            nn.Sequential(network.layers[:-1], network.input_shape) for network in networks
        ]
        last = [network.layers[-1].params for network in networks]
        self.W = np.concatenate([each["W"] for each in last]) / len(last)
        self.b = np.mean([each["b"] for each in last], axis=0)
        self.features = len(self.W)

    def __call__(self, images, backend):
        """(B, H) float32 of uint8 images (B, 28, 28)."""
        x = to_float(backend.asarray(images))
        return backend.xp.concatenate([body.to(backend).predict(x) for body in self.bodies], axis=1)


def load(number):
    """The first `number` of the networks that strokes_features.py wrote."""
    return Learned([load_model(file).network for file in FILES[:number]])


def digests(number):
    """SHA-256 of their files, by which a resumed run knows them."""
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in FILES[:number]]


def features(images, backend, form, *, networks):
    """Yield features (ROWS, D) of uint8 images: cosines of scattering and of what the networks
    learned, then this itself; of about norm NORM.

    form["inside"]   weight of the learned features in the cosines, scattering's being 1
    form["beside"]   part of the norm that is the learned features themselves
    """
    scattered, hidden, inside = inputs(SCATTERING), networks.features, form["inside"]
    both, beside = scattered + hidden, np.float32(form["beside"])
    parts = np.float32([math.sqrt(both / scattered), inside * math.sqrt(both / hidden)])
    weights = np.repeat(parts / np.float32(math.hypot(1, inside)), (scattered, hidden))
    angles, xp = cosines(both, {"width": 1.0, **form}), backend.xp
    for part, x in enumerate(normalised(images, backend, SCATTERING)):
        h = networks(images[part * ROWS :][: len(x)], backend)
        z = angles(xp.concatenate([x, h], axis=1) * xp.asarray(weights))
        own = h * (beside * np.float32(NORM / math.sqrt(hidden)))
        yield xp.concatenate([z * np.sqrt(1 - beside**2), own], axis=1)


def first_weights(networks, form):
    """(D, K) and (K,): the networks' mean logits as weights of the joined features.

    form["prior"]   what they are multiplied by
    """
    scale = form["prior"] * math.sqrt(networks.features) / (form["beside"] * NORM)
    weights = np.pad(networks.W * np.float32(scale), ((form["cosines"], 0), (0, 0)))
    return weights, networks.b * np.float32(form["prior"])
