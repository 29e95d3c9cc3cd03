"""Distorted views of colour images: random crop, left-right flip, brightness and contrast, then
standardisation.

Source: Abadi et al. 2016, Section 5.3, which refers to TensorFlow's CIFAR-10 tutorial for details:
brightness moves by up to 63 (of 255), contrast is multiplied by 0.2 to 1.8 about each channel's
mean, without clipping, and each image is then standardised. (Standardising cancels the brightness
and most of the contrast.)

The random numbers never depend on the images. The images may be NumPy or CuPy arrays; random
numbers are drawn on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minidp.backend import namespace_of
from minidp.streams import Draws, RowDraws

SIZE = 24  # pixels, side of the crop
BRIGHTNESS = 63.0  # largest shift, of 255
CONTRAST = (0.2, 1.8)  # range of the factor


@dataclass(frozen=True, eq=False)
class Distortions:
    """One distortion for each of B images, as host arrays (B,): where the crop begins (pixels),
    whether it is flipped, what is added to every pixel (of 255), and the factor on the distance
    from the channel's mean.
    """

    size: int
    top: np.ndarray
    left: np.ndarray
    flip: np.ndarray
    brightness: np.ndarray
    contrast: np.ndarray


def draw_distortions(
    n: int, rng: Draws | RowDraws, image_size: int = 32, size: int = SIZE
) -> Distortions:
    """Distortions for n square images of `image_size` pixels, from the random numbers `rng`.

    size: side of the crop in pixels, at most image_size.
    """
    top, left, flip, brighter, sharper = rng.random((n, 5)).T
    top, left = ((image_size - size + 1) * np.array([top, left])).astype(np.int64)
    return Distortions(
        size,
        top,
        left,
        flip < 0.5,
        (2 * brighter - 1) * BRIGHTNESS,
        CONTRAST[0] + np.ptp(CONTRAST) * sharper,
    )


def distort(x: NDArray, distortions: Distortions) -> NDArray:
    """The distorted views (B, size, size, C) of images x (B, H, W, C), 0 to 255, uint8 or float;
    float32, of 255.

    Values outside 0 to 255 are kept.
    """
    xp = namespace_of(x)
    d = distortions
    steps = np.arange(d.size)
    rows = d.top[:, None] + steps
    columns = d.left[:, None] + np.where(d.flip[:, None], d.size - 1 - steps, steps)
    example = xp.arange(x.shape[0])[:, None, None]
    y = x[example, xp.asarray(rows)[:, :, None], xp.asarray(columns)[:, None, :]].astype(xp.float32)
    y += xp.asarray(d.brightness, dtype=xp.float32)[:, None, None, None]
    mean = y.mean(axis=(1, 2), keepdims=True)
    y -= mean
    y *= xp.asarray(d.contrast, dtype=xp.float32)[:, None, None, None]
    y += mean
    return y


def centre_crop(x: NDArray, size: int = SIZE) -> NDArray:
    """The middle (B, size, size, C) of images x (B, H, W, C), as float32, for tests."""
    xp = namespace_of(x)
    top, left = (x.shape[1] - size) // 2, (x.shape[2] - size) // 2
    return x[:, top : top + size, left : left + size].astype(xp.float32)


def standardise_images(x: NDArray) -> NDArray:
    """Each image of x (B, H, W, C), float, minus its own mean, over its own standard deviation.

    The deviation is at least 1 / sqrt(H W C), so an image of one colour becomes zeros.
    """
    xp = namespace_of(x)
    count = x.shape[1] * x.shape[2] * x.shape[3]
    y = x - x.mean(axis=(1, 2, 3), keepdims=True)
    deviation = xp.sqrt((y * y).mean(axis=(1, 2, 3), keepdims=True))
    return y / xp.maximum(deviation, count**-0.5)
