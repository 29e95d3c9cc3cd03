"""What the text of Section 5.2 claims beside its figures, as numbers from runs; expected.json says what it expects.

Accuracies are differences in fractions of the test set. Every number's sentence is in expected.json.
"""
import json
import statistics

from .report import ROOT
from .sweep_figures import NO_PCA, PANELS, RANDOM, REFERENCE, Budgets, NoiseLevels, row
from .sweep_plots import draw_runs
from .sweeps import Point

BENCHMARK = ROOT / "experiments" / "results" / "benchmark.json"
FEW_EPOCHS = 5
UNWATCHED = ("--no-train-metrics",)
EXTRA = {name: Point(name, (*flags, *UNWATCHED), script) for name, script, flags in (
    ("two-hidden-layers", "mnist_variants", ("--first-hidden", 500, "--hidden", 500)),
    ("trained-60-units", "mnist_variants", ("--projection", "none", "--first-hidden", 60)),
    ("falling-noise", "mnist_variants", ("--noise-multiplier", 6, "--final-noise-multiplier", 3)),
    ("watched-norms", "mnist_variants", ("--watch-norms", "--epochs", 50)),
    ("pca-noise-4", "mnist_pca", ("--pca-noise-multiplier", 4)),
    ("pca-noise-16", "mnist_pca", ("--pca-noise-multiplier", 16)),
    ("large-rate", "mnist_pca", ("--learning-rate", 0.2, "--final-learning-rate", 0.2)),
    ("large-rate-less-noise", "mnist_pca", ("--learning-rate", 0.2, "--final-learning-rate", 0.2,
                                            "--noise-multiplier", 2)),
)} | {"baseline": Point("baseline", ("--baseline",))}


class Sentences(Budgets):
    """The sentences' runs: those of Figures 4 and 5 (1) to (5) that they need, and a few of their own."""

    def points(self, smoke):
        self._panels = {letter: PANELS[letter].points(smoke) for letter in "abcde"}
        mine = [point for point in EXTRA.values() if not (smoke and point.name == "falling-noise")]
        shared = [point for points in self._panels.values() for point in points.values()]
        return list(dict.fromkeys([*mine, REFERENCE, *shared, *super().points(smoke)]))

    def summary(self, results):
        """{"quantities": {name: number}, "runs": [...]}: what could be computed from the runs that are there."""
        pairs = {(pair["epsilon"], pair["delta"]): pair["test_accuracy"] for pair in super().summary(results)["pairs"]}
        return {"quantities": {**self._structure(results), **self._training(results), **_norms(results),
                               **_gaps(results), **_budget(pairs), **_time()},
                "runs": [row(point, runs) for point, runs in results.items()]}

    def _accuracy(self, results, letter):
        """{x: mean accuracy} of a panel."""
        return {x: _mean(results[point]) for x, point in self._panels[letter].items() if not isinstance(x, str)}

    def _structure(self, results):
        reference = _mean(results[REFERENCE])
        dims, units = self._accuracy(results, "a"), self._accuracy(results, "b")
        small, large = (results[self._panels["b"][end(units)]] for end in (min, max))
        ahead = lambda row: _at(large, row) - _at(small, row)
        early = min(FEW_EPOCHS, len(small[0]["history"]["epoch"])) - 1
        noises = [reference, *(_mean(results[EXTRA[name]]) for name in ("pca-noise-4", "pca-noise-16"))]
        return {"no_pca_costs": reference - _mean(results[NO_PCA]), "random_projection": _mean(results[RANDOM]),
                "pca_over_random": min(*dims.values(), *noises) - _mean(results[RANDOM]),
                "best_pca_dimension": _best(dims), "pca_dimension_spread": _spread(dims.values()),
                "pca_noise_spread": _spread(noises),
                "most_hidden_units_over_fewest": units[max(units)] - units[min(units)],
                "larger_network_ahead_early": ahead(early), "larger_network_ahead_late": ahead(-1),
                "one_layer_over_two": reference - _mean(results[EXTRA["two-hidden-layers"]]),
                "pca_over_trained_layer": reference - _mean(results[EXTRA["trained-60-units"]])}

    def _training(self, results):
        lots, rates = self._accuracy(results, "c"), self._accuracy(results, "d")
        usual = {rate: accuracy for rate, accuracy in rates.items() if rate <= 0.07}
        loud, quiet = (_mean(results[EXTRA[name]]) for name in ("large-rate", "large-rate-less-noise"))
        found = {"best_lot_size": _best(lots), "lot_size_spread": _spread(lots.values()),
                 "rate_spread": _spread(usual.values()), "best_rate": _best(rates),
                 "large_rate_costs": max(usual.values()) - loud, "less_noise_regains": quiet - loud}
        if EXTRA["falling-noise"] in results:
            found["falling_noise_gains"] = _mean(results[EXTRA["falling-noise"]]) - _mean(results[REFERENCE])
        clips = self._accuracy(results, "e")
        return {**found, "best_clip_norm": _best(clips), "clip_spread": _spread(clips.values())}


    draw = staticmethod(draw_runs)


def _norms(results):
    watched = [run["median_norms_not_private"] for run in results[EXTRA["watched-norms"]]]
    return {f"median_norm_{layer}_not_private": statistics.median(norm for run in watched for norm in run[layer])
            for layer in watched[0]}


def _gaps(results):
    """Training less test accuracy: of the private runs at their end, of the baseline early and at its end."""
    private = [run["train_accuracy"] - run["test_accuracy"] for point in NoiseLevels().points(False)
               for run in results[point]]
    baseline = [run["history"] for run in results[EXTRA["baseline"]]]
    gap = lambda i: statistics.mean(one["train_accuracy_not_private"][i] - one["test_accuracy"][i] for one in baseline)
    early = min(FEW_EPOCHS, len(baseline[0]["epoch"])) - 1
    return {"private_gap_not_private": max(private, key=abs), "baseline_gap_early": gap(early), "baseline_gap_late": gap(-1)}


def _budget(pairs):
    """Figure 4 in numbers; left out where nothing fits."""
    found = {"accuracy_at_quarter_epsilon": pairs[0.25, 1e-2],
             "over_epsilon": _difference(pairs[8.0, 1e-5], pairs[0.5, 1e-5]),
             "over_delta": _difference(pairs[2.0, 1e-2], pairs[2.0, 1e-5])}
    return {name: value for name, value in found.items() if value is not None}


def _time():
    """How much longer a step takes without PCA, by the benchmark of 60 and of 784 inputs."""
    rows = json.loads(BENCHMARK.read_text(encoding="utf-8"))["rows"]
    time = {(one["workload"], one["strategy"]): one["step_ms"] for one in rows}
    return {f"time_without_pca_{how}": time["W2", how] / time["W1", how] for how in ("factored", "explicit")}


def _mean(runs):
    return statistics.mean(run["test_accuracy"] for run in runs)


def _at(runs, i):
    return statistics.mean(run["history"]["test_accuracy"][i] for run in runs)


def _best(accuracies):
    return max(accuracies, key=accuracies.get)


def _spread(values):
    return max(values) - min(values)


def _difference(one, other):
    return None if one is None or other is None else one - other
