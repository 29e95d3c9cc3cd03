#!/usr/bin/env python3
"""Best accuracy on MNIST with synthetic digits: a private layer on features learned from them.

    python experiments/mnist_learned.py --target-epsilon 2.93

Networks that are trained without privacy on synthetic digits (`strokes_features.py`) see no private
image and cost no privacy. Their features join the scattering of `mnist_best.py`, inside the cosines
and beside them. The dense layer begins with the networks' own last layers and is trained as in
mnist_best.py. Every setting was chosen on synthetic digits other than those that the networks
learned from.
"""

import sys
from dataclasses import dataclass
from functools import partial

import common

common.start(__name__)

from common.config import digits_option
from common.job import command_line, load_digits
from common.linear import LinearFlags, Problem, fixed_features, linear_experiment

from features import learned

NAME = "mnist_learned"
# Chosen on other data (results/mnist_learned_settings.json); form: see features/learned.py,
# rule: see common/linear.py
FORM = {"inside": 0.7, "beside": 0.4, "prior": 1.0, "cosines": 1024, "networks": 4}
RULE = {"steps": 300, "sigma": 3.0, "share": 0.03, "travel": 4.0, "clip": 0.0015, "decay": 0.98}


@dataclass(frozen=True)
class Config(LinearFlags):
    """The flags."""

    default_target = 2.93
    rule = RULE

    dataset: str = digits_option()


def problem_of(ready):
    """The features of the networks and of scattering."""
    networks = learned.load(FORM["networks"])
    width = FORM["cosines"] + networks.features
    inputs = {"networks_sha256": learned.digests(FORM["networks"])}

    features = partial(learned.features, networks=networks)
    form = {**FORM, "scattering": learned.SCATTERING, **inputs}
    return Problem(
        width,
        fixed_features(NAME, form, features),
        public=(
            "scattering, normalisation within each image, random cosines: fixed",
            "networks trained on synthetic digits without privacy "
            "(experiments/strokes_features.py): features, and first weights",
        ),
        chosen_on="strokes",
        space="the authors, who made the synthetic digits and named the space that was searched, "
        "know how digits look, MNIST and its literature, which no epsilon covers",
        first=learned.first_weights(networks, FORM),
        inputs=inputs,
    )


run = linear_experiment(NAME, load_digits, problem_of)
main = command_line(NAME, Config, run, __doc__)

if __name__ == "__main__":
    sys.exit(main())
