"""A figure of the paper as data: the runs that it needs, the numbers from them, and its picture;
and the numbers behind claims of the text.

A figure's `points` are its runs; `summary` takes {name of a point: its results, one a seed}.
"""

import bisect
import statistics
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from minidp.privacy import Gaussian, JointGaussian, Ledger, PoissonSampled
from minidp.privacy.accountants import make

from .plots import draw_runs
from .results import look_up
from .sweeps import NO_LOT


class Figure(NamedTuple):
    """points(smoke) -> list of Point; summary(results, smoke) -> dict; draw(path, summary)."""

    points: Callable
    summary: Callable
    draw: Callable


def constant(rate):
    """The flags of a constant learning rate."""
    return f"--learning-rate {rate} --final-learning-rate {rate}"


def row(name, results):
    """The row of one point of a figure: accuracy over the seeds, lots, epsilon by the accountant
    that stopped the runs.
    """
    first = results[0]
    if first["stopped"] == NO_LOT:
        return {"name": name, "steps": 0, "reason": first["reason"], "seeds": len(results)}
    accuracy = [result["test_accuracy"] for result in results]
    spent = [result["epsilon"][result["accountant"]]["upper"] for result in results]
    return {
        "name": name,
        "seeds": len(results),
        "steps": first["steps"],
        "epochs": first["epochs"],
        "learning_rate": first["settings"].get("learning_rate"),
        "epsilon": max(spent, key=float),
        "test_accuracy": statistics.mean(accuracy),
        "lowest": min(accuracy),
        "highest": max(accuracy),
        "test_accuracy_by_seed": accuracy,
    }


def levels(about, results):
    """Accuracy against epochs at each privacy level.

    about: {level: (name of its point, further entries)}. Curves are means over the seeds, of test
    accuracy also its range.
    """
    found = {}
    for level, (name, entries) in about.items():
        runs = results[name]
        (group, *_) = runs[0]["settings"]["clip_groups"]
        found[level] = {
            **row(name, runs),
            "label": f"sigma {group['noise_multiplier']:.3g}",
            "train_accuracy_not_private": _mean(runs, "train_accuracy"),
            "curves": _curves([run["history"] for run in runs]),
            **entries,
        }
        if "test_accuracy_over_views" in runs[0]:
            found[level]["test_accuracy_over_views"] = _mean(runs, "test_accuracy_over_views")
    return {"levels": found}


def _mean(runs, path):
    return statistics.mean(look_up(run, path) for run in runs)


def _curves(histories):
    rows = min(len(history["epoch"]) for history in histories)

    def over(column, what):
        return [what(history[column][i] for history in histories) for i in range(rows)]

    delta = histories[0].get("delta_at_epsilon")
    return {
        "epoch": histories[0]["epoch"][:rows],
        "test_accuracy": over("test_accuracy", statistics.mean),
        "lowest": over("test_accuracy", min),
        "highest": over("test_accuracy", max),
        "train_accuracy_not_private": over("train_accuracy_not_private", statistics.mean),
        "delta_at_epsilon": delta and delta[:rows],
    }


def best_at(results, delta, epsilons):
    """The best accuracy over noise levels and lots at (epsilon, delta), for each epsilon.

    A run of T lots is, with the same seed, the beginning of every longer one, so one run at each
    noise level serves every pair: its accuracy is read at the last epoch that the pair still
    allows; None where nothing fits.
    """
    none = {"test_accuracy": None, "name": None, "steps": 0}
    found = {epsilon: {"epsilon": epsilon, "delta": delta, **none} for epsilon in epsilons}
    for name, runs in results.items():
        rows = min(len(run["history"]["step"]) for run in runs)
        spent = spending(runs[0], delta)
        for epsilon, pair in found.items():
            at = bisect.bisect_right(range(rows), epsilon, key=spent) - 1
            if at < 0:
                continue
            each = [run["history"]["test_accuracy"][at] for run in runs]
            mean = statistics.mean(each)
            if pair["test_accuracy"] is None or mean > pair["test_accuracy"]:
                pair |= {
                    "test_accuracy": mean,
                    "test_accuracy_by_seed": each,
                    "name": name,
                    "steps": int(runs[0]["history"]["step"][at]),
                }
    return list(found.values())


def spending(result, delta):
    """A function of the row of a run's history: its certified epsilon by the loss distribution, PCA
    included.
    """
    settings, steps = result["settings"], result["history"]["step"]
    sigmas = tuple(group["noise_multiplier"] for group in settings["clip_groups"])
    pca, probability = settings.get("pca_noise_multiplier"), settings["sampling_probability"]
    return lambda row: spent(pca, probability, sigmas, int(steps[row]), delta)


@cache
def spent(pca, probability, sigmas, steps, delta):
    """The same by its noise multipliers: PCA's, None without PCA, and the clip groups'."""
    setup = [] if pca is None else [(Gaussian(pca),)]
    ledger = Ledger(entries=[*setup, (PoissonSampled(probability, JointGaussian(sigmas)), steps)])
    return make("pld", ledger.relation).epsilon(ledger, delta).upper


class NotMeasured(Exception):
    """A claim's run is missing or has no such figure; the message says which and why."""


class Runs:
    """The results behind the claims, by name, of some seeds."""

    def __init__(self, results, smoke, seeds):
        self.results, self.smoke = {}, smoke
        for name, runs in results.items():
            if chosen := [run for run in runs if run["seed"] in seeds]:
                self.results[name] = chosen

    def of(self, name):
        """The results of a point. Raises NotMeasured."""
        if name not in self.results:
            raise NotMeasured(f"{name} has not been run")
        if self.results[name][0]["stopped"] == NO_LOT:
            raise NotMeasured(f"{name}: {NO_LOT}")
        return self.results[name]

    def each(self, name, path):
        """The value at a dotted path of each result. Raises KeyError if a result lacks it."""
        return [look_up(run, path) for run in self.of(name)]

    def accuracy(self, name):
        """Mean test accuracy."""
        return _mean(self.of(name), "test_accuracy")

    def train_gap(self, name):
        """Mean training accuracy minus mean test accuracy."""
        return _mean(self.of(name), "train_accuracy") - self.accuracy(name)

    def at(self, row, name, column="test_accuracy"):
        """Mean of a column of the histories at a row, or at the last if there are fewer."""
        return statistics.mean(
            found[min(row, len(found) - 1)] for found in self.each(name, f"history.{column}")
        )

    def median_norm(self, name, layer):
        """The median over lots of a layer's median norms; lots whose gradients were not finite have
        none.
        """
        found = self.each(name, f"median_norms_not_private.{layer}")
        norms = [norm for run in found for norm in run if norm is not None]
        if not norms:
            raise NotMeasured(f"{name}: no finite norm of {layer}")
        return statistics.median(norms)


def gain(name, other):
    """A claim: the mean test accuracy of a point minus that of another."""

    def found(of):
        return of.accuracy(name) - of.accuracy(other)

    return found


def best(accuracies):
    """Where the accuracy is highest."""
    return max(accuracies, key=accuracies.get)


def spread(values):
    """The greatest value minus the least."""
    values = list(values)
    return max(values) - min(values)


def claims_figure(claims, points, **more):
    """Claims, {name: function of Runs}, as a Figure; summary: {"quantities": {name: number or
    None}, "not_measured": ...}.

    A claim is evaluated for each seed, and its quantity is the mean; where something is best, by
    the mean accuracies.
    """

    def summary(results, smoke):
        seeds = sorted({run["seed"] for runs in results.values() for run in runs})
        quantities, missing = evaluate(claims, Runs(results, smoke, seeds))
        each = [evaluate(claims, Runs(results, smoke, [seed]))[0] for seed in seeds]
        values = {
            name: [found[name] for found in each if found[name] is not None] for name in claims
        }
        for name, found in values.items():
            if found and not name.startswith("best_"):
                quantities[name] = statistics.mean(found)
        return {
            **more,
            "quantities": quantities,
            "quantities_by_seed": values,
            "not_measured": missing,
        }

    return Figure(points, summary, draw_runs)


def evaluate(claims, of):
    """({claim: number or None}, {claim: why there is none}). KeyError for a misspelt column."""
    found, missing = dict.fromkeys(claims), {}
    for name, expression in claims.items():
        try:
            found[name] = expression(of)
        except NotMeasured as reason:
            missing[name] = str(reason)
    return found, missing
