"""Figure 6 and the sentences of Section 5.3: which runs they need, and what is taken from them."""

import statistics
from functools import partial

from .sweep_figures import Figure, curves, row
from .sweep_plots import draw_noise_levels
from .sweep_sentences import claims_figure
from .sweeps import Point

SCRIPT = "cifar_transfer"
COMMON = (
    "--accountant loss_distribution --clipping flat --clip-norm 1 --optimizer momentum "
    "--average 0.98"
)
SMOKE = "--smoke --lot-size 50 --epochs 1"


def _found(lot, sigma, rate, falling=None):
    """Flags of about 600 lots: the rate constant, or as the flags `falling` say."""
    falling = falling or f"--final-learning-rate {rate}"
    return f"{COMMON} --lot-size {lot} --noise-multiplier {sigma} --learning-rate {rate} {falling}"


# {name: (target epsilon or None, flags)}; the paper's accuracy at each epsilon of Figure 6
PAPER = {2: 0.67, 4: 0.70, 8: 0.73}
BUDGETS = {f"eps{epsilon}": (epsilon, "") for epsilon in PAPER}  # of `head`: every setting follows
FINETUNED = {
    "finetuned2": (2, _found(4000, 4.04, 0.17)),
    "finetuned4": (
        4,
        _found(4000, 2.29, 0.45, "--final-learning-rate 0.11 --decay-epochs 48 --multiplicity 4"),
    ),
    "finetuned8": (
        8,
        _found(6000, 1.94, 0.6, "--final-learning-rate 0.15 --decay-epochs 72 --multiplicity 4"),
    ),
}
OTHERS = {
    "finetuned8": FINETUNED["finetuned8"],
    "lot4000": (4, _found(4000, 2.29, 0.3)),
    "lot600": (4, f"{_found(600, 1.1, 0.1)} --no-train-metrics"),
    # else the paper's: lots of 2,000, sigma 6, per-layer clipping
    "watched-norms": (None, "--watch-norms --steps 100"),
    "baseline": (
        None,
        "--baseline --epochs 25 --lot-size 250 --optimizer momentum --learning-rate 0.02 "
        "--final-learning-rate 0.0002 --decay-epochs 24 --average 0.998",
    ),
}
CLAIMS = {
    "lots_of_600_cost": lambda of: of.gain(full("lot4000"), full("lot600")),
    "softmax_norm_over_others_not_private": lambda of: (
        of.median_norm(full("watched-norms"), "dense3")
        / statistics.mean(
            of.median_norm(full("watched-norms"), layer) for layer in ("dense1", "dense2")
        )
    ),
    "privacy_costs": lambda of: of.gain(full("baseline"), full("finetuned8")),
}


def full(name):
    """The name of a point, and so of its files."""
    return f"{SCRIPT}-{name}"


def points(runs, smoke):
    """The points of {name: (target epsilon, flags)}."""
    made = []
    for name, (epsilon, flags) in runs.items():
        command = "head" if name in BUDGETS else "baseline" if name == "baseline" else "train"
        if smoke:
            kept = [flag for flag in ("--baseline", "--watch-norms") if flag in flags]
            views = "" if command == "head" else "--views 1"
            flags = " ".join([SMOKE, views, *kept])
        elif epsilon is not None:
            flags += f" --target-epsilon {epsilon}"
        made.append(Point(full(name), flags, SCRIPT, command))
    return made


def levels(runs, results, smoke):
    """One entry for each epsilon, its curves being means over the seeds."""
    return {
        "levels": {
            name: {
                **row(full(name), found),
                **curves(found),
                "target_epsilon": epsilon,
                "paper": PAPER[epsilon],
                "test_accuracy_over_views": statistics.mean(
                    run["test_accuracy_over_views"] for run in found
                ),
                "label": f"sigma {found[0]['settings']['clip_groups'][0]['noise_multiplier']:.3g}",
            }
            for name, (epsilon, _) in runs.items()
            if full(name) in results
            for found in [results[full(name)]]
        }
    }


def _figure(runs):
    """Accuracy against epochs at the epsilons of Figure 6."""
    return Figure(
        partial(points, runs), partial(levels, runs), partial(draw_noise_levels, limits=(0.4, 0.85))
    )


FIGURES = {  # command: (name in the summary, stem of its files, figure)
    "figure": ("6", "figure_6", _figure(BUDGETS)),
    "finetuned": ("6, dense layers fine-tuned", "figure_6-finetuned", _figure(FINETUNED)),
    "sentences": (
        "sentences",
        f"{SCRIPT}-sentences",
        claims_figure(CLAIMS, partial(points, OTHERS), section="5.3"),
    ),
}
