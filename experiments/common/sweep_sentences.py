"""What the text of Section 5.2 claims beside its figures, as numbers from runs; expected.json says what it expects.

Accuracies are differences in fractions of the test set. Every number's sentence is in expected.json.
"""
import statistics

from .sweep_figures import NO_PCA, PANELS, RANDOM, REFERENCE, UNWATCHED, Budgets, NoiseLevels, row
from .sweep_plots import draw_runs
from .sweeps import Point

FEW_EPOCHS = 5
EXTRA = {name: Point(name, (*flags, *UNWATCHED), script) for name, script, flags in (
    ("two-hidden-layers", "mnist_variants", ("--first-hidden", 500, "--hidden", 500)),
    ("trained-60-units", "mnist_variants", ("--projection", "none", "--first-hidden", 60)),
    ("falling-noise", "mnist_variants", ("--noise-multiplier", 6, "--final-noise-multiplier", 3)),
    ("watched-norms", "mnist_variants", ("--watch-norms", "--epochs", 50)),
    ("median-clip-norm", "mnist_pca", ("--clip-norm", 0.1)),  # the medians of the watched norms
    ("pca-noise-4", "mnist_pca", ("--pca-noise-multiplier", 4)),
    ("pca-noise-16", "mnist_pca", ("--pca-noise-multiplier", 16)),
    ("large-rate", "mnist_pca", ("--learning-rate", 0.2, "--final-learning-rate", 0.2)),
    ("large-rate-less-noise", "mnist_pca", ("--learning-rate", 0.2, "--final-learning-rate", 0.2,
                                            "--noise-multiplier", 2)),
    ("timed-with-pca", "mnist_pca", ("--steps", 300)),
    ("timed-without-pca", "mnist_pca", ("--projection", "none", "--steps", 300)),
)} | {"baseline": Point("baseline", ("--accountant", "moments", "--baseline"))}


class Sentences(Budgets):
    """The sentences' runs: those of Figures 4 and 5 that they need, and a few of their own."""

    def points(self, smoke):
        self._panels = {letter: PANELS[letter].points(smoke) for letter in PANELS}
        mine = [point for point in EXTRA.values() if not (smoke and "--steps" in point.flags)]  # smoke sets the epochs
        shared = [point for points in self._panels.values() for point in points.values()]
        return list(dict.fromkeys([*mine, REFERENCE, *shared, *super().points(smoke)]))

    def summary(self, results):
        """{"quantities": {name: number}, "runs": [...]}; a quantity one of whose runs is missing is left out."""
        found = {}
        for name, quantity in {**self._structure(results), **self._training(results), **_others(results)}.items():
            try:
                found[name] = quantity()
            except KeyError:  # a run that is not there
                continue
        budgets = {point: results[point] for point in super().points(False) if point in results}
        return {"quantities": {**found, **_budget(super().summary(budgets)["pairs"])},
                "runs": [row(point, runs) for point, runs in results.items()]}

    def _accuracy(self, results, letter):
        """{x: mean accuracy} of a panel."""
        return {x: _mean(results[point]) for x, point in self._panels[letter].items() if not isinstance(x, str)}

    def _structure(self, results):
        """{name: function}: what the network and its projection do."""
        mean = lambda point: _mean(results[point])
        extra = lambda name: mean(EXTRA[name])
        panel = lambda letter: self._accuracy(results, letter)
        noises = lambda: [mean(REFERENCE), extra("pca-noise-4"), extra("pca-noise-16")]
        units = self._panels["b"]
        ahead = lambda i: _at(results[units[max(units)]], i) - _at(results[units[min(units)]], i)
        return {"no_pca_costs": lambda: mean(REFERENCE) - mean(NO_PCA), "random_projection": lambda: mean(RANDOM),
                "pca_over_random": lambda: min(*panel("a").values(), *noises()) - mean(RANDOM),
                "best_pca_dimension": lambda: _best(panel("a")),
                "pca_dimension_spread": lambda: _spread(panel("a").values()),
                "pca_noise_spread": lambda: _spread(noises()),
                "most_hidden_units_over_fewest": lambda: ahead(-1),
                "larger_network_ahead_early": lambda: ahead(FEW_EPOCHS - 1),
                "time_without_pca": lambda: (_seconds(results[EXTRA["timed-without-pca"]])
                                             / _seconds(results[EXTRA["timed-with-pca"]])),
                "one_layer_over_two": lambda: mean(REFERENCE) - extra("two-hidden-layers"),
                "pca_over_trained_layer": lambda: mean(REFERENCE) - extra("trained-60-units")}

    def _training(self, results):
        """{name: function}: what lot, rate, clip norm and noise do."""
        panel = lambda letter: self._accuracy(results, letter)
        extra = lambda name: _mean(results[EXTRA[name]])
        usual = lambda: [accuracy for rate, accuracy in panel("d").items() if rate <= 0.07]
        return {"best_lot_size": lambda: _best(panel("c")), "lot_size_spread": lambda: _spread(panel("c").values()),
                "noise_level_spread": lambda: _spread(panel("f").values()),
                "rate_spread": lambda: _spread(usual()), "best_rate": lambda: _best(panel("d")),
                "large_rate_costs": lambda: max(usual()) - extra("large-rate"),
                "less_noise_regains": lambda: extra("large-rate-less-noise") - extra("large-rate"),
                "falling_noise_gains": lambda: extra("falling-noise") - _mean(results[REFERENCE]),
                "median_clip_norm_gains": lambda: extra("median-clip-norm") - _mean(results[REFERENCE]),
                "best_clip_norm": lambda: _best(panel("e")), "clip_spread": lambda: _spread(panel("e").values())}

    draw = staticmethod(draw_runs)


def _others(results):
    """{name: function}: medians of unclipped norms, and training less test accuracy."""
    norms = lambda layer: statistics.median(norm for run in results[EXTRA["watched-norms"]]
                                            for norm in run["median_norms_not_private"][layer])
    private = lambda: max((run["train_accuracy"] - run["test_accuracy"] for point in NoiseLevels().points(False)
                           for run in results[point]), key=abs)
    baseline = lambda i: (_at(results[EXTRA["baseline"]], i, "train_accuracy_not_private")
                          - _at(results[EXTRA["baseline"]], i))
    return {"median_norm_hidden_not_private": lambda: norms("dense1"),
            "median_norm_softmax_not_private": lambda: norms("dense2"), "private_gap_not_private": private,
            "baseline_gap_early": lambda: baseline(FEW_EPOCHS - 1), "baseline_gap_late": lambda: baseline(-1)}


def _budget(pairs):
    """Figure 4 in numbers; left out where nothing fits."""
    best = {(pair["epsilon"], pair["delta"]): pair["test_accuracy"] for pair in pairs}
    found = {"accuracy_at_quarter_epsilon": best[0.25, 1e-2],
             "over_epsilon": _difference(best[8.0, 1e-5], best[0.5, 1e-5]),
             "over_delta": _difference(best[2.0, 1e-2], best[2.0, 1e-5])}
    return {name: value for name, value in found.items() if value is not None}


def _mean(runs):
    return statistics.mean(run["test_accuracy"] for run in runs)


def _at(runs, i, column="test_accuracy"):
    """Mean of a column at row i of the histories, an epoch a row, or at their last."""
    return statistics.mean(run["history"][column][min(i, len(run["history"]["epoch"]) - 1)] for run in runs)


def _seconds(runs):
    """Least seconds a step: other jobs on the machine only add."""
    return min(run["seconds_per_step"] for run in runs)


def _best(accuracies):
    return max(accuracies, key=accuracies.get)


def _spread(values):
    return max(values) - min(values)


def _difference(one, other):
    return None if one is None or other is None else one - other
