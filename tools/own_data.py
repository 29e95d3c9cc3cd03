"""Accuracy of `minidp.fit` with its defaults on data that they were not tuned on.

    python -m tools.own_data --json experiments/results/own_data.json
    python -m tools.own_data --synthetic    # one default changed, where tuning costs no privacy

The data are scikit-learn's digits and breast cancer, and a synthetic regression. Each figure is the
mean over five random splits, with a fifth of the rows held out. The split's number seeds the fit
too, so that the figures can be repeated. Nothing may be tuned by looking at them.
"""

import re
import statistics
import sys

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LinearRegression

import minidp
from experiments.datasets.strokes import load_strokes
from minidp.commands.flags import Parser
from minidp.run.result import git_commit, versions
from minidp.util.files import write_json

SPLITS = 5


def digits():
    """digits of 8 x 8 pixels, ten classes; rows in unit norm"""
    return *load_digits(return_X_y=True), {"scale": "unit-norm", "classes": range(10)}


def breast_cancer():
    """breast cancer, 30 features; public bounds, from the table in the data set's description"""
    found = load_breast_cancer()
    table = re.findall(
        r"^ *(.+) \((mean|standard error|worst)\): +([\d.]+) +([\d.]+)$", found.DESCR, re.M
    )
    low, high = np.array([(float(least), float(most)) for _, _, least, most in table]).T
    return found.data, found.target, {"bounds": (low, high), "classes": (0, 1)}


def regression():
    """synthetic regression on eight variables, of which five matter (Friedman 1991, equation 61)"""
    rng = np.random.default_rng(8)
    x = rng.uniform(size=(20_000, 8))
    y = (
        10 * np.sin(np.pi * x[:, 0] * x[:, 1])
        + 20 * (x[:, 2] - 0.5) ** 2
        + 10 * x[:, 3]
        + 5 * x[:, 4]
    )
    return x, y + rng.normal(size=len(y)), {"bounds": (0, 1), "target_bounds": (0, 30)}


def synthetic_digits():
    """synthetic digits of 7 x 7 pixels"""
    found = load_strokes((2000, 1), progress=False)
    return (
        found.x_train.reshape((-1, 7, 4, 7, 4)).mean((2, 4)).reshape((-1, 49)),
        found.y_train,
        {"classes": range(10)},
    )


def synthetic_table():
    """a synthetic table: thirty features that mix, two classes"""
    rng = np.random.default_rng(1)
    y, mix = rng.choice(2, 1000, p=(0.62, 0.38)), rng.normal(size=(7, 30)) / 7**0.5
    x = (
        0.9 * rng.normal(size=(1000, 7)) @ mix
        + 0.45 * rng.normal(size=(1000, 30))
        + 0.36 * rng.normal(size=(2, 30))[y]
    )
    return x, y, {"classes": (0, 1)}


def synthetic_regression():
    """a synthetic regression on eight variables"""
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (3000, 8))
    y = (x @ (1, -0.8, 0.6, 0.4, -0.3, 0.2, 0.1, 0) + np.sin(3 * x[:, 0]) * x[:, 1] / 2) / 3.5
    return x, y + rng.normal(size=3000) / 30, {"bounds": (-1, 1), "target_bounds": (-1, 1)}


def schema_table():
    """a synthetic table with a schema: skewed numbers, seven categories, some that interact"""
    rng, rows, sizes = np.random.default_rng(5), 20_000, (8, 7, 14, 6, 5, 2, 40)
    x = {
        "age": rng.gamma(6, 7, rows).clip(17, 90),
        "hours": np.clip(40 + rng.normal(size=rows) * 12, 1, 99),
        "gain": np.where(rng.random(rows) < 0.1, rng.lognormal(8, 1, rows), 0).clip(0, 99_999),
        "level": rng.integers(1, 17, rows).astype(float),
    }
    cells = [rng.choice(size, rows, p=rng.dirichlet(np.ones(size))) for size in sizes]
    z = 0.9 * (1 - ((x["age"] - 48) / 20) ** 2).clip(-2) + 0.03 * x["hours"] + 0.28 * x["level"]
    z += np.where(x["gain"] > 5000, 3, 0) + ((cells[0] == 0) & (x["level"] > 9))
    for size, found in zip(sizes[:6], cells):
        z += rng.normal(size=size)[found] * 0.8
    z += rng.logistic(size=rows) * 0.8
    limits = {"age": (0, 100), "hours": (0, 99), "gain": (0, 99_999), "level": (1, 16)}
    schema: dict = {
        name: {"type": "number", "low": low, "high": high} for name, (low, high) in limits.items()
    }
    for place, (size, found) in enumerate(zip(sizes, cells)):
        x[f"c{place}"] = found
        schema[f"c{place}"] = {"type": "category", "values": list(range(size))}
    return x, (z > np.quantile(z, 0.76)).astype(int), {"schema": schema, "classes": (0, 1)}


def breast_cancer_schema():
    """breast cancer with a schema of the public bounds"""
    x, y, named = breast_cancer()
    schema = {
        str(place): {"type": "number", "low": low, "high": high}
        for place, (low, high) in enumerate(zip(*named["bounds"]))
    }
    return dict(zip(schema, x.T)), y, {"schema": schema, "classes": (0, 1)}


def rows_of(x, part):
    """These rows of an array or of a dict of columns."""
    return {name: cells[part] for name, cells in x.items()} if isinstance(x, dict) else x[part]


def changes(model):
    """{words: settings of `fit`} that differ from those of a model by one of its defaults; the
    travel eta C T stays, but by name.
    """
    settings = model.result["settings"]
    rate, steps = settings["learning_rate"], settings["planned_steps"]
    clip_norm = settings["clip_groups"][0]["clip_norm"]
    found: dict = {"the defaults": {}}
    for k in (1 / 3, 3):
        found[f"travel x {k:g}"] = {"learning_rate": k * rate}
        found[f"clip norm x {k:g}"] = {"clip_norm": k * clip_norm, "learning_rate": rate / k}
    for k in (1 / 2, 2):
        found[f"steps x {k:g}"] = {"steps": round(k * steps), "learning_rate": rate / k}
    found["a tenth of the rows in each lot"] = {"lot_size": settings["dataset_size"] // 10}
    found["a hidden layer of 32"] = {"hidden": 32}
    return found


def measure(make, delta=1e-4, **changed):
    """({"scores", "mean", ...} of one data set over the splits, the last model)."""
    x, y, named = make()
    scores, plain, spent = [], [], []
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(len(y))
        held, rest = order[: len(y) // 5], order[len(y) // 5 :]
        how = {"epsilon": 1.0, "delta": delta, "dataset_size": len(rest), "seed": split}
        how |= {"quiet": True, **named, **changed}
        model = minidp.fit(rows_of(x, rest), y[rest], **how)
        scores.append(model.score(rows_of(x, held), y[held]))
        spent.append(model.epsilon.upper)
        if "target_bounds" in named:
            linear = LinearRegression().fit(x[rest], y[rest])
            plain.append(linear.score(x[held], y[held]))
    found = {
        "about": make.__doc__,
        "rows": len(rest),
        "scores": scores,
        "mean": statistics.mean(scores),
        "delta": delta,
        "spread": statistics.stdev(scores),
        "epsilon": max(spent),
        "choices": model.result["choices"],
    }
    if plain:
        found["without_privacy"] = statistics.mean(plain)
    return found, model


def main(argv=None):
    """Measure, print, and write JSON; returns the exit status."""
    parser = Parser(prog="python -m tools.own_data", description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    parser.add_argument(
        "--synthetic",
        action="store_true",
        help="print what a default changed would give on synthetic data",
    )
    args = parser.parse_args(argv)
    if args.synthetic:
        for make in SYNTHETIC:
            for words, changed in changes(measure(make)[1]).items():
                mean = measure(make, **changed)[0]["mean"]
                print(f"{make.__doc__}, {words}: {mean:.4f}", flush=True)
        return 0
    found = {make.__name__: measure(make)[0] for make in (digits, breast_cancer, regression)}
    for name, figures in found.items():
        print(
            f"{name}: mean {figures['mean']:.4f} (standard deviation {figures['spread']:.4f}) at "
            f"epsilon {figures['epsilon']:.4f}"
        )
    if args.json:
        about = {"command": f"python -m tools.own_data --json {args.json}", "seeds": SPLITS}
        about |= {"device": "cpu", "versions": versions(), "commit": git_commit()}
        write_json(args.json, {**about, "data": found})
    return 0


SYNTHETIC = (
    synthetic_digits,
    synthetic_table,
    synthetic_regression,
    schema_table,
    breast_cancer_schema,
)

if __name__ == "__main__":
    sys.exit(main())
