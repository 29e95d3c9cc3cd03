"""Figures 3, 4 and 5: which runs each needs, what is taken from them, and the paper's values beside it."""
import bisect
import statistics
from dataclasses import dataclass
from functools import cache

from minidp.privacy import Gaussian, JointGaussian, Ledger, PoissonSampled
from minidp.privacy.catalogue import make

from .sweep_plots import draw_budgets, draw_noise_levels, draw_panels
from .sweeps import NO_LOT, Point

UNWATCHED = ("--no-train-metrics",)
REFERENCE = Point("noise-medium")  # the reference values of Section 5.2, and Figure 3 (2)
RANDOM = Point("projection-random", ("--projection", "random", *UNWATCHED))
NO_PCA = Point("projection-none", ("--projection", "none", *UNWATCHED))
NOISE = {"large": (8, 16, 0.5), "medium": (4, 7, 2.0), "small": (2, 4, 8.0)}  # sigma, sigma_pca, epsilon


def row(point, results):
    """What one point of a figure says: accuracy over the seeds, lots, epsilon by the accountant that held it."""
    first = results[0]
    if first["stopped"] == NO_LOT:
        return {"name": point.name, "steps": 0, "reason": first["reason"], "seeds": len(results)}
    accuracy = [result["test_accuracy"] for result in results]
    return {
        "name": point.name, "seeds": len(results), "steps": first["steps"], "epochs": first["epochs"],
        "epsilon": max((result["epsilon"][result["accountant"]]["upper"] for result in results), key=float),
        "accountant": first["accountant"],
        "test_accuracy": statistics.mean(accuracy), "lowest": min(accuracy), "highest": max(accuracy),
        "deviation": statistics.stdev(accuracy) if len(accuracy) > 1 else None,
        "seconds_per_step": statistics.mean(result["seconds_per_step"] for result in results),
        "seconds": sum(result["seconds_total"] for result in results),
    }


def curves(runs):
    """Means over the seeds: training accuracy at the end, and what changes with the epochs."""
    rows = min(len(run["history"]["epoch"]) for run in runs)
    mean = lambda column: [statistics.mean(run["history"][column][i] for run in runs) for i in range(rows)]
    delta = runs[0]["history"].get("delta_at_epsilon")
    return {"train_accuracy_not_private": statistics.mean(run["train_accuracy"] for run in runs),
            "curves": {"epoch": runs[0]["history"]["epoch"][:rows], "test_accuracy": mean("test_accuracy"),
                       "train_accuracy_not_private": mean("train_accuracy_not_private"),
                       "delta_at_epsilon": delta and delta[:rows]}}


class NoiseLevels:
    """Figure 3: training and test accuracy and delta against epochs, at three noise levels.

    name, flags: of the points; the paper's accountant is the moments, a tight one allows more lots.
    """

    def __init__(self, name="moments", flags=("--accountant", "moments")):
        self.name, self.flags = name, flags

    def points(self, smoke):
        return [Point(f"{self.name}-{level}", (*self.flags, *(("--noise", level) if level != "medium" else ())))
                for level in NOISE]

    def summary(self, results):
        """One entry for each noise level, its curves being means over the seeds."""
        return {"levels": {point.name.removeprefix(f"{self.name}-"): self._level(point, runs)
                           for point, runs in results.items()}}

    def _level(self, point, runs):
        sigma, sigma_pca, epsilon = NOISE[point.name.removeprefix(f"{self.name}-")]
        return {**row(point, runs), "sigma": sigma, "sigma_pca": sigma_pca, "target_epsilon": epsilon,
                "label": f"sigma {sigma}, PCA {sigma_pca}", **curves(runs)}

    draw = staticmethod(draw_noise_levels)


TIGHT = NoiseLevels("noise", ())


class AveragedLevels(NoiseLevels):
    """The same with averaged weights; the longer the run, the longer the average."""

    DECAY = {"large": 0.998, "medium": 0.998, "small": 0.9995}

    def points(self, smoke):
        return [Point(point.name, (*point.flags, "--average", self.DECAY[point.name.removeprefix(f"{self.name}-")]))
                for point in super().points(smoke)]


AVERAGED = AveragedLevels("averaged", ())


class Budgets:
    """Figure 4: the best accuracy for each (epsilon, delta), over noise levels and the lots that the pair allows.

    A run of T lots is, with the same seed, the beginning of every longer one, so one run at each noise level
    serves every pair: its accuracy is read at the last epoch that the pair still allows.
    """

    EPSILONS, DELTAS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0), (1e-5, 1e-4, 1e-3, 1e-2)
    LONGER = ((16, 32, 60), (8, 16, 100))  # sigma, sigma_pca, epochs

    def points(self, smoke):
        """Runs of Figure 3, the reference, and longer ones with more noise."""
        return [*NoiseLevels().points(smoke), *TIGHT.points(smoke)[:2]] + [
            Point(f"noise-{sigma}-{pca}", ("--noise-multiplier", sigma, "--pca-noise-multiplier", pca,
                                           "--epochs", 2 if smoke else epochs, *UNWATCHED))
            for sigma, pca, epochs in self.LONGER]

    def summary(self, results):
        """{"pairs": [{epsilon, delta, test_accuracy, name, steps}]}; an accuracy of None where nothing fits."""
        pairs = [pair for delta in self.DELTAS for pair in self._best(results, delta)]
        return {"pairs": pairs, "runs": [row(point, runs) for point, runs in results.items()],
                "chosen": "the best noise level by test accuracy, as in the paper: the choice itself is not paid for"}

    def _best(self, results, delta):
        found = {epsilon: {"epsilon": epsilon, "delta": delta, "test_accuracy": None, "name": None, "steps": 0}
                 for epsilon in self.EPSILONS}
        for point, runs in results.items():
            rows, spent = min(len(run["history"]["step"]) for run in runs), spending(runs[0], delta)
            for epsilon, pair in found.items():
                at = bisect.bisect_right(range(rows), epsilon, key=spent) - 1
                if at >= 0:
                    accuracy = statistics.mean(run["history"]["test_accuracy"][at] for run in runs)
                    if pair["test_accuracy"] is None or accuracy > pair["test_accuracy"]:
                        pair |= {"test_accuracy": accuracy, "name": point.name,
                                 "steps": int(runs[0]["history"]["step"][at])}
        return list(found.values())

    draw = staticmethod(draw_budgets)


def spending(result, delta):
    """A function of the row of a run's history: its certified epsilon by the loss distribution, PCA included."""
    settings = result["settings"]
    step = PoissonSampled(settings["sampling_probability"],
                          JointGaussian(tuple(group["noise_multiplier"] for group in settings["clip_groups"])))

    @cache
    def spent(row):
        ledger = Ledger()
        if settings["pca_noise_multiplier"] is not None:
            ledger.append(Gaussian(settings["pca_noise_multiplier"]))
        ledger.append(step, int(result["history"]["step"][row]))
        return make("loss_distribution", ledger.relation).epsilon(ledger, delta).upper

    return spent


@dataclass(frozen=True)
class Panel:
    """One panel of Figure 5: what varies, over which values, and the value that is the reference."""

    flag: str
    label: str
    values: tuple
    reference: float | None
    lines: tuple = ()

    def points(self, smoke):
        """{x: point}, the horizontal lines at their names."""
        values = (self.values[0], self.values[-1]) if smoke else self.values
        return {**{value: self._point(value, smoke) for value in values}, **{line.name: line for line in self.lines}}

    def _point(self, value, smoke):
        if value == self.reference:
            return REFERENCE
        value = value // 10 if smoke and self.flag == "lot-size" else value
        flags = ("--learning-rate", value, "--final-learning-rate", value) if self.flag == "learning-rate" else \
            (f"--{self.flag}", value)
        return Point(f"{self.flag}-{value}", (*flags, *UNWATCHED))


PANELS = {
    "a": Panel("pca-dim", "PCA dimensions", (20, 40, 60, 100), 60, (RANDOM, NO_PCA)),
    "b": Panel("hidden", "hidden units", (200, 500, 1000, 2000), 1000),
    "c": Panel("lot-size", "lot size", (200, 400, 600, 900, 1200, 2000), 600),
    "d": Panel("learning-rate", "learning rate, constant", (0.01, 0.03, 0.05, 0.07, 0.1), None),
    "e": Panel("clip-norm", "clip norm C", (1, 2, 4, 8), 4),
    "f": Panel("noise-multiplier", "noise level sigma", (1, 2, 3, 4, 6, 8, 16), 4),
}


class Panels:
    """Figure 5, or some of its panels: one parameter varies, each run until (2, 1e-5) would be exceeded."""

    def __init__(self, letters):
        self.letters = letters

    def points(self, smoke):
        self._drawn = {letter: PANELS[letter].points(smoke) for letter in self.letters}
        return list(dict.fromkeys(point for points in self._drawn.values() for point in points.values()))

    def summary(self, results):
        """{"panels": {letter: {label, reference, points: [{x, ...}], lines: [...]}}}."""
        panels = {}
        for letter, points in self._drawn.items():
            rows = [{"x": x, **row(point, results[point])} for x, point in points.items() if point in results]
            panels[letter] = {"label": PANELS[letter].label, "reference": PANELS[letter].reference,
                              "points": [found for found in rows if not isinstance(found["x"], str)],
                              "lines": [found for found in rows if isinstance(found["x"], str)]}
        return {"panels": panels}

    draw = staticmethod(draw_panels)
