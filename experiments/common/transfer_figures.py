"""Figure 6 and the sentences of Section 5.3: which runs they need, and what is taken from them."""
import statistics

from .sweep_figures import curves, row
from .sweep_plots import draw_noise_levels, draw_runs
from .sweeps import Point

SCRIPT = "cifar_transfer"
UNWATCHED = ("--no-train-metrics",)
COMMON = ("--accountant", "loss_distribution", "--clipping", "flat", "--clip-norm", 1, "--optimizer", "momentum",
          "--average", 0.98)


def _found(lot, sigma, rate, final=None, epochs=None, views=1):
    """Flags of about 600 lots: the rate constant, or falling to `final` over so many epochs."""
    falling = ("--final-learning-rate", rate) if final is None else ("--final-learning-rate", final, "--decay-epochs", epochs)
    several = ("--multiplicity", views) if views > 1 else ()
    return (*COMMON, "--lot-size", lot, "--noise-multiplier", sigma, "--learning-rate", rate, *falling, *several)


BUDGETS = {2: _found(4000, 4.04, 0.17), 4: _found(4000, 2.29, 0.45, 0.11, 48, 4), 8: _found(6000, 1.94, 0.6, 0.15, 72, 4)}
LARGE_LOTS = _found(4000, 2.29, 0.3)  # beside SMALL_LOTS
SMALL_LOTS = (*_found(600, 1.1, 0.1), *UNWATCHED)
WATCHED = ("--watch-norms", "--steps", 100)  # else as in the paper: lots of 2,000, sigma 6, per-layer clipping
BASELINE = ("--baseline", "--epochs", 25, "--lot-size", 250, "--optimizer", "momentum", "--learning-rate", 0.02,
            "--final-learning-rate", 0.0002, "--decay-epochs", 24, "--average", 0.998)
SMOKE = ("--smoke", "--views", 1, "--lot-size", 50, "--epochs", 1)


def _point(name, flags, smoke, epsilon=None, subcommand="train"):
    target = () if smoke or epsilon is None else ("--target-epsilon", epsilon)
    kept = tuple(flag for flag in flags if flag in ("--baseline", "--watch-norms"))
    return Point(f"{SCRIPT}-{name}", (*((*SMOKE, *kept) if smoke else flags), *target), SCRIPT, subcommand)


class Transfer:
    """Figure 6: accuracy against epochs at three values of epsilon."""

    name, stem = "6", "figure_6"

    def points(self, smoke):
        """{epsilon: point}."""
        return {epsilon: _point(f"eps{epsilon}", flags, smoke, epsilon) for epsilon, flags in BUDGETS.items()}

    def summary(self, points, results):
        """One entry for each epsilon, its curves being means over the seeds."""
        return {"levels": {f"eps{epsilon}": {
            **row(point, results[point]), **curves(results[point]), "target_epsilon": epsilon,
            "test_accuracy_over_views": _mean(results[point], "test_accuracy_over_views"),
            "label": f"sigma {results[point][0]['config']['noise_multiplier']}"} for epsilon, point in points.items()}}

    @staticmethod
    def draw(path, summary):
        """The picture."""
        draw_noise_levels(path, summary, lowest=0.4)


class TransferSentences(Transfer):
    """What the text of Section 5.3 says beside Figure 6."""

    name, stem = "sentences", f"{SCRIPT}-sentences"

    def points(self, smoke):
        """{what it is for: point}."""
        return {"8": super().points(smoke)[8], "lot4000": _point("lot4000", LARGE_LOTS, smoke, 4),
                "lot600": _point("lot600", SMALL_LOTS, smoke, 4),
                "norms": _point("watched-norms", WATCHED, smoke), "baseline": _point("baseline", BASELINE, smoke,
                                                                                     subcommand="baseline")}

    def summary(self, points, results):
        """{"quantities": {name: number}, "runs": [...]}; accuracies are fractions of the test set."""
        accuracy = {name: _mean(results[point]) for name, point in points.items()}
        medians = results[points["norms"]][0]["median_norms_not_private"]
        *others, softmax = (statistics.median(medians[layer]) for layer in sorted(medians))
        return {"section": "5.3", "quantities": {"lots_of_600_cost": accuracy["lot4000"] - accuracy["lot600"],
                               "softmax_norm_over_others_not_private": softmax / statistics.mean(others),
                               "privacy_costs": accuracy["baseline"] - accuracy["8"]},
                "runs": [row(point, results[point]) for point in points.values()]}

    draw = staticmethod(draw_runs)


def _mean(results, key="test_accuracy"):
    return statistics.mean(result[key] for result in results)
