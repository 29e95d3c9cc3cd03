"""Synthetic tables, and the search on them for the settings that `minidp.fit` takes for tables.

    python -m tools.table_rule --json experiments/results/table_rule.json
    python -m tools.table_rule --search second --json experiments/results/table_rule_second.json
    python -m tools.table_rule --search tails --json experiments/results/table_rule_tails.json
    python -m tools.table_rule --search shrunk --json experiments/results/table_rule_shrunk.json
    python -m tools.table_rule --search pairs --json experiments/results/table_rule_pairs.json

Columns are correlated; some are skewed, some have heavy tails, some are counts, some are seldom
anything but 0, and public bounds are loose. Classes follow from lines, curves and products of
columns, and some are rare. Every setting is tried on every table at epsilon 1;
`fitting/defaults.py` and `fitting/columns.py` hold those that are chosen. The second search is on
regressions, the third on the limits of targets, of which a half have heavy tails. The next is on
how weights are shrunk: also of tables whose labels say little, or nothing, of the columns, and of a
category of 100 values and little else. The last asks what columns of products of a number and a
flag bring: of those in the target, which nobody knows, and of all.
"""

import math
import statistics
import sys
from contextlib import ExitStack
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
# the second search: (module, name): values, of which it starts with the first
NUMBERS = {
    (defaults, "NUMBER_NOISE"): (0.12, 0.03, 0.06, 0.09, 0.24),
    (defaults, "NUMBER_CLIP"): (0.12, 0.06, 0.24),
    (defaults, "MOST_STEPS"): (400, 200, 800),
    (target, "FARTHEST"): (5.0, 2.0, 3.0, 4.0),
}
# the third search: spreads from its centre that a target is limited to
FARTHEST, TAIL_ROWS, TAIL_SEEDS = (5.0, 8.0, 12.0), (300, 1000, 4000), (1, 2)
# the last search: rows, and the share of two products of a number and a flag in the target
PAIR_ROWS, PAIR_SHARES, PAIR_SEEDS, NUMBERS_AND_FLAGS = (
    (1000, 4000, 16_000),
    (0.1, 0.3),
    (1, 2),
    (8, 4),
)
# the fourth search: parts of noise, of which the first is chosen; and tables, whose labels are as
# they are, mixed in 7 of 10 rows, mixed in all, or those of `random_tables.weak`
PARTS = (0.2, 0.0, 0.4, 0.8)
SHRUNK_ROWS, SHRUNK_SEEDS = (200, 500, 2000, 8000), (1,)
KINDS = {
    "clear": (0.0, ((5, 2), (20, 2), (12, 4))),
    "mixed": (0.7, ((5, 2), (20, 2), (12, 3))),
    "nothing": (1.0, ((8, 2), (30, 2))),
    "weak": (None, ((100, 2), (15, 2))),
}
SECOND_ROWS, SECOND_SEEDS = (300, 1000, 4000, 16_000), (1, 2, 3)
NUMBER_COLUMNS = 5, 15, 40

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


def r2(seed, rows, columns, heavy=False):
    """R2 on rows held out, of a regression whose target's limits are loose; heavy: of its
    exponential.
    """
    x, y, bounds = regression(seed, rows + HELD, columns)
    limits = (-40, 40)
    if heavy:
        y, limits = np.exp(y), (0, 1000)
    given = {"bounds": bounds, "target_bounds": limits, "dataset_size": rows, "seed": seed}
    model = minidp.fit(x[:rows], y[:rows], epsilon=EPSILON, delta=DELTA, quiet=True, **given)
    return float(model.score(x[rows:], y[rows:]))


def above_constant(seed, rows, kind, columns, classes):
    """Log loss less that of the training rows' shares of classes, on rows held out."""
    mixed, given = KINDS[kind][0], {"dataset_size": rows, "seed": seed, "quiet": True}
    if mixed is None:
        x, y, schema = weak(seed, rows + HELD, columns)
        given |= {"schema": schema, "classes": range(classes)}
        train, held = ({name: cells[part] for name, cells in x.items()} for part in _parts(rows))
    else:
        x, y, bounds = table(seed, rows + HELD, columns, classes)
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(len(y)) < mixed, rng.permutation(y), y)
        given |= {"bounds": bounds, "classes": range(classes)}
        train, held = (x[part] for part in _parts(rows))
    model = minidp.fit(train, y[:rows], epsilon=EPSILON, delta=DELTA, **given)
    share = np.maximum(np.bincount(y[:rows], minlength=classes) / rows, 1 / rows)
    right = np.maximum(model.predict_proba(held)[np.arange(HELD), y[rows:]], 1e-12)
    return float((np.log(share[y[rows:]]) - np.log(right)).mean())


def _parts(rows):
    return slice(rows), slice(rows, None)


def second_search():
    """Means over the second search's tables. Constants are tried one after another, each with the
    best values of those before it, and all of them a second time.
    """
    numbers = [(n, c) for n in SECOND_ROWS for c in NUMBER_COLUMNS]
    found = []

    def tried(values):
        known = next((row for row in found if row["constants"] == values), None)
        if known is None:
            with ExitStack() as patched:
                for (module, name), value in zip(NUMBERS, values.values()):
                    patched.enter_context(mock.patch.object(module, name, value))
                runs = {
                    " x ".join(map(str, each)): [r2(seed, *each) for seed in SECOND_SEEDS]
                    for each in numbers
                }
            mean = statistics.mean(map(statistics.mean, runs.values()))
            known = {"constants": values, "r2": mean, "tables": runs}
            found.append(known)
            print(values, round(mean, 4), flush=True)
        return known["r2"]

    chosen = {name: values[0] for (_, name), values in NUMBERS.items()}
    for _ in range(2):
        for (_, name), values in NUMBERS.items():
            chosen = max(({**chosen, name: value} for value in values), key=tried)
    return {"chosen": chosen, "tried": found}


def tail_search():
    """Means over the third search's tables, for each limit."""
    tables = [(rows, columns) for rows in TAIL_ROWS for columns in NUMBER_COLUMNS]
    found = []
    for farthest in FARTHEST:
        with mock.patch.object(target, "FARTHEST", farthest):
            means = {
                name: statistics.mean(
                    r2(seed, *each, heavy) for each in tables for seed in TAIL_SEEDS
                )
                for name, heavy in (("plain", False), ("heavy", True))
            }
        found.append({"FARTHEST": farthest, "r2": means, "tables": tables})
        print(found[-1], flush=True)
    return found


def shrunk_search():
    """Means over the fourth search's tables, for each part of noise."""
    tables = [
        (rows, kind, *shape)
        for rows in SHRUNK_ROWS
        for kind, (_, shapes) in KINDS.items()
        for shape in shapes
    ]
    found = []
    for part in PARTS:
        with mock.patch.object(outputs, "PART_OF_NOISE", part):
            runs = {
                " ".join(map(str, each)): [above_constant(seed, *each) for seed in SHRUNK_SEEDS]
                for each in tables
            }
        of_kind = {
            kind: statistics.mean(
                statistics.mean(runs[" ".join(map(str, each))])
                for each in tables
                if each[1] == kind
            )
            for kind in KINDS
        }
        mean, worst = (
            statistics.mean(map(statistics.mean, runs.values())),
            max(map(max, runs.values())),
        )
        found.append(
            {"PART_OF_NOISE": part, "mean": mean, "worst": worst, **of_kind, "tables": runs}
        )
        print(part, round(mean, 4), round(worst, 4), of_kind, flush=True)
    return found


def pairs_of(seed, rows, share, which):
    """R2 on rows held out, with columns of the products in the target, of all products, or none."""
    rng = np.random.default_rng([seed, 3])
    numbers, flags = NUMBERS_AND_FLAGS
    x, f = rng.normal(size=(rows, numbers)), rng.integers(0, 2, (rows, flags)) * 2.0 - 1
    products = (x[:, :, None] * f[:, None]).reshape(rows, -1)
    additive = x @ rng.normal(size=numbers) + f @ rng.normal(size=flags) + np.tanh(2 * x[:, 0])
    paired = products[:, 0] + products[:, flags + 1]
    y = np.sqrt(0.8 - share) * additive / additive.std() + np.sqrt(share / 2) * paired
    y += np.sqrt(0.2) * rng.normal(size=rows)
    more = {"none": [], "those": [0, flags + 1], "all": list(range(numbers * flags))}[which]
    x = np.concatenate([x, f, products[:, more]], axis=1)
    high = np.where(np.arange(x.shape[1]) // flags == numbers // flags, 1.0, 5.0)
    train = rows - HELD
    model = minidp.fit(
        x[:train],
        y[:train],
        epsilon=EPSILON,
        delta=DELTA,
        bounds=(-high, high),
        target_bounds=(-5, 5),
        dataset_size=train,
        seed=seed,
        quiet=True,
    )
    return float(model.score(x[train:], y[train:]))


def pair_search():
    """R2 with the products of a number and a flag as columns."""
    found = []
    for rows in PAIR_ROWS:
        for share in PAIR_SHARES:
            row = {
                which: statistics.mean(
                    pairs_of(seed, rows + HELD, share, which) for seed in PAIR_SEEDS
                )
                for which in ("none", "those", "all")
            }
            found.append({"rows": rows, "share": share, "r2": row})
            print(found[-1], flush=True)
    return found


# by name: (what it is, its seeds)
SEARCHES = {
    "first": (search, SEEDS),
    "second": (second_search, SECOND_SEEDS),
    "tails": (tail_search, TAIL_SEEDS),
    "shrunk": (shrunk_search, SHRUNK_SEEDS),
    "pairs": (pair_search, PAIR_SEEDS),
}


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.table_rule", description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True, metavar="FILE", help="where the figures go")
    parser.add_argument("--search", choices=SEARCHES, default="first", help="which of the five")
    args = parser.parse_args(argv)
    searched, seeds = SEARCHES[args.search]
    named, name = "", "table_rule"
    if args.search != "first":
        named, name = f"--search {args.search} ", f"table_rule_{args.search}"
    found = {
        "command": f"python -m tools.table_rule {named}--json experiments/results/{name}.json",
        "commit": git_commit(),
        "data": "synthetic tables of tools.table_rule",
        "device": "cpu",
        "seeds": list(seeds),
        "epsilon": EPSILON,
        "delta": DELTA,
        "settings": searched(),
        "versions": versions(),
    }
    write_json(args.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
