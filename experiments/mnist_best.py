#!/usr/bin/env python3
"""Best accuracy on MNIST without other data: one private layer on fixed features.

    python experiments/mnist_best.py --target-epsilon 2.93

Scattering coefficients (`features/scattering.py`), normalised within each image, and cosines of
them along random directions (`features/random_features.py`: a Gaussian kernel) are fixed before any
data is seen, so they cost no privacy. Abadi et al. 2016, Section 4, suggests fixed features; Tramer
and Boneh 2021, arXiv:2011.11660, use scattering. The features' mean is released with noise and
subtracted. Lots are large, and the clip norm is small. Epsilon is by the loss distribution. Every
setting follows from epsilon, delta and the number of training images by a rule that
was found on synthetic digits.
"""

import sys
from dataclasses import dataclass

import common

common.start(__name__)

from common.config import digits_option
from common.job import command_line, load_digits
from common.linear import LinearFlags, Problem, fixed_features, linear_experiment

from features.digits import features

NAME = "mnist_best"
# Chosen on other data (results/mnist_best_settings.json); form: see features/digits.py,
# rule: see common/linear.py
FORM = {"side": 24, "groups": 27, "width": 1.0, "cosines": 1024}
RULE = {"steps": 300, "sigma": 3.0, "share": 0.03, "travel": 4.0, "clip": 0.0015, "decay": 0.98}
WIDTH = FORM["cosines"]
PROBLEM = Problem(
    WIDTH,
    fixed_features(NAME, FORM, features),
    public=("scattering, normalisation within each image, random cosines: fixed",),
    chosen_on="strokes",
    space="the space that was searched was known from the literature and from earlier work "
    "on MNIST, which no epsilon covers",
)


@dataclass(frozen=True)
class Config(LinearFlags):
    """The flags."""

    default_target = 2.93  # the epsilon of the published results that ours stand beside
    rule = RULE

    dataset: str = digits_option()


run = linear_experiment(NAME, load_digits, lambda ready: PROBLEM)
main = command_line(NAME, Config, run, __doc__)

if __name__ == "__main__":
    sys.exit(main())
