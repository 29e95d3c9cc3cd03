"""Fixed features of digits: scattering, normalised within each image, and random cosines of it."""

import math

from common.linear import NORM, ROWS

import numpy as np

from minidp import nn

from .random_features import RandomFeatures
from .scattering import PATHS, Scattering


def normalised(images, backend, form):
    """Yield (ROWS, D) float32: scattering coefficients of uint8 images, normalised within each.

    form["side"]     pixels of a side in the middle of an image that are looked at
    form["groups"]   groups of channels that are normalised together
    """
    side = form["side"]
    cut = (images.shape[1] - side) // 2
    scattering = Scattering(side)
    layers = [nn.GroupNorm(PATHS, form["groups"]), nn.Flatten()]
    norm = nn.Sequential(layers, scattering.output_shape).to(backend)
    for start in range(0, images.shape[0], ROWS):
        part = images[start : start + ROWS, cut : cut + side, cut : cut + side]
        pixels = backend.asarray(np.ascontiguousarray(part)) / np.float32(255)
        yield norm.predict(scattering(pixels))


def inputs(form):
    """The number of coefficients of an image."""
    return PATHS * (form["side"] // 4) ** 2


def cosines(inputs, form):
    """A function from normalised coefficients (B, inputs) to features (B, D) of about norm NORM.

    form["cosines"]   their number D
    form["width"]     of the Gaussian kernel, in norms of an image's coefficients
    """
    width = form["width"] * math.sqrt(inputs)
    made = RandomFeatures(inputs, form["cosines"], width)

    def take(rows):
        return made(rows) * np.float32(NORM)

    return take


def features(images, backend, form):
    """Yield features (ROWS, D) of uint8 images; form: see `normalised` and `cosines`."""
    take = cosines(inputs(form), form)
    for rows in normalised(images, backend, form):
        yield take(rows)
