"""Synthetic tables: correlated columns, some of them skewed, with heavy tails, of counts, or seldom
anything but 0; classes and targets that follow from lines, curves and products of columns.
"""

import numpy as np


def table(seed, rows, columns, classes):
    """(x, y, (low, high)): a table of this many rows, and public bounds."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(columns, columns)) / np.sqrt(columns) + np.eye(columns)
    z = rng.normal(size=(rows, columns)) @ mix / np.sqrt((mix**2).sum(axis=0))
    kinds = rng.integers(0, 6, columns)
    shapes = [np.exp(z), z * np.exp(np.abs(z) / 3), np.floor(3 * np.exp(0.7 * z)), np.tanh(z), z]
    shapes.append(np.exp(2 * z) * (z > 1))  # seldom anything but 0
    x = np.select([kinds == kind for kind in range(6)], shapes)
    line = rng.normal(size=(columns, classes)) * (rng.random((columns, 1)) < 0.6)
    logits = np.where(rng.random(columns) < 0.3, z**2 - 1, z) @ line
    first, second = rng.integers(0, columns, 2)
    logits += (z[:, first] * z[:, second])[:, None] * rng.normal(size=classes)
    logits *= rng.uniform(0.7, 2.5) / logits.std()
    logits += rng.normal(size=classes) * rng.uniform(0.0, 1.5)
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    high = np.array([8.0, 12.0, 30.0, 1.0, 5.0, 1000.0])[kinds]
    return x, y, (np.where((kinds == 0) | (kinds == 2) | (kinds == 5), 0.0, -high), high)


def regression(seed, rows, columns):
    """(x, y, (low, high)): the columns of such a table, and targets of mean 0 and variance 1, of
    which a part is noise.
    """
    rng = np.random.default_rng([seed, 1])
    x, _, bounds = table(seed, rows, columns, 2)
    z = np.clip((x - x.mean(axis=0)) / x.std(axis=0), -4, 4)
    line = rng.normal(size=columns) * (rng.random(columns) < 0.6)
    y = np.where(rng.random(columns) < 0.3, np.tanh(2 * z), z) @ line
    first, second = rng.integers(0, columns, 2)
    y += 0.3 * z[:, first] * z[:, second]
    share = rng.uniform(0.4, 0.95)
    y = np.sqrt(share) * y / y.std() + np.sqrt(1 - share) * rng.normal(size=rows)
    return x, y, bounds


def weak(seed, rows, values, columns=3):
    """(x, y, schema): a dict of columns of numbers and of a category of this many values, which
    together say little of two classes.
    """
    rng = np.random.default_rng([seed, 2])
    kind, effect = rng.integers(0, values, rows), 0.3 * rng.normal(size=values)
    x = rng.normal(size=(rows, columns))
    y = (rng.random(rows) < 1 / (1 + np.exp(1.2 - effect[kind] - 0.2 * x[:, 0]))).astype(int)
    number = {"type": "number", "low": -6, "high": 6, "gaps": False}
    schema = {f"x{place}": number for place in range(columns)}
    schema["kind"] = {"type": "category", "values": list(range(values))}
    return {f"x{place}": column for place, column in enumerate(x.T)} | {"kind": kind}, y, schema
