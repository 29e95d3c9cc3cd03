"""Synthetic digits: 28 x 28 images that a program draws, for machines without MNIST.

They are not MNIST, and every result on them says so. Each image is a skeleton of
strokes (skeletons.json) whose control points are shaken, bent by a smooth random field, sheared,
rotated and scaled, and drawn with a pen of random width and softness.

Only +, -, *, /, sqrt, min, max and floor touch the pixels, each correctly rounded by IEEE 754, and
the random numbers are the generator's plain uniforms: the images are the same, byte for byte, on
every machine.
"""

import json
import zipfile
from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minidp.util import validate
from minidp.util.atomic import atomic_write

from .dataset import Dataset
from .fetch import cache_dir

SKELETONS = Path(__file__).with_name("skeletons.json")
VERSION = 1  # of the images: raise it with every change that alters a pixel
SEED = 20160701
CHUNK = 250  # images drawn together; part of what makes the images
SIZES = (60_000, 10_000)
ARRAYS = ("x_train", "y_train", "x_test", "y_test")
NOTICE = (
    "NOT MNIST: these are minidp's synthetic digits, made by a program; no figure here is a result "
    "on MNIST."
)

# How far the digits stray from their skeletons. A digit is 2 units high before scaling.
SHAKE = 0.15  # of each control point, units
BEND = 0.14  # of the smooth field's coefficients, units
TURN = 0.22  # tangent of half the largest rotation
SLANT = 0.45  # largest shear
HALF_HEIGHT = (7.5, 10.0)  # pixels for one unit
ASPECT = (0.7, 1.25)  # width over height, against the skeleton's
SHIFT = 1.5  # of the bounding box's centre, pixels
PEN = (0.45, 1.75)  # half width of the stroke, pixels
SOFT = (0.7, 1.9)  # width of its edge, pixels
INK = (0.75, 1.0)

PIECES = 3  # segments between two points of a smooth stroke
Tables = namedtuple("Tables", "first count controls neighbours weights starts")


def load_strokes(
    sizes: Sequence[int] = SIZES,
    on_notice: Callable[[str], object] = print,
    progress: bool = True,
) -> Dataset:
    """The synthetic digits as a Dataset.

    sizes      numbers of training and test images; smaller sets are the first images of larger ones
    on_notice  called with one line if the cache cannot be written
    progress   show a bar on a terminal

    The full set takes some five seconds to make and is kept in the cache; a damaged cache is made
    again.
    """
    validate.count(minimum=1, train_size=sizes[0], test_size=sizes[1])
    if tuple(sizes) != SIZES:
        return _dataset(*_draw_all(sizes, progress))
    path = cache_dir() / f"strokes-v{VERSION}.npz"
    arrays = _read_cache(path)
    if arrays is None:
        arrays = _draw_all(sizes, progress)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path, "wb") as out:
                np.savez(out, **dict(zip(ARRAYS, arrays)))
        except OSError as error:
            on_notice(
                f"{path}: cannot be written ({error.strerror}); the synthetic digits are made anew "
                "each time"
            )
    return _dataset(*arrays)


def _dataset(x_train, y_train, x_test, y_test):
    y_train, y_test = y_train.astype(np.int64), y_test.astype(np.int64)
    return Dataset("strokes", x_train, y_train, x_test, y_test, 10, len(x_train), notice=NOTICE)


def _draw_all(sizes, progress):
    from tqdm import tqdm

    parts = []
    for split, size in enumerate(sizes):
        chunks = tqdm(
            range(-(-size // CHUNK)),
            "drawing digits",
            unit=f"{CHUNK} images",
            leave=False,
            disable=None if progress else True,
        )
        drawn = [draw(split, chunk) for chunk in chunks]
        parts += [np.concatenate(each)[:size] for each in zip(*drawn)]
    return parts


def _read_cache(path):
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            return [stored[name] for name in ARRAYS]  # the path has their version
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
        return None


def draw(split: int, chunk: int, stray: float = 1.0) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images (CHUNK, 28, 28) and labels (CHUNK,), uint8, of one chunk of a split (0 training, 1
    test, or any other number).

    stray: how far strokes are shaken and bent, in units of SHAKE and BEND; digits with more are
    harder to read.
    """
    rng = np.random.default_rng((SEED, VERSION, split, chunk))
    tables = skeleton_tables()
    n = CHUNK
    labels = np.floor(10 * rng.random(n)).astype(np.int64)
    first, count = tables.first[labels], tables.count[labels]
    variant = first + np.floor(count * rng.random(n)).astype(np.int64)

    controls = tables.controls[variant]
    controls = controls + stray * SHAKE * _bell(rng, controls.shape)
    near, weights, rows = tables.neighbours[variant], tables.weights[variant], np.arange(n)[:, None]
    # each mixes four controls
    points = sum(controls[rows, near[:, :, k]] * weights[:, :, k, None] for k in range(4))
    points = _place(_bend(points, stray * BEND * _bell(rng, (9, 2, n, 1))), rng)
    points = points.astype(np.float32)
    start, stop = points[rows, tables.starts[variant]], points[rows, tables.starts[variant] + 1]

    pen, soft, ink = (_uniform(rng, n, *ends)[:, None, None] for ends in (PEN, SOFT, INK))
    distance = np.sqrt(_squared_distance(start, stop))
    shade = np.clip((pen - distance) / soft + np.float32(0.5), 0, 1) * ink
    return np.floor(shade * 255 + np.float32(0.5)).astype(np.uint8), labels.astype(np.uint8)


def _uniform(rng, shape, low, high):
    return (low + (high - low) * rng.random(shape)).astype(np.float32)


def _bell(rng, shape):
    """Bell-shaped numbers in (-1.5, 1.5) with standard deviation 1/2: sums of three uniforms, so
    exact.
    """
    return rng.random(shape) + rng.random(shape) + rng.random(shape) - 1.5


def _bend(points, coefficients):
    """Elastic distortion: a displacement that is a random cubic polynomial of the place, for each
    axis.
    """
    x, y = points[..., 0], points[..., 1]
    powers = (x, y, x * x, x * y, y * y, x * x * x, x * x * y, x * y * y, y * y * y)
    moved_x, moved_y = x, y
    for power, (cx, cy) in zip(powers, coefficients):
        moved_x, moved_y = moved_x + cx * power, moved_y + cy * power
    return np.stack([moved_x, moved_y], axis=-1)


def _place(points, rng):
    """Rotate, shear, scale and shift into pixel coordinates."""
    n = len(points)
    half = TURN * _bell(rng, (n, 1)) / 1.5
    cosine, sine = (1 - half * half) / (1 + half * half), 2 * half / (1 + half * half)
    slant = SLANT * _bell(rng, (n, 1)) / 1.5
    height = HALF_HEIGHT[0] + (HALF_HEIGHT[1] - HALF_HEIGHT[0]) * rng.random((n, 1))
    width = height * (ASPECT[0] + (ASPECT[1] - ASPECT[0]) * rng.random((n, 1)))
    x, y = points[..., 0] - slant * points[..., 1], points[..., 1]
    x, y = width * (cosine * x - sine * y), height * (sine * x + cosine * y)
    placed = []
    for axis in (x, y):
        middle = (axis.min(1, keepdims=True) + axis.max(1, keepdims=True)) / 2
        placed.append(axis - middle + 13.5 + SHIFT * _bell(rng, (n, 1)) / 1.5)
    return np.stack(placed, axis=-1)


def _squared_distance(start, stop):
    """Squared distance (n, 28, 28) of each pixel's centre to the nearest of the segments (n, S, 2),
    pixels.
    """
    n = len(start)
    grid = np.arange(28, dtype=np.float32)
    nearest = np.full((n, 28, 28), np.float32(1e6))
    for s in range(start.shape[1]):
        edge = stop[:, s] - start[:, s]
        ex, ey = edge[:, 0, None, None], edge[:, 1, None, None]
        square = np.maximum(ex * ex + ey * ey, np.float32(1e-6))
        x, y = (grid - start[:, s, 0, None])[:, None, :], (grid - start[:, s, 1, None])[:, :, None]
        along = np.clip(x * (ex / square) + y * (ey / square), 0, 1)
        across, down = x - along * ex, y - along * ey
        nearest = np.minimum(nearest, across * across + down * down)
    return nearest


@cache
def skeleton_tables() -> Tables:
    """Arrays for all ways of writing, one row each (V rows), padded to equal length.

    skeletons.json lists for each digit the ways of writing it. A way is a list of strokes; a stroke
    is ["smooth" (a Catmull-Rom curve through its points) or "straight", point, point, ...]. Points
    are (x to the right, y downwards), about -1 to 1.

    first, count (10,)                  the rows of each digit
    controls (V, K, 2)                  control points
    neighbours, weights (V, P, 4)       point p of the stroke mixes four control points with these
                                        weights
    starts (V, S)                       points where a segment to the next point begins; the last is
                                        repeated as padding
    """
    stored = json.loads(SKELETONS.read_text(encoding="ascii"))
    count = np.array([len(stored[str(digit)]) for digit in range(10)])
    ways = [_tabulate(way) for digit in range(10) for way in stored[str(digit)]]
    controls, near, weights, starts = map(_padded, zip(*ways))
    return Tables(np.cumsum(count) - count, count, controls, near, weights, starts)


def _padded(parts):
    """Lists of equal length; the last part is repeated, so that a bounding box does not see it."""
    most = max(map(len, parts))
    return np.array([part + part[-1:] * (most - len(part)) for part in parts])


def _tabulate(way):
    control, near, weights, starts = [], [], [], []
    for kind, *stroke in way:
        fractions = [piece / PIECES for piece in range(PIECES if kind == "smooth" else 1)]
        base = len(control)
        control += stroke
        last = len(control) - 1
        for index in range(base, last):
            four = max(index - 1, base), index, index + 1, min(index + 2, last)
            for fraction in fractions:
                starts.append(len(near))
                near.append(four)
                weights.append(_catmull_rom(fraction))
        near.append((last,) * 4)
        weights.append(_catmull_rom(0))
    return control, near, weights, starts


def _catmull_rom(t):
    """Weights of four successive control points at the fraction t between the second and the
    third.
    """
    return (
        (-t + 2 * t * t - t * t * t) / 2,
        (2 - 5 * t * t + 3 * t * t * t) / 2,
        (t + 4 * t * t - 3 * t * t * t) / 2,
        (t * t * t - t * t) / 2,
    )
