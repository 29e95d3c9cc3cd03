"""What a release draws: moments, tails, pairs and low bits of 2^18 seeded numbers.

The same tests of a billion unseeded numbers found nothing
(experiments/results/noise_statistics.json). Each way of being wrong below is found.
"""

import math

import numpy as np
import pytest
from scipy import stats

from minidp.streams import Streams

SIZE = 2**18
STD = 2.0**20  # of the numbers of cells
LOW = 1024  # cells are counted modulo this
LEVEL = 1e-6  # of a p-value
MOMENTS = ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96))  # power, its mean, its variance
APART = (1, 256, 512)  # neighbours, and numbers that share words or stretches of the stream


def draw(release):
    """The numbers of cells that one release adds, as integers."""
    cells = np.zeros(SIZE)
    Streams(1).noise(release).add_normals(cells, 1.0, 1 / STD)
    return (cells * STD).astype(np.int64)


def normal(total, count, mean, variance):
    """The p-value of a sum of `count` terms of this mean and variance."""
    z = (total - count * mean) / math.sqrt(count * variance)
    return 2 * stats.norm.sf(abs(z))


def p_values(cells, before):
    """{test: p-value} of a release's cells and those of the release before."""
    x, last = cells / STD, before / STD
    found = {
        f"moment {power}": normal((x**power).sum(), SIZE, mean, variance)
        for power, mean, variance in MOMENTS
    }
    for k in range(1, 5):
        beyond = math.erfc((k + 0.5 / STD) / math.sqrt(2))
        found[f"beyond {k}"] = stats.binomtest(int((abs(x) > k).sum()), SIZE, beyond).pvalue
    pairs = {f"{apart} apart": (x[:-apart], x[apart:]) for apart in APART}
    for name, (a, b) in {**pairs, "releases": (x, last)}.items():
        found[name] = normal(a @ b, len(a), 0, 1)
        found[f"{name}, squares"] = normal((a * a - 1) @ (b * b - 1), len(a), 0, 4)
    found["low bits"] = stats.chisquare(np.bincount(cells % LOW, minlength=LOW)).pvalue
    return found


def faults(broken=lambda cells: cells):
    """The tests that the noise fails."""
    before, cells = (broken(draw(release)) for release in range(2))
    return [name for name, p in p_values(cells, before).items() if p < LEVEL]


def test_nothing_is_found():
    assert faults() == []


def mixed(cells):
    """Numbers that contain 2% of those drawn 256 places before."""
    return cells + np.roll(cells, 256) // 50


@pytest.mark.parametrize(
    "broken, found",
    [
        (lambda cells: cells + cells // 100, "moment 2"),
        (
            lambda cells: np.clip(cells, *np.quantile(cells, [1e-4, 1 - 1e-4]).astype(int)),
            "beyond 4",
        ),
        (lambda cells: cells // 2 * 2, "low bits"),
        (mixed, "256 apart"),
        (lambda cells: np.repeat(cells[::2], 2), "1 apart, squares"),
        (lambda cells: np.sort(cells), "releases"),
    ],
)
def test_noise_that_is_wrong_is_noticed(broken, found):
    assert found in faults(broken)
