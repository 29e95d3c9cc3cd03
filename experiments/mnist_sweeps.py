#!/usr/bin/env python3
"""Figures 3, 4 and 5 of Abadi et al. 2016 on MNIST, from many parallel runs of the main job.

    python experiments/mnist_sweeps.py --figure 5a      # one panel; --figure 5 for all six
    python experiments/mnist_sweeps.py --figure 3 --seeds 5

Finished runs are kept: the same command resumes after an interrupt, and more seeds add runs.
"""

import sys
from dataclasses import dataclass, field
from functools import partial

import common

common.start(__name__)

from common.config import main_of, option
from common.figures import (
    Figure,
    NotMeasured,
    best,
    best_at,
    claims_figure,
    constant,
    gain,
    levels,
    row,
    spread,
)
from common.plots import draw_budgets, draw_noise_levels, draw_panels
from common.results import RESULTS
from common.sweep_flags import DigitSweepFlags
from common.sweeps import Point

from mnist_pca import NOISE

from minidp.errors import ParameterError
from minidp.util.files import read_json

NAME = "mnist_sweeps"
SMOKE = " --smoke --epochs 2 --lot-size 60"
UNWATCHED = "--no-train-metrics"
REFERENCE = Point("noise-medium")  # the reference values of Section 5.2, and Figure 3 (2)
REFERENCE_ACCURACY = 0.95  # the paper's there, at (2, 1e-5)
LEVELS_OF_NOISE = dict(reversed(NOISE.items()))


def noise_levels(name, flags="", average=None):
    """Figure 3: training and test accuracy and delta against epochs, at three noise levels.

    name, flags     of the points; the paper's accountant is the moments, a tight one allows more
                    lots
    average         {level: decay} of averaged weights
    """
    points, about = [], {}
    for level, (sigma, sigma_pca, epsilon, paper) in LEVELS_OF_NOISE.items():
        more = "" if level == "medium" else f" --noise {level}"
        if average:
            more += f" --average {average[level]}"
        points.append(Point(f"{name}-{level}", flags + more))
        entries = {
            "sigma": sigma,
            "sigma_pca": sigma_pca,
            "target_epsilon": epsilon,
            "paper": paper,
            "label": f"sigma {sigma}, PCA {sigma_pca}",
        }
        about[level] = points[-1].name, entries
    return Figure(
        lambda smoke: points, lambda results, smoke: levels(about, results), draw_noise_levels
    )


LEVELS = noise_levels("moments", "--accountant moments")
TIGHT = noise_levels("noise")
AVERAGED = noise_levels("averaged", average={"large": 0.998, "medium": 0.998, "small": 0.9995})

EPSILONS, DELTAS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0), (1e-5, 1e-4, 1e-3, 1e-2)
# epsilon, delta, the paper's accuracy
PAPER_PAIRS = [(at, 1e-5, paper) for *_, at, paper in LEVELS_OF_NOISE.values()]
PAPER_PAIRS.append((0.25, 1e-2, 0.90))
LONGER = ((16, 32, 60), (8, 16, 100))  # sigma, sigma_pca, epochs


def budget_points(smoke):
    """Runs of Figure 3, the reference, and longer ones with more noise."""
    longer = [
        Point(
            f"noise-{sigma}-{pca}",
            f"--noise-multiplier {sigma} --pca-noise-multiplier {pca} "
            f"--epochs {2 if smoke else epochs} {UNWATCHED}",
        )
        for sigma, pca, epochs in LONGER
    ]
    return [*LEVELS.points(smoke), *TIGHT.points(smoke)[:2], *longer]


def budgets(results, smoke=False):
    """Figure 4: the best accuracy for each (epsilon, delta)."""
    return {
        "pairs": [pair for delta in DELTAS for pair in best_at(results, delta, EPSILONS)],
        "paper": [
            {"epsilon": epsilon, "delta": delta, "test_accuracy": accuracy}
            for epsilon, delta, accuracy in PAPER_PAIRS
        ],
        "chosen": "the best noise level by test accuracy, as in the paper: the choice itself is "
        "not paid for",
    }


@dataclass(frozen=True)
class Panel:
    """One panel of Figure 5: what varies, over which values, the value that is the reference, and
    horizontal lines.

    lines           {name of a point: the paper's accuracy with that other projection}
    best            where the paper's text has the top
    prefix, more    of its points' names, and {value: further flags}, left out where --smoke sets
                    the lots
    """

    flag: str
    label: str
    values: tuple
    reference: float | None = None
    lines: dict = field(default_factory=dict)
    best: float | None = None
    prefix: str = ""
    more: dict = field(default_factory=dict)

    def points(self, smoke):
        """{x: point}; the points of horizontal lines at their names."""
        values = (self.values[0], self.values[-1]) if smoke else self.values
        lines = {
            name: Point(name, f"--{name.replace('-', ' ')} {UNWATCHED}") for name in self.lines
        }
        return {value: self._point(value, smoke) for value in values} | lines

    def _point(self, value, smoke):
        if value == self.reference:
            return REFERENCE
        value = value // 10 if smoke and self.flag == "lot-size" else value
        flags = constant(value) if self.flag == "learning-rate" else f"--{self.flag} {value}"
        more = "" if smoke else self.more.get(value, "")
        return Point(f"{self.prefix}{self.flag}-{value}", f"{flags} {more} {UNWATCHED}")

    def summary(self, results, smoke):
        """{label, reference, points: [{x, ...}], lines: [...]}."""
        rows = [
            {"x": x, **row(point.name, results[point.name])}
            for x, point in self.points(smoke).items()
        ]
        return {
            "label": self.label,
            "reference": self.reference,
            "best": self.best,
            "paper": REFERENCE_ACCURACY if self.reference else None,
            "points": [found for found in rows if found["x"] not in self.lines],
            "lines": [
                {**found, "paper": self.lines[found["x"]]}
                for found in rows
                if found["x"] in self.lines
            ],
        }


# Constant rates tried on synthetic digits, around one that grows as the lot's square: small steps,
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
# the best of these rates for each lot size, by results/figure_lot-rates.json
RATES = {200: 0.006, 400: 0.025, 600: 0.05, 900: 0.1, 1200: 0.2, 2000: 0.4}


def trial(lot, tried):
    """The panel of the rates that were tried with lots of a size."""
    rates = tuple(round(rate * FASTER.get(lot, 1), 4) for rate in tried)
    label, flags = f"rate, lots of {lot}", f"--lot-size {lot}"
    if lot in FASTER:
        label += ", sigma 2"
        flags += " --noise-multiplier 2"
    more = dict.fromkeys(rates, flags)
    return Panel("learning-rate", label, rates, prefix=f"lot-{lot}-", more=more)


TRIALS = {f"lots of {lot}": trial(lot, tried) for lot, tried in TRIED.items()}
OTHERS = {"projection-random": 0.925, "projection-none": 0.93}
STEADY = (0.01, 0.03, 0.05, 0.07, 0.1)
PANELS = {
    "a": Panel("pca-dim", "PCA dimensions", (20, 40, 60, 100), 60, OTHERS, 60),
    "b": Panel("hidden", "hidden units", (200, 500, 1000, 2000), 1000),
    "c": Panel("lot-size", "lot size", (200, 400, 600, 900, 1200, 2000), 600, best=245),
    "d": Panel("learning-rate", "learning rate, constant", STEADY, best=0.05),
    "e": Panel("clip-norm", "clip norm C", (1, 2, 4, 8), 4),
    "f": Panel("noise-multiplier", "noise level sigma", (1, 2, 3, 4, 6, 8, 16), 4),
    **TRIALS,
    "c-tuned": Panel(
        "lot-size",
        "lot size, rate tuned for each on synthetic digits",
        tuple(RATES),
        best=245,
        prefix="tuned-",
        more={lot: constant(rate) for lot, rate in RATES.items()},
    ),
}


def panel_points(letters, smoke):
    """The points of some panels, each once."""
    found = [point for letter in letters for point in PANELS[letter].points(smoke).values()]
    return list(dict.fromkeys(found))


def panel_summary(letters, results, smoke):
    """{"panels": {letter: its summary}}."""
    return {"panels": {letter: PANELS[letter].summary(results, smoke) for letter in letters}}


def panels(letters):
    """Figure 5, or some of its panels: one parameter varies, each run until (2, 1e-5) would be
    exceeded.
    """
    return Figure(partial(panel_points, letters), partial(panel_summary, letters), draw_panels)


EARLY, LAST = 4, -1  # rows of a history, an epoch a row: after 5 epochs, and at the end
EXTRA = """
two-hidden-layers mnist_variants --first-hidden 500 --hidden 500
trained-60-units mnist_variants --projection none --first-hidden 60
falling-noise mnist_variants --noise-multiplier 6 --final-noise-multiplier 3
watched-norms mnist_variants --watch-norms --epochs 50
median-clip-norm mnist_pca --clip-norm 0.1
pca-noise-4 mnist_pca --pca-noise-multiplier 4
pca-noise-16 mnist_pca --pca-noise-multiplier 16
large-rate mnist_pca --learning-rate 0.2 --final-learning-rate 0.2
large-rate-less-noise mnist_pca --learning-rate 0.2 --final-learning-rate 0.2 --noise-multiplier 2
timed-with-pca mnist_pca --steps 300
timed-without-pca mnist_pca --projection none --steps 300
"""
PCA_NOISES = ("noise-medium", "pca-noise-4", "pca-noise-16")


def panel(of, letter):
    """{x: mean accuracy} of a panel of Figure 5, without its horizontal lines."""
    found = PANELS[letter]
    return {
        x: of.accuracy(point.name)
        for x, point in found.points(of.smoke).items()
        if x not in found.lines
    }


def usual_rates(of):
    """Accuracies at the rates that the paper calls stable."""
    return [accuracy for rate, accuracy in panel(of, "d").items() if rate <= 0.07]


def budget(of, epsilon, delta):
    """Accuracy of a pair of Figure 4."""
    runs = {point.name: of.of(point.name) for point in budget_points(False)}
    (pair,) = best_at(runs, delta, [epsilon])
    if pair["test_accuracy"] is None:
        raise NotMeasured(f"nothing fits epsilon {epsilon:g}, delta {delta:g}")
    return pair["test_accuracy"]


def wider(of, row):
    """How far 2,000 hidden units are ahead of 200 at a row of the histories."""
    return of.at(row, "hidden-2000") - of.at(row, "hidden-200")


TRAIN = "train_accuracy_not_private"
CLAIMS = {  # name: function of the runs; accuracies are fractions, sentences are in expected.json
    "no_pca_costs": gain("noise-medium", "projection-none"),
    "random_projection": lambda of: of.accuracy("projection-random"),
    "pca_over_random": lambda of: (
        min(*panel(of, "a").values(), *map(of.accuracy, PCA_NOISES))
        - of.accuracy("projection-random")
    ),
    "best_pca_dimension": lambda of: best(panel(of, "a")),
    "pca_dimension_spread": lambda of: spread(panel(of, "a").values()),
    "pca_noise_spread": lambda of: spread(map(of.accuracy, PCA_NOISES)),
    "most_hidden_units_over_fewest": lambda of: wider(of, LAST),
    "larger_network_ahead_early": lambda of: wider(of, EARLY),
    "time_without_pca": lambda of: (  # the least, since other jobs on the machine only add
        min(of.each("timed-without-pca", "seconds_per_step"))
        / min(of.each("timed-with-pca", "seconds_per_step"))
    ),
    "one_layer_over_two": gain("noise-medium", "two-hidden-layers"),
    "pca_over_trained_layer": gain("noise-medium", "trained-60-units"),
    "best_lot_size": lambda of: best(panel(of, "c")),
    "lot_size_spread": lambda of: spread(panel(of, "c").values()),
    "noise_level_spread": lambda of: spread(panel(of, "f").values()),
    "rate_spread": lambda of: spread(usual_rates(of)),
    "best_rate": lambda of: best(panel(of, "d")),
    "large_rate_costs": lambda of: max(usual_rates(of)) - of.accuracy("large-rate"),
    "less_noise_regains": gain("large-rate-less-noise", "large-rate"),
    "falling_noise_gains": gain("falling-noise", "noise-medium"),
    "median_clip_norm_gains": gain("median-clip-norm", "noise-medium"),
    "median_norm_hidden_not_private": lambda of: of.median_norm("watched-norms", "dense1"),
    "private_gap_not_private": lambda of: max(
        map(of.train_gap, (f"moments-{level}" for level in NOISE)), key=abs
    ),
    "baseline_gap_late": lambda of: of.at(LAST, "baseline", TRAIN) - of.at(LAST, "baseline"),
    "accuracy_at_quarter_epsilon": lambda of: budget(of, 0.25, 1e-2),
    "over_epsilon": lambda of: budget(of, 8.0, 1e-5) - budget(of, 0.5, 1e-5),
    "over_delta": lambda of: budget(of, 2.0, 1e-2) - budget(of, 2.0, 1e-5),
}


def points(smoke):
    """The claims' runs: those of Figures 4 and 5 that they need, and a few of their own."""
    mine = [Point("baseline", "--accountant moments --baseline")]
    for name, script, flags in (line.split(" ", 2) for line in EXTRA.strip().splitlines()):
        if not (smoke and "--steps" in flags):  # smoke sets the epochs
            mine.append(Point(name, f"{flags} {UNWATCHED}", script))
    others = [REFERENCE, *panel_points("abcdef", smoke), *budget_points(smoke)]
    return list(dict.fromkeys(mine + others))


TUNED = claims_figure(
    {"best_tuned_lot_size": lambda of: best(panel(of, "c-tuned"))},
    partial(panel_points, ["c-tuned"]),
)


def tuned_summary(results, smoke):
    """The panel of lot sizes with a rate for each, beside the committed one with one rate; and
    where it is best.
    """
    shown = {
        "c": read_json(RESULTS / "figure_5.json")["panels"]["c"],
        **panel_summary(["c-tuned"], results, smoke)["panels"],
    }
    fewest = min(point["seeds"] for found in shown.values() for point in found["points"])
    return TUNED.summary(results, smoke) | {"panels": shown, "fewest_seeds": fewest}


FIGURES = {
    "3": LEVELS,
    "3-tight": TIGHT,
    "3-averaged": AVERAGED,
    "4": Figure(budget_points, budgets, draw_budgets),
    "5": panels("abcdef"),
    "sentences": claims_figure(CLAIMS, points),
    "lot-rates": panels(TRIALS),
    "5c-tuned": TUNED._replace(summary=tuned_summary, draw=draw_panels),
    **{f"5{letter}": panels(letter) for letter in "abcdef"},
}


@dataclass(frozen=True)
class Config(DigitSweepFlags):
    """The flags."""

    figure: str = option(
        "5",
        "figure of the paper (3-tight: stopped by the loss distribution, which allows more lots; "
        "3-averaged: with averaged weights too), a panel of Figure 5, the claims of the text "
        "(sentences), or lot sizes with learning rates (5c-tuned) found on synthetic digits "
        "(lot-rates)",
        choices=tuple(FIGURES),
    )

    def __post_init__(self):
        super().__post_init__()
        if self.figure == "lot-rates" and self.dataset != "strokes":
            raise ParameterError("lot-rates needs synthetic digits: add --dataset strokes")


def sweep(config):
    """Run the sweep, write the figure; returns the exit status."""
    flags = "--accountant pld" + SMOKE * config.smoke
    name = config.figure
    config.make(NAME, FIGURES[name], f"figure_{name}", flags, figure=name)
    return 0


main = main_of(f"{NAME}.py", __doc__, {"": (Config, sweep)})

if __name__ == "__main__":
    sys.exit(main())
