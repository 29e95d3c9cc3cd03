"""Fixed features of colour images: scattering of each colour, and random cosines of its cells."""

import math

from common.linear import NORM, ROWS

import numpy as np

from minidp import nn
from minidp.backend import namespace_of

from .random_features import RandomFeatures
from .scattering import PATHS, Scattering

SIDE = 8  # cells of a side
CHANNELS = 3 * PATHS
SCATTERING = Scattering(32)
AT_ONCE = 250  # images whose cells' cosines are in memory


def scattered(images):
    """Scattering coefficients (B, 8, 8, CHANNELS) of uint8 images (B, 32, 32, 3): of brightness and
    two differences of colours, an orthonormal basis.
    """
    xp = namespace_of(images)
    red, green, blue = (images[..., colour] / xp.float32(255) for colour in range(3))
    colours = (
        (red + green + blue) / xp.float32(3**0.5),
        (red - blue) / xp.float32(2**0.5),
        (red - green - green + blue) / xp.float32(6**0.5),
    )
    return xp.concatenate([SCATTERING(each) for each in colours], axis=3)


def views(coefficients, form, backend):
    """Normalised coefficients (2, B, 8, 8, CHANNELS) of images and of their mirror images.

    coefficients       what `scattered` gives
    form["groups"]     groups of channels that are normalised together
    form["floor"]      added to the variance of each group
    """
    xp = backend.xp
    seen = coefficients.reshape(-1, SIDE, SIDE, 3, PATHS)
    mirrored = xp.stack([SCATTERING.mirrored(seen[..., i, :]) for i in range(3)], axis=3)
    norm = nn.GroupNorm(CHANNELS, form["groups"], epsilon=form["floor"])
    norm = nn.Sequential([norm], (SIDE, SIDE, CHANNELS)).to(backend)
    both = (each.reshape(-1, SIDE, SIDE, CHANNELS) for each in (seen, mirrored))
    return xp.stack([norm.predict(each) for each in both])


def features(images, backend, form):
    """Yield features (ROWS, parts^2 cosines) of uint8 images (N, 32, 32, 3).

    Their norm is about NORM at most. They are cosines of each cell's channels, averaged over each
    of parts x parts parts of the image and over its views: where in its part something is seen
    makes no difference. Source: Mairal et al. 2014, "Convolutional kernel networks".

    form["width"]     of the Gaussian kernel, in norms of a cell's channels
    form["cosines"]   of each cell
    form["parts"]     of a side of the image
    For the others see `views`.
    """
    number, parts = form["cosines"], form["parts"]
    width = form["width"] * math.sqrt(CHANNELS)
    made = RandomFeatures(CHANNELS, number, width)
    cells_of_a_part = SIDE // parts

    def cosines(rows):
        cells = made(rows.reshape(-1, CHANNELS))
        cells = cells.reshape(-1, parts, cells_of_a_part, parts, cells_of_a_part, number)
        return cells.mean(axis=(2, 4)).reshape(len(rows), -1) * np.float32(NORM / parts)

    for start in range(0, images.shape[0], ROWS):
        part = backend.asarray(images[start : start + ROWS])
        seen = views(scattered(part), form, backend)
        found = [
            sum(cosines(rows) for rows in seen[:, at : at + AT_ONCE]) / len(seen)
            for at in range(0, seen.shape[1], AT_ONCE)
        ]
        yield backend.xp.concatenate(found)
