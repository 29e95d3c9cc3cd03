"""Tables at several epsilons: are probabilities better than the constant's, does more epsilon give
a better model, and what do bounds cost that are too wide?

    python experiments/tables.py --data-dir DIR --json experiments/results/tables.json
    python experiments/tables.py --part limits --json experiments/results/tables_limits.json

The tables are synthetic ones (`datasets/random_tables.py`, of seeds that no setting was chosen on),
Adult with the schema of adult.py, and RAND with the bounds of persons.py, split by persons, the
guarantee for rows; and tables that come with scikit-learn. Several splits with a fifth of the rows
held out; the split's number seeds the fit.
The constant answers with the training rows' shares of the classes. All settings are the rule's.
"""

import math
import statistics
from dataclasses import dataclass
from functools import partial

import common

common.start(__name__)

from common.tables import TableFlags, auroc, held_out, main_of_table, mean_and_error

import adult
import numpy as np
import persons

import minidp
from datasets import random_tables
from minidp.run.options import option

DELTA, FIRST_SEED = 1e-5, 100
EPSILONS = (0.5, 1.0, 2.0, 4.0, math.inf)
SYNTHETIC = [
    (rows, *shape) for rows in (1000, 5000, 20_000) for shape in ((5, 2), (30, 2), (15, 4))
]
REGRESSIONS = (5, 15, 60)  # columns
REGRESSION_ROWS = 20_000
HELD, MOST_ROWS = 4000, 50_000  # rows that judge, and that train at most
WAYS = {  # of telling the bounds of a regression: widened by, added to the numbers
    "bounds": (1.0, 0.0),
    "bounds 3 times too wide": (3.0, 0.0),
    "bounds 10 times too wide": (10.0, 0.0),
    "no bounds": (None, 0.0),
    "no bounds, numbers near 1e6": (None, 1e6),
}


def synthetic(shape, split):
    """(x, y, held, rest, how it is fitted) of a new table for each split."""
    rows, columns, classes = shape
    x, y, bounds = random_tables.table(FIRST_SEED + split, rows * 5 // 4, columns, classes)
    return x, y, *held_out(split, len(y)), {"bounds": bounds, "classes": range(classes)}


def of_adult(table, label, split):
    """The same of Adult."""
    given = {"schema": adult.schema(), "classes": ["<=50K", ">50K"]}
    return table, label, *held_out(split, len(label)), given


def of_rand(x, label, person, split):
    """The same of RAND: a fifth of the persons is held out."""
    held = np.isin(person, held_out(split, np.unique(person))[0])
    bounds = np.array(list(persons.BOUNDS.values()), float).T
    return (
        x,
        label,
        np.flatnonzero(held),
        np.flatnonzero(~held),
        {"bounds": bounds, "classes": [0, 1]},
    )


def part_of(x, part):
    """These rows of an array or a dict of columns."""
    return adult.rows_of(x, part) if isinstance(x, dict) else x[part]


def scored(made, epsilon, seed):
    """Log loss, that of the constant, and AUROC or accuracy of one fit."""
    x, y, held, rest, given = made
    model = minidp.fit(
        part_of(x, rest),
        y[rest],
        epsilon=epsilon,
        delta=DELTA,
        dataset_size=len(rest),
        seed=seed,
        quiet=True,
        **given,
    )
    places = np.searchsorted(model.classes, y)
    p = model.predict_proba(part_of(x, held))
    shares = np.bincount(places[rest], minlength=p.shape[1]) / len(rest)
    true = places[held]
    right = np.maximum(p[np.arange(len(held)), true], 1e-12)
    ranked = auroc(p[:, 1], true == 1) if p.shape[1] == 2 else float((p.argmax(1) == true).mean())
    return {
        "log_loss": float(-np.log(right).mean()),
        "constant": float(-np.log(np.maximum(shares[true], 1e-12)).mean()),
        "ranked": ranked,
    }


def over_epsilons(make, splits):
    """{epsilon: figures} with paired differences to the constant, and to the epsilon before."""
    found, before = {}, None
    for epsilon in EPSILONS:
        runs = [scored(make(split), epsilon, split) for split in range(splits)]
        gains = [run["log_loss"] - run["constant"] for run in runs]
        row = {name: statistics.mean(run[name] for run in runs) for name in runs[0]}
        row |= {"less_constant": mean_and_error(gains), "runs": runs}
        if before is not None and epsilon < math.inf:
            rises = [one["ranked"] - other["ranked"] for one, other in zip(runs, before)]
            row["rise"] = mean_and_error(rises)
        found[f"{epsilon:g}"], before = row, runs
    return found


def regressions(columns, splits):
    """{way: R2} of tables with so many columns, beside ridge without privacy."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = {name: [] for name in (*WAYS, "ridge without privacy")}
    for split in range(splits):
        x, y, bounds = random_tables.regression(
            FIRST_SEED + split, REGRESSION_ROWS * 5 // 4, columns
        )
        held, rest = held_out(split, len(y))
        for name, (wider, offset) in WAYS.items():
            low, high = bounds
            middle, half = (low + high) / 2 + offset, (high - low) / 2
            given = (
                {} if wider is None else {"bounds": (middle - wider * half, middle + wider * half)}
            )
            model = minidp.fit(
                x[rest] + offset,
                y[rest],
                epsilon=1.0,
                delta=DELTA,
                target_bounds=(-4, 4),
                dataset_size=len(rest),
                seed=split,
                quiet=True,
                **given,
            )
            found[name].append(model.score(x[held] + offset, y[held]))
        ridge = make_pipeline(StandardScaler(), Ridge()).fit(x[rest], y[rest])
        found["ridge without privacy"].append(ridge.score(x[held], y[held]))
    return {name: {**mean_and_error(scores), "runs": scores} for name, scores in found.items()}


def limits_and_rows(splits):
    """R2 with limits of the target that are too wide, and with more rows and more epsilon."""
    found = {}
    cases = [("target limits", (5000, 1.0, wider)) for wider in (1, 10, 100)]
    cases += [("rows", (rows, 1.0, 1)) for rows in (3000, 10_000, MOST_ROWS)]
    cases += [("epsilon", (5000, epsilon, 1)) for epsilon in (0.5, 1.0, 2.0, 4.0)]
    for what, (rows, epsilon, wider) in cases:
        scores = []
        for split in range(splits):
            seed = FIRST_SEED + split
            x, y, bounds = random_tables.regression(seed, MOST_ROWS + HELD, 15)
            model = minidp.fit(
                x[:rows],
                y[:rows],
                epsilon=epsilon,
                delta=DELTA,
                bounds=bounds,
                target_bounds=(-4 * wider, 4 * wider),
                dataset_size=rows,
                seed=split,
                quiet=True,
            )
            scores.append(model.score(x[MOST_ROWS:], y[MOST_ROWS:]))
        name = f"{what}: {rows} rows, epsilon {epsilon:g}, limits {wider} times as wide"
        found[name] = mean_and_error(scores) | {"runs": scores}
        print(f"{name}: R2 {found[name]['mean']:.4f}", flush=True)
    return found


def of_scikit_learn(splits):
    """Accuracy, or R2, on tables that come with scikit-learn, within bounds that are powers of ten,
    beside logistic or ridge regression without privacy.
    """
    from sklearn import datasets
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = {}
    for name in ("breast_cancer", "digits", "wine", "diabetes"):
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        high = 10.0 ** np.ceil(np.log10(np.abs(x).max(axis=0).clip(1e-3)))
        low = np.where(x.min(axis=0) < 0, -high, 0)
        given, other = {"classes": np.unique(y)}, LogisticRegression(max_iter=1000)
        if name == "diabetes":
            given, other = {"target_bounds": (0, 1000)}, Ridge()
        scores, others = [], []
        for split in range(splits):
            held, rest = held_out(split, len(y))
            given |= {"bounds": (low, high), "dataset_size": len(rest), "seed": split}
            model = minidp.fit(x[rest], y[rest], epsilon=1.0, delta=DELTA, quiet=True, **given)
            scores.append(model.score(x[held], y[held]))
            without = make_pipeline(StandardScaler(), other).fit(x[rest], y[rest])
            others.append(without.score(x[held], y[held]))
        found[name] = {
            "minidp": mean_and_error(scores),
            "without privacy": mean_and_error(others),
            "runs": scores,
        }
        print(f"{name}: {found[name]['minidp']} {found[name]['without privacy']}", flush=True)
    return found


def figures(args):
    """Measure and print; returns what is written."""
    splits = 1 if args.smoke else args.repeats
    if args.part == "limits":
        return {
            "delta": DELTA,
            "limits and rows": limits_and_rows(splits),
            "scikit-learn": of_scikit_learn(splits),
        }
    makers = {
        f"{rows} x {columns}, {classes} classes": partial(synthetic, (rows, columns, classes))
        for rows, columns, classes in (SYNTHETIC[:1] if args.smoke else SYNTHETIC)
    }
    hashes = {}
    if not args.smoke:
        table, label, hashes["adult"] = adult.load(args.data_dir)
        makers["Adult"] = partial(of_adult, table, label)
        x, y, person, hashes["rand"] = persons.load(args.data_dir)
        makers["RAND"] = partial(of_rand, x, y, person)
    found = {}
    for name, make in makers.items():
        found[name] = over_epsilons(make, splits)
        for epsilon, row in found[name].items():
            print(
                f"{name:24} epsilon {epsilon:4} log loss {row['log_loss']:.4f} (constant "
                f"{row['constant']:.4f}), AUROC or accuracy {row['ranked']:.4f}",
                flush=True,
            )
    numbers = {}
    for columns in REGRESSIONS[:1] if args.smoke else REGRESSIONS:
        numbers[str(columns)] = regressions(columns, min(splits, 5))
        for name, row in numbers[str(columns)].items():
            print(f"{columns} columns, {name}: R2 {row['mean']:.4f}", flush=True)
    return {
        "delta": DELTA,
        "sha256": hashes,
        "classes": found,
        "regressions": numbers,
    }


@dataclass(frozen=True)
class Flags(TableFlags):
    """The flags."""

    repeats: int = option(10, "splits and seeds")
    part: str = option("all", "all, or limits: limits of targets, rows, tables of scikit-learn")


main = main_of_table("tables.py", __doc__, Flags, figures)

if __name__ == "__main__":
    main()
