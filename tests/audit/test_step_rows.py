"""check_step: rows of any size and of rare kinds, in lots of any size and after any calls."""

import re

import numpy as np
import pytest

from minidp.audit import check_step
from tests.audit.test_step import SIGMA, STATED, D, L, Plain, clipped, not_finite, plain

# sums of rows' gradients
SUMS = {
    "large rows are not clipped": lambda g: np.where(abs(g) > 1e6, g, clipped(g)),
    "tiny rows are blown up": lambda g: np.where(abs(g) < 1e-20, 1e40 * g, clipped(g)),
    "many rows are not clipped": lambda g: clipped(g) if len(g) < 500 else g,
    "incomplete batches of 8 are dropped": lambda g: clipped(g)[: len(g) // 8 * 8],
    "few rows are repeated": lambda g: clipped(np.resize(g, (4, D)) if 0 < len(g) < 4 else g),
    "few rows weigh more": lambda g: clipped(g) * (16 / len(g) if 0 < len(g) < 16 else 1),
    "the first row is not clipped": lambda g: np.concatenate([g[:1], clipped(g[1:])]),
}


@pytest.mark.parametrize("clip", SUMS.values(), ids=SUMS)
def test_rows_of_any_size_in_lots_of_any_size_are_clipped(clip):
    report = check_step(plain(clip=lambda self, g: clip(g))(), **STATED)
    assert re.search("violated +(sensitivity|independence of rows): ", repr(report)), report


# rows' gradients g, of which some are not finite or of a rare kind
KINDS = {
    "one number is none": lambda g: g / np.fmax(1, np.linalg.norm(g, axis=1, keepdims=True)),
    "of one sign": lambda g: clipped(g) * np.where((g > 0).all(axis=1, keepdims=True), 3, 1),
    "all equal": lambda g: np.where(np.ptp(g, axis=1, keepdims=True) == 0, g, clipped(g)),
    "one number alone": lambda g: np.where((g != 0).sum(axis=1, keepdims=True) == 1, g, clipped(g)),
    "one number large": lambda g: np.where(
        abs(g).max(axis=1, keepdims=True) > 100 * np.median(abs(g), axis=1, keepdims=True),
        g,
        clipped(g),
    ),
}


@pytest.mark.parametrize("clip", KINDS.values(), ids=KINDS)
def test_rows_of_rare_kinds_are_clipped(clip):
    made = plain(gradients=not_finite, clip=lambda self, g: clip(g))
    report = check_step(made(), claims=("finite",), **STATED)
    assert re.search("violated +(sensitivity|finite): ", repr(report)), report


def test_rows_that_vary_after_they_were_clipped_are_found():
    def dropped(self, g):
        return clipped(g) * (self.rng.random(g.shape) < 0.7) / 0.7

    report = check_step(plain(clip=dropped)(), **STATED)
    assert re.search("violated +noise: .*on many rows", repr(report)), report


def test_a_clip_norm_that_follows_earlier_lots_is_found():
    class Adaptive(Plain):
        most = 1.0

        def clip(self, g):
            norms = np.linalg.norm(g, axis=1)
            found = clipped(g, self.most) / self.most
            if len(g):
                change = np.exp(-0.2 * ((norms < self.most).mean() - 0.9))
                self.most = np.clip(self.most * change, 0.5, 2)
            return found

    report = check_step(Adaptive(), **STATED)
    assert re.search("violated +independence of rows: .*after other calls", repr(report)), report


def test_rows_that_overflow_the_steps_own_numbers_are_those_of_finite():
    def squares(rows):
        rows = rows.astype("float32")
        norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        total = (rows * np.minimum(1, 1 / norms)).sum(axis=0) if len(rows) else 0
        return (total * 1.0 + rng.normal(0, SIGMA, D)) / L

    def of_rows(rows):
        return squares(np.where(abs(rows) > 1e19, np.nan, rows))

    rng = np.random.default_rng()
    assert check_step(of_rows, **STATED).passed is not False
    assert check_step(of_rows, claims=("finite",), **STATED).passed is False


def test_a_step_of_too_many_numbers_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match="1,000,000 numbers.* the same code with a smaller model"):
        check_step(lambda rows: np.zeros(1_000_000), **STATED)
