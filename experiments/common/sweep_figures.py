"""Figures 3, 4 and 5 as data: which runs each needs, what is taken from them, and the paper's
values beside it.

A figure's `points` are its runs; `summary` takes {name of a point: its results, one a seed}.
"""

import bisect
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

from minidp.privacy import Gaussian, JointGaussian, Ledger, PoissonSampled
from minidp.privacy.catalogue import make

from .sweep_plots import draw_budgets, draw_noise_levels, draw_panels
from .sweeps import NO_LOT, Point

UNWATCHED = "--no-train-metrics"
REFERENCE = Point("noise-medium")  # the reference values of Section 5.2, and Figure 3 (2)
REFERENCE_ACCURACY = 0.95  # the paper's there, at (2, 1e-5)
# sigma, sigma_pca, epsilon, and the paper's accuracy
NOISE = {"large": (8, 16, 0.5, 0.90), "medium": (4, 7, 2.0, 0.95), "small": (2, 4, 8.0, 0.97)}


class Figure(NamedTuple):
    """points(smoke) -> list of Point; summary(results, smoke) -> dict; draw(path, summary)."""

    points: Callable
    summary: Callable
    draw: Callable


def row(name, results):
    """What one point of a figure says: accuracy over the seeds, lots, epsilon by the accountant
    that held it.
    """
    first = results[0]
    if first["stopped"] == NO_LOT:
        return {"name": name, "steps": 0, "reason": first["reason"], "seeds": len(results)}
    accuracy = [result["test_accuracy"] for result in results]
    return {
        "name": name,
        "seeds": len(results),
        "steps": first["steps"],
        "epochs": first["epochs"],
        "learning_rate": first["settings"].get("learning_rate"),
        "epsilon": max(
            (result["epsilon"][result["accountant"]]["upper"] for result in results), key=float
        ),
        "test_accuracy": statistics.mean(accuracy),
        "lowest": min(accuracy),
        "highest": max(accuracy),
        "test_accuracy_by_seed": accuracy,
    }


def curves(runs):
    """Over the seeds: training accuracy at the end, and what changes with the epochs, test accuracy
    with its range.
    """
    rows = min(len(run["history"]["epoch"]) for run in runs)

    def over(column, what):
        return [what(run["history"][column][i] for run in runs) for i in range(rows)]

    delta = runs[0]["history"].get("delta_at_epsilon")
    return {
        "train_accuracy_not_private": statistics.mean(run["train_accuracy"] for run in runs),
        "curves": {
            "epoch": runs[0]["history"]["epoch"][:rows],
            **{
                name: over("test_accuracy", what)
                for name, what in (
                    ("test_accuracy", statistics.mean),
                    ("lowest", min),
                    ("highest", max),
                )
            },
            "train_accuracy_not_private": over("train_accuracy_not_private", statistics.mean),
            "delta_at_epsilon": delta and delta[:rows],
        },
    }


def noise_levels(name, flags="", average=None):
    """Figure 3: training and test accuracy and delta against epochs, at three noise levels.

    name, flags     of the points; the paper's accountant is the moments, a tight one allows more
                    lots
    average         {level: decay} of averaged weights
    """
    points = {
        level: Point(
            f"{name}-{level}",
            flags
            + ("" if level == "medium" else f" --noise {level}")
            + (f" --average {average[level]}" if average else ""),
        )
        for level in NOISE
    }

    def summary(results, smoke):
        return {
            "levels": {
                level: {
                    **row(point.name, results[point.name]),
                    "sigma": sigma,
                    "sigma_pca": sigma_pca,
                    "target_epsilon": epsilon,
                    "paper": paper,
                    "label": f"sigma {sigma}, PCA {sigma_pca}",
                    **curves(results[point.name]),
                }
                for level, (sigma, sigma_pca, epsilon, paper) in NOISE.items()
                for point in [points[level]]
                if point.name in results
            }
        }

    return Figure(lambda smoke: list(points.values()), summary, draw_noise_levels)


LEVELS = noise_levels("moments", "--accountant moments")
TIGHT = noise_levels("noise")
AVERAGED = noise_levels("averaged", average={"large": 0.998, "medium": 0.998, "small": 0.9995})

EPSILONS, DELTAS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0), (1e-5, 1e-4, 1e-3, 1e-2)
PAPER_PAIRS = [
    {"epsilon": epsilon, "delta": 1e-5, "test_accuracy": accuracy}
    for *_, epsilon, accuracy in NOISE.values()
] + [{"epsilon": 0.25, "delta": 1e-2, "test_accuracy": 0.90}]
LONGER = ((16, 32, 60), (8, 16, 100))  # sigma, sigma_pca, epochs


def budget_points(smoke):
    """Runs of Figure 3, the reference, and longer ones with more noise."""
    return [*LEVELS.points(smoke), *TIGHT.points(smoke)[:2]] + [
        Point(
            f"noise-{sigma}-{pca}",
            f"--noise-multiplier {sigma} --pca-noise-multiplier {pca} "
            f"--epochs {2 if smoke else epochs} {UNWATCHED}",
        )
        for sigma, pca, epochs in LONGER
    ]


def budgets(results, smoke=False):
    """Figure 4: the best accuracy for each (epsilon, delta), over noise levels and the lots that
    the pair allows.

    A run of T lots is, with the same seed, the beginning of every longer one, so one run at each
    noise level serves every pair: its accuracy is read at the last epoch that the pair still
    allows; None where nothing fits.
    """
    pairs = [pair for delta in DELTAS for pair in best_at(results, delta)]
    return {
        "pairs": pairs,
        "paper": PAPER_PAIRS,
        "chosen": "the best noise level by test accuracy, as in the paper: the choice itself is "
        "not paid for",
    }


def best_at(results, delta):
    """One pair for each epsilon."""
    found = {
        epsilon: {
            "epsilon": epsilon,
            "delta": delta,
            "test_accuracy": None,
            "name": None,
            "steps": 0,
        }
        for epsilon in EPSILONS
    }
    for name, runs in results.items():
        rows, spent = min(len(run["history"]["step"]) for run in runs), spending(runs[0], delta)
        for epsilon, pair in found.items():
            at = bisect.bisect_right(range(rows), epsilon, key=spent) - 1
            if at >= 0:
                each = [run["history"]["test_accuracy"][at] for run in runs]
                if pair["test_accuracy"] is None or statistics.mean(each) > pair["test_accuracy"]:
                    pair |= {
                        "test_accuracy": statistics.mean(each),
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
    return make("loss_distribution", ledger.relation).epsilon(ledger, delta).upper


def constant(rate):
    """The flags of a rate that stays."""
    return f"--learning-rate {rate} --final-learning-rate {rate}"


@dataclass(frozen=True)
class Panel:
    """One panel of Figure 5: what varies, over which values, the value that is the reference, and
    horizontal lines.

    lines           {name of a point: (the other projection, the paper's accuracy)}
    best            where the paper's text has the top
    prefix, more    of its points' names, and {value: further flags}, left out where --smoke sets
                    the lots
    """

    flag: str
    label: str
    values: tuple
    reference: float | None
    lines: tuple = ()
    best: float | None = None
    prefix: str = ""
    more: dict = field(default_factory=dict)

    def points(self, smoke):
        """{x: point}; the points of horizontal lines at their names."""
        values = (self.values[0], self.values[-1]) if smoke else self.values
        return {value: self._point(value, smoke) for value in values} | {
            f"projection-{name}": Point(f"projection-{name}", f"--projection {name} {UNWATCHED}")
            for name, _ in self.lines
        }

    def _point(self, value, smoke):
        if value == self.reference:
            return REFERENCE
        value = value // 10 if smoke and self.flag == "lot-size" else value
        flags = constant(value) if self.flag == "learning-rate" else f"--{self.flag} {value}"
        more = "" if smoke else self.more.get(value, "")
        return Point(f"{self.prefix}{self.flag}-{value}", f"{flags} {more} {UNWATCHED}")


PANELS = {
    "a": Panel(
        "pca-dim", "PCA dimensions", (20, 40, 60, 100), 60, (("random", 0.925), ("none", 0.93)), 60
    ),
    "b": Panel("hidden", "hidden units", (200, 500, 1000, 2000), 1000),
    "c": Panel("lot-size", "lot size", (200, 400, 600, 900, 1200, 2000), 600, best=245),
    "d": Panel(
        "learning-rate", "learning rate, constant", (0.01, 0.03, 0.05, 0.07, 0.1), None, best=0.05
    ),
    "e": Panel("clip-norm", "clip norm C", (1, 2, 4, 8), 4),
    "f": Panel("noise-multiplier", "noise level sigma", (1, 2, 3, 4, 6, 8, 16), 4),
}
# Constant rates tried on drawn digits, around one that grows as the lot's square: in small steps,
# way and noise are then the same for all sizes. Lots below 600 are tried at sigma 2, at which a
# fifth of the lots fit, with five times the rate
TRIED = {
    200: (0.003, 0.006, 0.012),
    400: (0.012, 0.025, 0.05),
    600: (0.025, 0.05, 0.1),
    900: (0.05, 0.1, 0.2),
    1200: (0.1, 0.2, 0.4),
    2000: (0.1, 0.2, 0.4, 0.8),
}
FASTER = {200: 5, 400: 5}
TRIALS = {
    f"lots of {lot}": Panel(
        "learning-rate",
        f"rate, lots of {lot}{', sigma 2' if lot in FASTER else ''}",
        rates,
        None,
        prefix=f"lot-{lot}-",
        more=dict.fromkeys(rates, f"--lot-size {lot}" + " --noise-multiplier 2" * (lot in FASTER)),
    )
    for lot in TRIED
    for rates in [tuple(round(rate * FASTER.get(lot, 1), 4) for rate in TRIED[lot])]
}
# the best of these rates for each lot size, by results/figure_lot-rates.json
RATES = {200: 0.006, 400: 0.025, 600: 0.05, 900: 0.1, 1200: 0.2, 2000: 0.4}
PANELS |= {
    **TRIALS,
    "c-tuned": Panel(
        "lot-size",
        "lot size, rate tuned for each on drawn digits",
        tuple(RATES),
        None,
        best=245,
        prefix="tuned-",
        more={lot: constant(rate) for lot, rate in RATES.items()},
    ),
}


def panel_points(letters, smoke):
    """The points of some panels, each once."""
    return list(
        dict.fromkeys(
            point for letter in letters for point in PANELS[letter].points(smoke).values()
        )
    )


def panel_summary(letters, results, smoke):
    """{"panels": {letter: {label, reference, points: [{x, ...}], lines: [...]}}}."""
    panels = {}
    for letter in letters:
        panel = PANELS[letter]
        rows = [
            {"x": x, **row(point.name, results[point.name])}
            for x, point in panel.points(smoke).items()
            if point.name in results
        ]
        papers = {f"projection-{name}": accuracy for name, accuracy in panel.lines}
        panels[letter] = {
            "label": panel.label,
            "reference": panel.reference,
            "best": panel.best,
            "paper": REFERENCE_ACCURACY if panel.reference else None,
            "points": [found for found in rows if found["x"] not in papers],
            "lines": [
                {**found, "paper": papers[found["x"]]} for found in rows if found["x"] in papers
            ],
        }
    return {"panels": panels}


def panels(letters):
    """Figure 5, or some of its panels: one parameter varies, each run until (2, 1e-5) would be
    exceeded.
    """
    return Figure(partial(panel_points, letters), partial(panel_summary, letters), draw_panels)


BUDGETS = Figure(budget_points, budgets, draw_budgets)
