"""What tuning gains where it is paid for: digits, breast cancer and Adult at a whole epsilon of 1.

    python experiments/tuning.py --json experiments/results/tuning.json

Four ways on the same five random splits, with a fifth of the rows held out as a test set: the
defaults; `minidp.tune`, every candidate once; the same with a geometric number of runs; and the
best of the candidates by the test set itself, each at epsilon 1, whose search nobody pays for. The
split's number seeds the fit. CANDIDATES were written down before any of them was run on these data.
Adult is read from --data-dir or $MINIDP_DATA, as in adult.py.
"""

import statistics
import sys
from pathlib import Path

import common

common.start(__name__)
sys.path.append(str(Path(__file__).resolve().parents[1]))  # for tools

from common.tables import SPLITS, held_out, main_of_table

import adult
import numpy as np

import minidp
from tools.own_data import breast_cancer, digits, rows_of

CANDIDATES = (
    {},  # the defaults
    {"hidden": [16]},
    {"steps": 30},
    {"steps": 200},
    {"clip_norm": 0.1},
    {"clip_norm": 1.0},
)
EPSILON, SMOKE_ROWS = 1.0, 400
WAYS = {"each once": None, "geometric": len(CANDIDATES)}


def census(data_dir):
    """Adult, 14 columns by a public schema"""
    x, y, _ = adult.load(data_dir)
    return x, y, {"schema": adult.schema(), "classes": ["<=50K", ">50K"]}


def scores_of(x, y, named, split):
    """({way: (accuracy on the held-out rows, epsilon)}, the accuracy of each candidate)."""
    held, rest = held_out(split, len(y))
    named = {**named, "epsilon": EPSILON, "dataset_size": len(rest), "seed": split, "quiet": True}
    given, test = (rows_of(x, rest), y[rest]), (rows_of(x, held), y[held])
    grid = [minidp.fit(*given, **named, **candidate) for candidate in CANDIDATES]
    made = {"defaults": grid[0]}
    for way, runs in WAYS.items():
        made[way] = minidp.tune(*given, CANDIDATES, runs=runs, **named)
    found = {way: (model.score(*test), model.epsilon.upper) for way, model in made.items()}
    return found, [model.score(*test) for model in grid]


def measure(x, y, named, splits):
    """{way: figures} over the splits, and what each candidate scored."""
    rows, grid = zip(*(scores_of(x, y, named, split) for split in range(splits)))
    ways, grid = {}, np.array(grid)
    for way in rows[0]:
        scores, spent = zip(*(row[way] for row in rows))
        ways[way] = {"scores": scores, "epsilon": max(spent)}
    best = int(grid.mean(axis=0).argmax())
    ways["unpaid"] = {"scores": grid[:, best].tolist(), "candidate": CANDIDATES[best]}
    for figures in ways.values():
        figures["mean"] = statistics.mean(figures["scores"])
        figures["spread"] = statistics.stdev(figures["scores"]) if splits > 1 else 0.0
    return {
        "rows": len(y) - len(y) // 5,
        "delta": named["delta"],
        "ways": ways,
        "candidates": grid.T.tolist(),
    }


def figures(args):
    """Measure and print; returns what is written."""
    found = {}
    for make, delta in ((digits, 1e-4), (breast_cancer, 1e-4), (census, 1e-5)):
        x, y, named = make(args.data_dir) if make is census else make()
        if args.smoke:
            x, y = rows_of(x, slice(SMOKE_ROWS)), y[:SMOKE_ROWS]
        figures = measure(x, y, {**named, "delta": delta}, args.splits)
        found[make.__name__] = {"about": make.__doc__, **figures}
        means = (f"{way} {each['mean']:.2%}" for way, each in figures["ways"].items())
        print(f"{make.__name__}: {', '.join(means)}", flush=True)
    return {
        "seeds": SPLITS,
        "epsilon": EPSILON,
        "settings": CANDIDATES,
        "data": found,
    }


main = main_of_table("tuning.py", __doc__, adult.FILE[1], "a few hundred rows, one split", figures)

if __name__ == "__main__":
    main()
