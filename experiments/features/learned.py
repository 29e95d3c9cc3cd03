"""Features that networks learned from drawn digits: strokes_features.py trains them, without any
private data.
"""

import hashlib
from pathlib import Path

import numpy as np

from minidp import load_model, nn
from minidp.arithmetic import ORDINARY

FILES = [
    Path(__file__).parents[1] / "pretrained" / f"strokes_features-{seed}.npz"
    for seed in (1, 2, 3, 4)
]


class Learned:
    """The last hidden layers of networks side by side: H numbers, of norm about sqrt(H). W (H, K)
    and b give the mean logits.
    """

    def __init__(self, networks, arithmetic=ORDINARY):
        """networks: nn.Sequential each, which end in a norm over a vector and a dense layer."""
        self.bodies = [
            nn.Sequential(network.layers[:-1], network.input_shape).use(arithmetic)
            for network in networks
        ]
        last = [network.layers[-1].params for network in networks]
        self.W, self.b = (
            np.concatenate([p["W"] for p in last]) / len(last),
            np.mean([p["b"] for p in last], axis=0),
        )
        self.features = len(self.W)

    def __call__(self, images, backend):
        """(B, H) float32 of uint8 images (B, 28, 28)."""
        x = backend.asarray(images[..., None]) / np.float32(255)
        return backend.xp.concatenate([body.to(backend).predict(x) for body in self.bodies], axis=1)


def load(number, arithmetic=ORDINARY):
    """The first `number` of the networks that strokes_features.py wrote."""
    return Learned([load_model(file).network for file in FILES[:number]], arithmetic)


def digests(number):
    """SHA-256 of their files, by which a resumed run knows them."""
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in FILES[:number]]
