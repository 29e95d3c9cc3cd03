"""Synthetic tables, and the search on them for the settings that `minidp.fit` takes for tables.

    python -m tools.table_rule --json experiments/results/table_rule.json
    python -m tools.table_rule --second --json experiments/results/table_rule_second.json

Columns are correlated; some are skewed, some have heavy tails, some are counts, some are seldom
anything but 0, and public bounds are loose. Classes follow from lines, curves and products of
columns, and some are rare. Every setting is tried on every table at epsilon 1;
`fitting/defaults.py` and `fitting/columns.py` hold those that are chosen. The second search is on
regressions, and on how weights are shrunk: also of tables with a category of 100 values and little
else.
"""

import math
import statistics
import sys
from unittest import mock

import numpy as np

import minidp
from experiments.datasets.random_tables import regression, table, weak
from minidp.commands.flags import Parser
from minidp.fitting import columns as of_columns
from minidp.fitting import defaults, outputs, target
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
    "AIM": [(0.01, 0.2, 0.0), (0.01, 0.2, 0.06)],
    "LEAST_SHARE": [0.0],
}
# the second search: (module, name): values, the first of which is chosen
NUMBERS = {
    (defaults, "NUMBER_NOISE"): (0.12, 0.06, 0.24),
    (defaults, "NUMBER_CLIP"): (0.12, 0.06, 0.24),
    (defaults, "MOST_STEPS"): (400, 100, 200),
    (target, "FARTHEST"): (5.0, 3.0, 8.0),
}
SHRUNK = {(outputs, "PART_OF_NOISE"): (0.4, 0.0, 0.8, 1.6)}
SECOND_ROWS, SECOND_SEEDS = (300, 1000, 4000), (1, 2)
NUMBER_COLUMNS, CLASS_SHAPES = (5, 15, 40), ((5, 2), (30, 2), (15, 4), (100, 0))

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


def r2(seed, rows, columns):
    """R2 on rows held out, of a regression whose target's limits are loose."""
    x, y, bounds = regression(seed, rows + HELD, columns)
    given = {"bounds": bounds, "target_bounds": (-40, 40), "dataset_size": rows, "seed": seed}
    model = minidp.fit(x[:rows], y[:rows], epsilon=EPSILON, delta=DELTA, quiet=True, **given)
    return float(model.score(x[rows:], y[rows:]))


def above_constant(seed, rows, columns, classes):
    """Log loss less the constant's, also of a table that shows next to nothing."""
    if classes:
        return scored(seed, rows, columns, classes)[0]
    x, y, schema = weak(seed, rows + HELD, columns)
    train, held = ({name: cells[part] for name, cells in x.items()} for part in _parts(rows))
    given = {"schema": schema, "classes": [0, 1], "dataset_size": rows, "seed": seed}
    model = minidp.fit(train, y[:rows], epsilon=EPSILON, delta=DELTA, quiet=True, **given)
    p, share = model.predict_proba(held), np.bincount(y[:rows], minlength=2) / rows
    right = np.maximum(p[np.arange(HELD), y[rows:]], 1e-12)
    return float((np.log(share[y[rows:]]) - np.log(right)).mean())


def _parts(rows):
    return slice(rows), slice(rows, None)


def second_search():
    """Means over the second search's tables, for each value of each constant."""
    numbers = [(n, c) for n in SECOND_ROWS for c in NUMBER_COLUMNS]
    classes = [(n, *shape) for n in SECOND_ROWS for shape in CLASS_SHAPES]
    found = []
    for constants, tables, figure in ((NUMBERS, numbers, r2), (SHRUNK, classes, above_constant)):
        for number, ((module, name), values) in enumerate(constants.items()):
            for value in values[number > 0 :]:  # what is chosen is measured once
                with mock.patch.object(module, name, value):
                    runs = {
                        " x ".join(map(str, each)): [figure(seed, *each) for seed in SECOND_SEEDS]
                        for each in tables
                    }
                mean = statistics.mean(map(statistics.mean, runs.values()))
                found.append({name: value, figure.__name__: mean, "tables": runs})
                print(name, value, figure.__name__, round(mean, 4), flush=True)
    return found


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.table_rule", description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True, metavar="FILE", help="where the figures go")
    parser.add_argument("--second", action="store_true", help="regressions, and shrinking")
    args = parser.parse_args(argv)
    name = "table_rule_second" if args.second else "table_rule"
    second = "--second " * args.second
    found = {
        "command": f"python -m tools.table_rule {second}--json experiments/results/{name}.json",
        "commit": git_commit(),
        "data": "synthetic tables of tools.table_rule",
        "device": "cpu",
        "seeds": list(SECOND_SEEDS if args.second else SEEDS),
        "epsilon": EPSILON,
        "delta": DELTA,
        "settings": second_search() if args.second else search(),
        "versions": versions(),
    }
    write_json(args.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
