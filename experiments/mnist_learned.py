#!/usr/bin/env python3
"""What a budget buys on MNIST with drawn digits beside: a private layer on features that networks
learned from them.

    python experiments/mnist_learned.py --target-epsilon 2.93

Networks trained without privacy on digits drawn by a program (`strokes_features.py`) saw no private
image and cost no privacy. Their features join the scattering of `mnist_best.py`, inside the cosines
and beside them. The dense layer begins with the networks' own last layers and is trained as in
mnist_best.py. Every setting was chosen on drawn digits that differ from those that the networks
learned from (`mnist_learned_settings.py`).
"""

import math
import sys
from dataclasses import dataclass
from functools import lru_cache

from common.config import DIGITS, option
from common.job import command_line, load_digits, prepare
from common.linear import NORM, LinearFlags, train_linear
from common.views import feature_path, kept_features
from features import learned
import mnist_best
import numpy as np
from tqdm import tqdm

from minidp.arithmetic import EXACT, ORDINARY
from minidp.backend import Backend, namespace_of, to_host

NAME = "mnist_learned"
# What mnist_learned_settings.py chose. inside: weight of the learned features in the cosines,
# scattering's being 1; beside: part of the norm that is the learned features themselves; prior:
# what the networks' last layers are multiplied by at first
FORM = {"inside": 0.7, "beside": 0.4, "prior": 1.0, "cosines": 1024, "networks": 4}
RULE = {**mnist_best.RULE, "travel": 4.0}
SEARCH = "experiments/mnist_learned_settings.py"
SPACE = (
    "the drawn digits were made, and the space that was searched was named, by people who know how "
    "digits look, MNIST and its literature, which no epsilon covers"
)
LAYOUT = 1  # of a feature file


@dataclass(frozen=True)
class Config(LinearFlags):
    """The flags."""

    default_target = 2.93
    rule = RULE

    dataset: str = option("auto", DIGITS, choices=("auto", "mnist", "strokes"))


def coefficients(images, networks, backend, arithmetic=ORDINARY):
    """Yield (scattering (ROWS, S), learned features (ROWS, H)) of uint8 images, of about norm
    sqrt(S) and sqrt(H).
    """
    for start, rows in enumerate(
        mnist_best.normalised(images, backend, mnist_best.FORM, arithmetic)
    ):
        yield rows, networks(images[start * mnist_best.ROWS :][: len(rows)], backend)


def joined(scattered, hidden, form, arithmetic=ORDINARY):
    """A function of both coefficients, S and H numbers, that gives features (B, D) of about norm
    NORM.

    Cosines of scattering and `inside` times the learned features; then these themselves, `beside`
    of the norm.
    """
    inside, beside, both = form["inside"], np.float32(form["beside"]), scattered + hidden
    ratios = np.float32(
        [math.sqrt(both / scattered), inside * math.sqrt(both / hidden)]
    ) / np.float32(math.hypot(1, inside))
    weights, cosines = (
        np.repeat(ratios, (scattered, hidden)),
        mnist_best.cosines(both, {"width": 1.0, **form}, arithmetic),
    )

    def take(x, h):
        xp = namespace_of(x, h)
        z = cosines(xp.concatenate([x, h], axis=1) * xp.asarray(weights))
        return xp.concatenate(
            [z * np.sqrt(1 - beside**2), h * (beside * np.float32(NORM / math.sqrt(hidden)))],
            axis=1,
        )

    return take


def first_weights(networks, form):
    """(D, K) and (K,): the networks' mean logits, times `prior`, as weights of the joined
    features.
    """
    scale = form["prior"] * math.sqrt(networks.features) / (form["beside"] * NORM)
    return np.pad(
        networks.W * np.float32(scale), ((form["cosines"], 0), (0, 0))
    ), networks.b * np.float32(form["prior"])


def features(images, networks, backend, config):
    """(N, D) float16, on the host, of uint8 images; kept in the cache for the next run."""
    arithmetic = config.arithmetic
    backend = Backend.numpy() if arithmetic == EXACT else backend
    about = repr(
        (
            NAME,
            LAYOUT,
            mnist_best.LAYOUT,
            mnist_best.FORM,
            FORM,
            NORM,
            learned.digests(FORM["networks"]),
            images.shape,
            backend.name,
            arithmetic,
        )
    )

    def compute():
        bar = tqdm(
            coefficients(images, networks, backend, arithmetic),
            total=-(-len(images) // mnist_best.ROWS),
            desc="features",
            unit="thousand images",
            file=sys.stderr,
            disable=True if config.quiet else None,
        )
        take = lru_cache(1)(lambda scattered, hidden: joined(scattered, hidden, FORM, arithmetic))
        return np.concatenate(
            [to_host(take(x.shape[1], h.shape[1])(x, h)).astype("float16") for x, h in bar]
        )

    shape = images.shape[0], FORM["cosines"] + networks.features
    return kept_features(
        feature_path(about.encode(), np.ascontiguousarray(images)), shape, compute
    )[0]


def run(config):
    """Everything from data to files; returns (result, how it stopped)."""
    ready = prepare(
        NAME,
        config,
        mnist_best.SMOKE_LOT,
        mnist_best.SMOKE_EPOCHS,
        lambda config: load_digits(config, mnist_best.SMOKE_SIZES),
    )
    if ready is None:
        return None, "finished"
    _, _, backend, _, dataset = ready
    networks = learned.load(FORM["networks"], config.arithmetic)
    about = {"networks_sha256": learned.digests(FORM["networks"])}
    first = first_weights(networks, FORM)

    def inputs():
        rows, tested = (
            backend.asarray(features(images, networks, backend, config), dtype="float32")
            for images in (dataset.x_train, dataset.x_test)
        )
        guessed = (to_host(tested) @ first[0] + first[1]).argmax(axis=1)
        about["accuracy_before_training"] = float((guessed == dataset.y_test).mean())
        return rows, tested, {}

    tuning = {
        "chosen_on": "strokes",
        "looked_at_training_data": dataset.name != "mnist",
        "by": SEARCH,
        "space": SPACE,
    }
    public = [
        "scattering, normalisation within each image, random cosines: fixed",
        "networks trained on drawn digits without privacy (experiments/strokes_features.py): "
        "features, and first weights",
    ]
    return train_linear(
        NAME,
        ready,
        FORM["cosines"] + networks.features,
        inputs,
        public,
        tuning,
        about=about,
        first=first,
        inputs=dict(about),
    )


main = command_line(NAME, Config, run, __doc__)

if __name__ == "__main__":
    sys.exit(main())
