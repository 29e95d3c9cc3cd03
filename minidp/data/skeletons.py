"""The stroke skeletons of the drawn digits, and the tables that turn control points into segments.

skeletons.json lists for each digit the ways of writing it. A way is a list of strokes; a stroke is ["smooth" (a
Catmull-Rom curve through its points) or "straight", point, point, ...]. Points are (x to the right, y downwards), about
-1 to 1.
"""
import json
from collections import namedtuple
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

PIECES = 3  # segments between two points of a smooth stroke

Tables = namedtuple("Tables", "first count controls neighbours weights starts stops")


def skeletons() -> list[list[Any]]:
    """[ways of writing it] for each digit 0 to 9, as in skeletons.json."""
    stored = json.loads(files(__package__).joinpath("skeletons.json").read_text(encoding="ascii"))
    return [stored[str(digit)] for digit in range(10)]


@cache
def skeleton_tables() -> Tables:
    """Arrays for all ways of writing, one row each (V rows), padded to equal length.

    first, count (10,)                  the rows of each digit
    controls (V, K, 2)                  control points
    neighbours, weights (V, P, 4)       point p of the stroke mixes four control points with these weights
    starts, stops (V, S)                segments between points; the last is repeated as padding
    """
    digits = skeletons()
    ways, count = [_tabulate(way) for ways in digits for way in ways], np.array([len(ways) for ways in digits])
    most_controls, most_points, most_segments = (max(map(len, part)) for part in zip(*ways))
    controls = np.zeros((len(ways), most_controls, 2))
    neighbours = np.zeros((len(ways), most_points, 4), np.int64)
    weights = np.zeros((len(ways), most_points, 4))
    segments = np.zeros((len(ways), most_segments, 2), np.int64)
    for row, (control, points, pairs) in enumerate(ways):
        controls[row, : len(control)] = control
        # padding repeats the last point, so that a bounding box does not see it
        for place, (near, weight) in enumerate(points + points[-1:] * (most_points - len(points))):
            neighbours[row, place], weights[row, place] = near, weight
        segments[row] = pairs + pairs[-1:] * (most_segments - len(pairs))
    return Tables(np.cumsum(count) - count, count, controls, neighbours, weights, segments[..., 0], segments[..., 1])


def _tabulate(way):
    control, points, pairs = [], [], []
    for kind, *stroke in way:
        base, first = len(control), len(points)
        control += stroke
        last = base + len(stroke) - 1
        for index in range(base, last):
            near = (max(index - 1, base), index, index + 1, min(index + 2, last))
            for piece in range(PIECES if kind == "smooth" else 1):
                t = piece / PIECES
                points.append((near, _catmull_rom(t) if kind == "smooth" else (0, 1, 0, 0)))
        points.append(((last,) * 4, (0, 1, 0, 0)))
        pairs += [(p, p + 1) for p in range(first, len(points) - 1)]
    return control, points, pairs


def _catmull_rom(t):
    """Weights of four successive control points at the fraction t between the second and the third."""
    return ((-t + 2 * t * t - t * t * t) / 2, (2 - 5 * t * t + 3 * t * t * t) / 2,
            (t + 4 * t * t - 3 * t * t * t) / 2, (t * t * t - t * t) / 2)
