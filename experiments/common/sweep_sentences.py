"""What the text of Section 5.2 claims beside its figures, as numbers from runs; expected.json says
what it expects.

Accuracies are differences in fractions of the test set. Every number's sentence is in
expected.json.
"""

import statistics
from functools import partial

from minidp.util.files import read_json

from .sweep_figures import (
    LEVELS,
    NO_LOT,
    PANELS,
    REFERENCE,
    UNWATCHED,
    Figure,
    best_at,
    budget_points,
    constant,
    panel_points,
    panel_summary,
)
from .sweep_plots import draw_panels, draw_runs
from .sweeps import Point
from .verdicts import RESULTS, look_up

EARLY, LAST = 4, -1  # rows of a history, an epoch a row: after 5 epochs, and at the end
EXTRA = [
    Point(name, f"{flags} {UNWATCHED}", script)
    for name, flags, script in (
        ("two-hidden-layers", "--first-hidden 500 --hidden 500", "mnist_variants"),
        ("trained-60-units", "--projection none --first-hidden 60", "mnist_variants"),
        ("falling-noise", "--noise-multiplier 6 --final-noise-multiplier 3", "mnist_variants"),
        ("watched-norms", "--watch-norms --epochs 50", "mnist_variants"),
        ("median-clip-norm", "--clip-norm 0.1", "mnist_pca"),  # the medians of the watched norms
        ("pca-noise-4", "--pca-noise-multiplier 4", "mnist_pca"),
        ("pca-noise-16", "--pca-noise-multiplier 16", "mnist_pca"),
        ("large-rate", constant(0.2), "mnist_pca"),
        ("large-rate-less-noise", f"{constant(0.2)} --noise-multiplier 2", "mnist_pca"),
        ("timed-with-pca", "--steps 300", "mnist_pca"),
        ("timed-without-pca", "--projection none --steps 300", "mnist_pca"),
    )
] + [Point("baseline", "--accountant moments --baseline")]
PCA_NOISES = ("noise-medium", "pca-noise-4", "pca-noise-16")
BUDGET_RUNS = [point.name for point in budget_points(False)]
TRAIN = "train_accuracy_not_private"

CLAIMS = {  # name: expression over the runs
    "no_pca_costs": lambda of: of.gain("noise-medium", "projection-none"),
    "random_projection": lambda of: of.accuracy("projection-random"),
    "pca_over_random": lambda of: (
        min(*of.panel("a").values(), *map(of.accuracy, PCA_NOISES))
        - of.accuracy("projection-random")
    ),
    "best_pca_dimension": lambda of: best(of.panel("a")),
    "pca_dimension_spread": lambda of: spread(of.panel("a").values()),
    "pca_noise_spread": lambda of: spread(map(of.accuracy, PCA_NOISES)),
    "most_hidden_units_over_fewest": lambda of: (
        of.at(LAST, "hidden-2000") - of.at(LAST, "hidden-200")
    ),
    "larger_network_ahead_early": lambda of: (
        of.at(EARLY, "hidden-2000") - of.at(EARLY, "hidden-200")
    ),
    "time_without_pca": lambda of: (  # the least, since other jobs on the machine only add
        min(of.each("timed-without-pca", "seconds_per_step"))
        / min(of.each("timed-with-pca", "seconds_per_step"))
    ),
    "one_layer_over_two": lambda of: of.gain("noise-medium", "two-hidden-layers"),
    "pca_over_trained_layer": lambda of: of.gain("noise-medium", "trained-60-units"),
    "best_lot_size": lambda of: best(of.panel("c")),
    "lot_size_spread": lambda of: spread(of.panel("c").values()),
    "noise_level_spread": lambda of: spread(of.panel("f").values()),
    "rate_spread": lambda of: spread(usual_rates(of)),
    "best_rate": lambda of: best(of.panel("d")),
    "large_rate_costs": lambda of: max(usual_rates(of)) - of.accuracy("large-rate"),
    "less_noise_regains": lambda of: of.gain("large-rate-less-noise", "large-rate"),
    "falling_noise_gains": lambda of: of.gain("falling-noise", "noise-medium"),
    "median_clip_norm_gains": lambda of: of.gain("median-clip-norm", "noise-medium"),
    "median_norm_hidden_not_private": lambda of: of.median_norm("watched-norms", "dense1"),
    "private_gap_not_private": lambda of: max(
        (
            of.accuracy(point.name, "train_accuracy") - of.accuracy(point.name)
            for point in LEVELS.points(False)
        ),
        key=abs,
    ),
    "baseline_gap_late": lambda of: of.at(LAST, "baseline", TRAIN) - of.at(LAST, "baseline"),
    "accuracy_at_quarter_epsilon": lambda of: of.budget(0.25, 1e-2),
    "over_epsilon": lambda of: of.budget(8.0, 1e-5) - of.budget(0.5, 1e-5),
    "over_delta": lambda of: of.budget(2.0, 1e-2) - of.budget(2.0, 1e-5),
}


class NotMeasured(Exception):
    """A claim's run was not made, or has nothing to say; its text says which and why."""


class Runs:
    """The results behind the claims, by name, of some seeds."""

    def __init__(self, results, smoke, seeds):
        chosen = {
            name: [run for run in runs if run["seed"] in seeds] for name, runs in results.items()
        }
        self.results, self.smoke = {name: runs for name, runs in chosen.items() if runs}, smoke

    def of(self, name):
        """The results of a point. Raises NotMeasured."""
        if name not in self.results:
            raise NotMeasured(f"{name} has not been run")
        if self.results[name][0]["stopped"] == NO_LOT:
            raise NotMeasured(f"{name}: {NO_LOT}")
        return self.results[name]

    def each(self, name, path):
        """What is at a dotted path of each result. KeyError where there is no such path."""
        return [look_up(run, path) for run in self.of(name)]

    def accuracy(self, name, path="test_accuracy"):
        """Mean test accuracy, or training accuracy."""
        return statistics.mean(self.each(name, path))

    def gain(self, name, other):
        """Mean test accuracy less that of another point."""
        return self.accuracy(name) - self.accuracy(other)

    def panel(self, letter):
        """{x: mean accuracy} of a panel of Figure 5, without its horizontal lines."""
        return {
            x: self.accuracy(point.name)
            for x, point in PANELS[letter].points(self.smoke).items()
            if not isinstance(x, str)
        }

    def at(self, row, name, column="test_accuracy"):
        """Mean of a column of the histories at a row, or at the last if there are fewer."""
        return statistics.mean(
            found[min(row, len(found) - 1)] for found in self.each(name, f"history.{column}")
        )

    def median_norm(self, name, layer):
        """The median over lots of a layer's median norms; lots whose gradients were not finite have
        none.
        """
        norms = [
            norm
            for found in self.each(name, f"median_norms_not_private.{layer}")
            for norm in found
            if norm is not None
        ]
        if not norms:
            raise NotMeasured(f"{name}: no finite norm of {layer}")
        return statistics.median(norms)

    def budget(self, epsilon, delta):
        """Accuracy of a pair of Figure 4."""
        (found,) = (
            pair["test_accuracy"]
            for pair in best_at({name: self.of(name) for name in BUDGET_RUNS}, delta)
            if pair["epsilon"] == epsilon
        )
        if found is None:
            raise NotMeasured(f"nothing fits epsilon {epsilon:g}, delta {delta:g}")
        return found


def points(smoke):
    """The claims' runs: those of Figures 4 and 5 that they need, and a few of their own."""
    # smoke sets the epochs
    mine = [point for point in EXTRA if not (smoke and "--steps" in point.flags)]
    return list(
        dict.fromkeys([*mine, REFERENCE, *panel_points("abcdef", smoke), *budget_points(smoke)])
    )


def claims_figure(claims, points, **more):
    """Claims as a Figure; summary: {"quantities": {name: number or None}, "not_measured": ...}.

    A claim is evaluated for each seed, and its quantity is the mean; where something is best, by
    the mean accuracies.
    """

    def summary(results, smoke):
        seeds = sorted({run["seed"] for runs in results.values() for run in runs})
        together, missing = evaluate(claims, Runs(results, smoke, seeds))
        each = [evaluate(claims, Runs(results, smoke, [seed]))[0] for seed in seeds]
        values = {
            name: [found[name] for found in each if found[name] is not None] for name in claims
        }
        means = {
            name: statistics.mean(found)
            for name, found in values.items()
            if found and not name.startswith("best_")
        }
        return {
            **more,
            "quantities": together | means,
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


def usual_rates(of):
    """Accuracies at the rates that the paper calls stable."""
    return [accuracy for rate, accuracy in of.panel("d").items() if rate <= 0.07]


def best(accuracies):
    """Where the accuracy is highest."""
    return max(accuracies, key=accuracies.get)


def spread(values):
    """Greatest less least."""
    values = list(values)
    return max(values) - min(values)


def tuned_summary(results, smoke):
    """The panel of lot sizes with a rate for each, beside the committed one with one rate; and
    where it is best.
    """
    panels = {
        "c": read_json(RESULTS / "figure_5.json")["panels"]["c"],
        **panel_summary(["c-tuned"], results, smoke)["panels"],
    }
    fewest = min(point["seeds"] for panel in panels.values() for point in panel["points"])
    return TUNED.summary(results, smoke) | {"panels": panels, "fewest_seeds": fewest}


SENTENCES = claims_figure(CLAIMS, points)
TUNED = claims_figure(
    {"best_tuned_lot_size": lambda of: best(of.panel("c-tuned"))},
    partial(panel_points, ["c-tuned"]),
)
TUNED_LOTS = TUNED._replace(summary=tuned_summary, draw=draw_panels)
