"""Names as symbols: a public alphabet of 26 letters and the end, at most 13 letters; and tables of
n-grams of them, released once.
"""

import math
import re

import numpy as np

from minidp.grads import Explicit
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group

from .tables import digest, find

LETTERS, END, SYMBOLS, POSITIONS = 26, 26, 27, 14
FILE, TRAINED, NORM, BATCH = "dist.all.last", 80_000, 4.0, 500


def load(data_dir=None):
    """(surnames, where they are from)."""
    path = find(FILE, "names", data_dir, "take it from the package names 0.3.0 (pip install names)")
    names = [line.split()[0].lower() for line in path.read_text(encoding="utf-8").splitlines()]
    names = [name for name in names if re.fullmatch(f"[a-z]{{1,{POSITIONS - 1}}}", name)]
    return names, {"names": FILE, "sha256": digest(path)}


def encode(names):
    """(N, 14) symbols, -1 behind the end."""
    found = np.full((len(names), POSITIONS), -1)
    for row, name in zip(found, names):
        row[: len(name) + 1] = [*(ord(letter) - ord("a") for letter in name), END]
    return found


def decode(row):
    """The name of a row of symbols."""
    return "".join(chr(ord("a") + symbol) for symbol in row if 0 <= symbol < LETTERS)


def split(names):
    """(trained, held out) symbols, in an order that is drawn once."""
    names = [names[place] for place in np.random.default_rng(0).permutation(len(names))]
    # in a test, nine in ten train
    trained = TRAINED if len(names) > TRAINED else len(names) * 9 // 10
    return encode(names[:trained]), encode(names[trained:])


def contexts(symbols, order):
    """(N, 14): the number of each position's n-gram in a table, -1 behind the end."""
    found = np.zeros_like(symbols)
    for back in reversed(range(order)):
        before = np.full_like(symbols, SYMBOLS)  # nothing before the first
        before[:, back:] = symbols[:, : POSITIONS - back]
        found = found * (SYMBOLS + 1) + before
    return np.where(symbols >= 0, found, -1)


def table(symbols, order, epsilon, delta, streams):
    """Counts ((28,) * order) of n-grams, released once at epsilon."""
    size = (SYMBOLS + 1) ** order
    key = ("table", f"{order}-grams")
    sanitizer = Sanitizer(flat_group([key], NORM, float(epsilon < math.inf)))
    plan = Plan(PoissonSampler(1.0), sanitizer, 1, len(symbols))
    if epsilon < math.inf:
        plan = plan.calibrated("pld", epsilon, delta)
    sanitizer, products = plan.at(0, len(symbols))
    total = {}
    for start in range(0, len(symbols), BATCH):
        places = contexts(symbols[start : start + BATCH], order)
        counts = np.zeros((len(places), size), "float32")
        rows, _ = np.nonzero(places >= 0)
        np.add.at(counts, (rows, places[places >= 0]), 1)
        sanitizer.add_clipped({key: Explicit(counts)}, total, None, products)
    if epsilon < math.inf:
        total = sanitizer.release(total, streams.noise(0))
    return np.asarray(total[key]).reshape((SYMBOLS + 1,) * order)


def table_bits(counts, symbols, constant):
    """Bits per character of a table: no count below 0, a public constant added to each."""
    counts = np.maximum(counts[..., :SYMBOLS], 0) + constant
    p = np.zeros((*counts.shape[:-1], SYMBOLS + 1))
    p[..., :SYMBOLS] = counts / counts.sum(axis=-1, keepdims=True)
    places = contexts(symbols, counts.ndim)
    return float(-np.log2(p.reshape(-1)[places[places >= 0]]).mean())
