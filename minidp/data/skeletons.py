"""The stroke skeletons of the offline digits, and the tables that turn control points into segments.

Each digit has several ways of being written. A way is a list of strokes; a stroke is smooth (a Catmull-Rom
curve through its points) or straight between them. Coordinates: x to the right, y downwards, about -1 to 1.
"""
from collections import namedtuple
from functools import cache

import numpy as np

PIECES = 3  # segments between two points of a smooth stroke

SMOOTH, STRAIGHT = "smooth", "straight"

DIGITS = {
    0: (
        [(SMOOTH, (0, -1), (-0.45, -0.6), (-0.55, 0), (-0.4, 0.7), (0.05, 1), (0.45, 0.6), (0.55, 0),
          (0.4, -0.7), (0, -1))],
        [(SMOOTH, (0.3, -0.9), (-0.15, -0.95), (-0.6, -0.3), (-0.6, 0.45), (-0.15, 0.95), (0.4, 0.7), (0.65, 0),
          (0.5, -0.65), (0.1, -0.85))],
    ),
    1: (
        [(STRAIGHT, (0, -1), (0, 0), (0, 1))],
        [(STRAIGHT, (-0.35, -0.6), (0.05, -1), (0.05, 0), (0.05, 1))],
        [(STRAIGHT, (-0.35, -0.6), (0.05, -1), (0.05, 0), (0.05, 1)), (STRAIGHT, (-0.4, 1), (0.45, 1))],
    ),
    2: (
        [(SMOOTH, (-0.5, -0.55), (-0.15, -0.97), (0.35, -0.85), (0.42, -0.35), (0, 0.3), (-0.55, 0.9)),
         (STRAIGHT, (-0.55, 0.9), (0.6, 0.9))],
        [(SMOOTH, (-0.5, -0.6), (-0.1, -1), (0.4, -0.75), (0.35, -0.2), (-0.05, 0.5), (-0.45, 0.9),
          (-0.6, 0.65), (-0.25, 0.6), (0.15, 0.9), (0.6, 0.8))],
    ),
    3: (
        [(SMOOTH, (-0.5, -0.75), (-0.05, -1), (0.4, -0.7), (0.3, -0.2), (-0.15, -0.05)),
         (SMOOTH, (-0.15, -0.05), (0.4, 0.15), (0.45, 0.65), (0, 1), (-0.55, 0.75))],
        [(STRAIGHT, (-0.45, -0.95), (0.45, -0.95), (-0.1, -0.2)),
         (SMOOTH, (-0.1, -0.2), (0.4, 0), (0.5, 0.5), (0.1, 0.95), (-0.5, 0.8))],
    ),
    4: (
        [(STRAIGHT, (-0.35, -0.95), (-0.5, 0.1), (0.6, 0.1)), (STRAIGHT, (0.3, -0.85), (0.2, 1))],
        [(STRAIGHT, (0.2, -1), (-0.6, 0.3), (0.6, 0.3)), (STRAIGHT, (0.2, -1), (0.2, 0), (0.2, 1))],
        [(SMOOTH, (-0.4, -0.9), (-0.5, -0.3), (-0.25, 0.05), (0.35, -0.1)),
         (STRAIGHT, (0.4, -0.9), (0.35, -0.1), (0.25, 1))],
    ),
    5: (
        [(STRAIGHT, (0.5, -0.95), (-0.35, -0.95), (-0.42, -0.15)),
         (SMOOTH, (-0.42, -0.15), (0.1, -0.3), (0.5, 0.1), (0.4, 0.7), (-0.05, 0.97), (-0.5, 0.75))],
        [(SMOOTH, (0.5, -0.9), (0, -0.95), (-0.4, -0.6), (-0.1, -0.2), (0.35, 0.2), (0.3, 0.75), (-0.1, 0.97),
          (-0.5, 0.8))],
    ),
    6: (
        [(SMOOTH, (0.35, -0.95), (-0.2, -0.5), (-0.5, 0.15), (-0.4, 0.75), (0.05, 0.97), (0.45, 0.6), (0.25, 0.15),
          (-0.15, 0.2), (-0.45, 0.6))],
        [(STRAIGHT, (-0.1, -1), (-0.4, 0.3)),
         (SMOOTH, (-0.4, 0.3), (-0.3, 0.9), (0.2, 0.95), (0.4, 0.5), (0.1, 0.2), (-0.35, 0.45))],
    ),
    7: (
        [(STRAIGHT, (-0.5, -0.9), (0.5, -0.9), (0.15, 0), (-0.15, 1))],
        [(STRAIGHT, (-0.5, -0.9), (0.5, -0.9), (0.15, 0), (-0.15, 1)), (STRAIGHT, (-0.25, 0.05), (0.5, 0))],
        [(SMOOTH, (-0.55, -0.6), (-0.45, -0.9), (0, -0.8), (0.5, -0.9), (0.2, -0.2), (-0.05, 0.4), (-0.1, 1))],
    ),
    8: (
        [(SMOOTH, (0.35, -0.75), (-0.05, -1), (-0.4, -0.65), (0, -0.1), (0.45, 0.5), (0, 1), (-0.45, 0.5), (0, -0.1),
          (0.4, -0.6), (0.2, -0.95))],
        [(SMOOTH, (0, -1), (-0.38, -0.6), (0, -0.15), (0.38, -0.6), (0, -1)),
         (SMOOTH, (0, -0.15), (-0.48, 0.4), (0, 1), (0.48, 0.4), (0, -0.15))],
    ),
    9: (
        [(SMOOTH, (0.4, -0.6), (0.05, -0.97), (-0.4, -0.65), (-0.25, -0.15), (0.15, -0.15), (0.4, -0.6)),
         (STRAIGHT, (0.4, -0.6), (0.35, 0.2), (0.2, 1))],
        [(SMOOTH, (0.4, -0.55), (0, -0.95), (-0.42, -0.6), (-0.2, -0.1), (0.2, -0.2), (0.42, -0.6)),
         (SMOOTH, (0.42, -0.6), (0.45, 0.2), (0.15, 0.9), (-0.4, 0.75))],
    ),
}

Tables = namedtuple("Tables", "first count controls neighbours weights starts stops")


@cache
def skeleton_tables():
    """Arrays for all ways of writing, one row each (V rows), padded to equal length.

    first, count (10,)                  the rows of each digit
    controls (V, K, 2)                  control points
    neighbours, weights (V, P, 4)       point p of the stroke mixes four control points with these weights
    starts, stops (V, S)                segments between points; the last is repeated as padding
    """
    ways = [_tabulate(way) for digit in range(10) for way in DIGITS[digit]]
    count = np.array([len(DIGITS[digit]) for digit in range(10)])
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
    return Tables(
        np.cumsum(count) - count, count, controls, neighbours, weights, segments[..., 0], segments[..., 1]
    )


def _tabulate(way):
    control, points, pairs = [], [], []
    for kind, *stroke in way:
        base, first = len(control), len(points)
        control += stroke
        last = base + len(stroke) - 1
        for index in range(base, last):
            near = (max(index - 1, base), index, index + 1, min(index + 2, last))
            for piece in range(PIECES if kind == SMOOTH else 1):
                t = piece / PIECES
                points.append((near, _catmull_rom(t) if kind == SMOOTH else (0, 1, 0, 0)))
        points.append(((last,) * 4, (0, 1, 0, 0)))
        pairs += [(p, p + 1) for p in range(first, len(points) - 1)]
    return control, points, pairs


def _catmull_rom(t):
    """Weights of four successive control points at the fraction t between the second and the third."""
    return (
        (-t + 2 * t * t - t * t * t) / 2,
        (2 - 5 * t * t + 3 * t * t * t) / 2,
        (t + 4 * t * t - 3 * t * t * t) / 2,
        (t * t * t - t * t) / 2,
    )
