"""Synthetic tables, and the search on them for the settings that `minidp.fit` takes for tables.

    python -m tools.table_rule --json experiments/results/table_rule.json

Columns are correlated; some are skewed, some have heavy tails, some are counts, some are seldom
anything but 0, and public bounds are loose. Classes follow from lines, curves and products of
columns, and some are rare. Every setting is tried on every table at epsilon 1;
`fitting/defaults.py` and `fitting/columns.py` hold those that are chosen.
"""

import math
import statistics
import sys
from unittest import mock

import numpy as np

import minidp
from experiments.datasets.random_tables import table
from minidp.commands.flags import Parser
from minidp.fitting import columns as of_columns
from minidp.fitting.defaults import MOMENTUM, ROW_NORM, STEPS, mu_of
from minidp.run.versions import git_commit, versions
from minidp.util.files import write_json

ROWS = (300, 1000, 4000, 20_000)
SHAPES = ((5, 2), (30, 2), (15, 4), (60, 8))  # columns and classes
SEEDS = (1, 2, 3)
HELD = 4000  # rows that judge
CLIPS = (0.7, 1.0, 1.4)  # C / G
NOISES = (0.3, 0.45, 0.6)  # of logits, before the limit for many weights
# constants of fitting.columns, by themselves: mu N of a piece and its weight, after a look and
# within bounds; the noise that a look may have
COLUMNS = {
    "LOOKED": [(160.0, 2.0), (80.0, 2.0), (320.0, 2.0), (160.0, 1.25), (160.0, 3.0)],
    "BOUNDED": [(20.0, 0.6), (80.0, 0.6), (40.0, 0.3), (40.0, 1.2)],
    "ENOUGH": [0.0, math.inf],
    "MOST_NOISE": [0.0, 0.06],
    "LEAST_SHARE": [0.0],
}
EPSILON, DELTA = 1.0, 1e-5


def settings(rows, parameters, clip, noise):
    """What `fit` is given for C / G and the noise of logits."""
    most = 9 / np.sqrt(parameters)  # for many weights
    travel = min(noise, most) / ROW_NORM * mu_of(EPSILON, DELTA) * rows
    rate = (1 - MOMENTUM) * travel / (STEPS * clip * ROW_NORM)
    return {
        "clip_norm": clip * ROW_NORM,
        "learning_rate": float(min(rate, 3 / (1 + ROW_NORM**2))),
    }


def scored(seed, rows, columns, classes, **given):
    """(log loss less that of the training rows' shares of classes, accuracy) on rows held out."""
    x, y, bounds = table(seed, rows + HELD, columns, classes)
    model = minidp.fit(
        x[:rows],
        y[:rows],
        epsilon=EPSILON,
        delta=DELTA,
        bounds=bounds,
        classes=range(classes),
        dataset_size=rows,
        seed=seed,
        quiet=True,
        **given,
    )
    p, held = model.predict_proba(x[rows:]), y[rows:]
    share = np.maximum(np.bincount(y[:rows], minlength=classes) / rows, 1 / rows)
    loss = -np.log(np.maximum(p[np.arange(HELD), held], 1e-12)).mean()
    return float(loss + np.log(share[held]).mean()), float((p.argmax(axis=1) == held).mean())


def search():
    """One row for each setting, over all tables."""
    tables = [(seed, rows, *shape) for rows in ROWS for shape in SHAPES for seed in SEEDS]
    found = []

    def tried(setting, given):
        gains, accuracies = zip(*(scored(*each, **given(each)) for each in tables))
        by_rows = {
            rows: statistics.mean(gain for gain, each in zip(gains, tables) if each[1] == rows)
            for rows in ROWS
        }
        found.append(
            {
                **setting,
                "log_loss_less_constant": statistics.mean(gains),
                "of_rows": by_rows,
                "worst": max(gains),
                "accuracy": statistics.mean(accuracies),
                "tables": len(tables),
            }
        )
        print(found[-1], flush=True)

    for clip in CLIPS:
        for noise in NOISES:
            tried(
                {"clip": clip, "noise": noise},
                lambda each: settings(each[1], (each[2] + 1) * each[3], clip, noise),
            )
    for name, values in COLUMNS.items():
        for value in values:
            with mock.patch.object(of_columns, name, value):
                tried({name: value}, lambda each: {})
    return found


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.table_rule", description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True, metavar="FILE", help="where the figures go")
    args = parser.parse_args(argv)
    found = {
        "command": "python -m tools.table_rule --json experiments/results/table_rule.json",
        "commit": git_commit(),
        "data": "synthetic tables of tools.table_rule",
        "device": "cpu",
        "seeds": list(SEEDS),
        "epsilon": EPSILON,
        "delta": DELTA,
        "settings": search(),
        "versions": versions(),
    }
    write_json(args.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
