"""Accuracy of `minidp.fit` with its defaults on data that they were not tuned on.

    python -m tools.own_data --json experiments/results/own_data.json

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
from minidp.commands.flags import Parser
from minidp.run.versions import git_commit, versions
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


def measure(make, delta=1e-4):
    """The scores of the defaults on one data set, a split each, and what they cost."""
    x, y, named = make()
    scores, plain, spent = [], [], []
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(len(y))
        held, rest = order[: len(y) // 5], order[len(y) // 5 :]
        how = {"epsilon": 1.0, "delta": delta, "dataset_size": len(rest), "seed": split}
        model = minidp.fit(x[rest], y[rest], quiet=True, **how, **named)
        scores.append(model.score(x[held], y[held]))
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
        "choices": model.record.choices,
    }
    if plain:
        found["without_privacy"] = statistics.mean(plain)
    return found


def main(argv=None):
    """Measure, print, and write JSON; returns the exit status."""
    parser = Parser(prog="python -m tools.own_data", description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    args = parser.parse_args(argv)
    found = {make.__name__: measure(make) for make in (digits, breast_cancer, regression)}
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


if __name__ == "__main__":
    sys.exit(main())
