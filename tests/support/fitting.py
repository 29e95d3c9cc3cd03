"""A small problem of one's own, and `minidp.fit` on it."""

import numpy as np

import minidp

ROWS = 1200


def problem(seed=3, rows=ROWS, columns=6):
    """x (rows, columns), text labels of three classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    x = rng.normal(size=(rows, columns)) + 2 * np.eye(3, columns)[y]
    return x, np.array(["ant", "bee", "cow"])[y]


X, LABELS = problem()


def fitted(x=X, y=LABELS, **named):
    """A seeded fit."""
    named = {"epsilon": 2.0, "delta": 1e-4, "seed": 1, "quiet": True} | named
    return minidp.fit(x, y, **named)
