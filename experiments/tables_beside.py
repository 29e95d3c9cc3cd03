"""Adult and RAND at epsilon 1 by other libraries, with the same public bounds and splits.

    python experiments/tables_beside.py --peer dp-ebm --data-dir DIR --json FILE
    python experiments/tables_beside.py --peer diffprivlib --data-dir DIR --json FILE
    python experiments/tables_beside.py --peer minidp --data-dir DIR --json FILE
    python experiments/tables_beside.py --peer time --json FILE

The first needs `pip install interpret-core` (DP-EBM, Nori et al. 2021, arXiv:2106.09680), the
second an environment of its own: `pip install diffprivlib==0.6.6 'scikit-learn<1.5'`. All have
their defaults, delta 1e-5 where they know one, and five splits with a fifth of the rows, or of
RAND's persons, held out. The guarantee is for rows; seconds are the processor's. The last compares
minidp with DP-EBM on large synthetic tables, in one process with one thread.
"""

import time
from dataclasses import dataclass
from types import SimpleNamespace

import common

common.start(__name__)

from common.tables import TableFlags, auroc, held_out, log_loss, main_of_table, mean_and_error

import adult
import numpy as np
import persons

import minidp
from minidp.data.schema import Schema
from minidp.errors import ParameterError
from minidp.run.options import option

DELTA = 1e-5
PEERS = ("minidp", "dp-ebm", "diffprivlib", "time")
TIMED = (200_000, 1_000_000)  # rows of 20 columns
OTHER = "another"  # of the categories
OF_DIFFPRIVLIB = ("LogisticRegression", "GaussianNB")


def schema_of_rand():
    """RAND's columns as a schema: all are numbers within their public bounds."""
    return {
        name: {"type": "number", "low": low, "high": high, "gaps": False}
        for name, (low, high) in persons.BOUNDS.items()
    }


def of_minidp(schema):
    """{name: fit(table, labels, seed) -> a model with predict_proba}."""

    def fit(x, y, seed):
        return minidp.fit(
            x,
            y,
            epsilon=1.0,
            delta=DELTA,
            schema=schema,
            classes=[False, True],
            dataset_size=len(y),
            seed=seed,
            quiet=True,
        )

    return {"minidp": fit}


def of_dp_ebm(schema):
    """The same by DP-EBM: numbers with their bounds, categories as the schema lists them."""
    from interpret.privacy import DPExplainableBoostingClassifier

    columns = [column for column in Schema.of(schema).inputs]
    kinds = [
        [*column.values, OTHER] if column.type == "category" else "continuous" for column in columns
    ]
    bounds = {
        place: (column.low, column.high)
        for place, column in enumerate(columns)
        if column.type != "category"
    }

    def rows(x):
        kind = object if len(bounds) < len(columns) else float
        found = np.empty((len(next(iter(x.values()))), len(columns)), kind)
        for place, column in enumerate(columns):
            cells = x[column.name]
            if column.type == "category":
                known = [str(cell).strip() for cell in cells]
                cells = [cell if cell in column.values else OTHER for cell in known]
            found[:, place] = np.array(cells, float if place in bounds else object)
        return found

    def fit(x, y, seed):
        model = DPExplainableBoostingClassifier(
            feature_types=kinds,
            privacy_bounds=bounds,
            epsilon=1.0,
            delta=DELTA,
            random_state=seed,
            n_jobs=1,
        )
        model.fit(rows(x), y)
        return SimpleNamespace(predict_proba=lambda new: model.predict_proba(rows(new)))

    return {"DP-EBM": fit}


def of_diffprivlib(schema):
    """The same by two models of diffprivlib, on rows that the schema encodes."""
    from diffprivlib import models

    described = Schema.of(schema)
    told = {
        "LogisticRegression": {"data_norm": len(described.inputs) ** 0.5},
        "GaussianNB": {"bounds": (-1, 1)},
    }

    def of(kind):
        def fit(x, y, seed):
            model = getattr(models, kind)(epsilon=1.0, random_state=seed, **told[kind])
            model.fit(described.encode(x), y)
            return SimpleNamespace(
                predict_proba=lambda new: model.predict_proba(described.encode(new))
            )

        return fit

    return {f"diffprivlib {kind}": of(kind) for kind in OF_DIFFPRIVLIB}


def measure(table, label, units, fit, splits):
    """Accuracy, AUROC, log loss and seconds over splits of the units, of which rows are."""
    runs = []
    for split in range(splits):
        held = np.isin(units, held_out(split, np.unique(units))[0])
        began = time.process_time()
        model = fit(adult.rows_of(table, ~held), label[~held], split)
        seconds = time.process_time() - began
        score = model.predict_proba(adult.rows_of(table, held))[:, 1]
        runs.append(
            {
                "accuracy": float(((score > 0.5) == label[held]).mean()),
                "auroc": auroc(score, label[held]),
                "log_loss": log_loss(label[held], score),
                "seconds": seconds,
            }
        )
    return {name: mean_and_error([run[name] for run in runs]) for name in runs[0]} | {"runs": runs}


def times():
    """Seconds of the processor for a fit, and AUROC on rows held out."""
    found = {}
    names = [f"x{place}" for place in range(20)]
    schema = {name: {"type": "number", "low": -5, "high": 5, "gaps": False} for name in names}
    fits = of_minidp(schema) | of_dp_ebm(schema)
    for rows in TIMED:
        rng = np.random.default_rng(rows)
        x = rng.normal(size=(rows + 20_000, 20))
        logits = x @ rng.normal(size=20) / 3 + np.sin(2 * x[:, 0])
        y = rng.random(len(x)) < 1 / (1 + np.exp(-logits))
        table = dict(zip(names, x.T))
        held = np.arange(len(x)) >= rows
        for who, fit in fits.items():
            fit(adult.rows_of(table, np.arange(len(x)) < 3000), y[:3000], 0)  # compiles, imports
            began = time.process_time()
            model = fit(adult.rows_of(table, ~held), y[~held], 0)
            seconds = time.process_time() - began
            score = model.predict_proba(adult.rows_of(table, held))[:, 1]
            row = {"cpu_seconds": seconds, "auroc": auroc(score, y[held])}
            found[f"{who}, {rows:,} x 20"] = row
            print(f"{who}, {rows:,} x 20: {seconds:.1f} s, AUROC {row['auroc']:.4f}", flush=True)
    return {"delta": DELTA, "figures": found}


def figures(args):
    """Measure and print; returns what is written."""
    if args.peer not in PEERS:
        raise ParameterError(f"--peer: expected one of {', '.join(PEERS)}, got {args.peer!r}")
    if args.peer == "time":
        return times()
    fits_of = {"minidp": of_minidp, "dp-ebm": of_dp_ebm, "diffprivlib": of_diffprivlib}[args.peer]
    table, income, adult_hash = adult.load(args.data_dir)
    x, visits, person, rand_hash = persons.load(args.data_dir)
    rand = dict(zip(persons.BOUNDS, x.T))
    found = {}
    for name, columns, label, units, schema in (
        ("Adult", table, income == ">50K", np.arange(len(income)), adult.schema()),
        ("RAND", rand, visits == 1, person, schema_of_rand()),
    ):
        for who, fit in fits_of(schema).items():
            found[f"{who}, {name}"] = row = measure(columns, label, units, fit, args.splits)
            print(
                f"{name} by {who}: accuracy {row['accuracy']['mean']:.2%}, AUROC "
                f"{row['auroc']['mean']:.4f}, log loss {row['log_loss']['mean']:.4f}, "
                f"{row['seconds']['mean']:.1f} s",
                flush=True,
            )
    return {"delta": DELTA, "sha256": {"adult": adult_hash, "rand": rand_hash}, "figures": found}


@dataclass(frozen=True)
class Flags(TableFlags):
    """The flags."""

    peer: str = option("minidp", "whose models: minidp, dp-ebm or diffprivlib")


main = main_of_table("tables_beside.py", __doc__, Flags, figures)

if __name__ == "__main__":
    main()
