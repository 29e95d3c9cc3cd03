#!/usr/bin/env python3
"""Figures 3, 4 and 5 of Abadi et al. 2016 on MNIST, each from many runs of the main job in parallel
processes.

    python experiments/mnist_sweeps.py --figure 5a      # one panel; --figure 5 for all six
    python experiments/mnist_sweeps.py --figure 3 --seeds 5
    # eight workers of MPI
    mpiexec -n 9 python -m mpi4py.futures experiments/mnist_sweeps.py --executor mpi

What is finished is not run again: the same command goes on after an interrupt, and more seeds add
to those there.
"""

from dataclasses import dataclass

from common.config import option, parse
from common.sweep_figures import AVERAGED, BUDGETS, LEVELS, TIGHT, TRIALS, panels
from common.sweep_flags import DigitSweepFlags
from common.sweep_sentences import SENTENCES, TUNED_LOTS

from minidp.commands.flags import user_errors
from minidp.errors import ParameterError

NAME = "mnist_sweeps"
FIGURES = {
    "3": LEVELS,
    "3-tight": TIGHT,
    "3-averaged": AVERAGED,
    "4": BUDGETS,
    "5": panels("abcdef"),
    "sentences": SENTENCES,
    "lot-rates": panels(TRIALS),
    "5c-tuned": TUNED_LOTS,
    **{f"5{letter}": panels(letter) for letter in "abcdef"},
}
SMOKE = " --smoke --epochs 2 --lot-size 60"


@dataclass(frozen=True)
class Config(DigitSweepFlags):
    """The flags."""

    figure: str = option(
        "5",
        "figure of the paper (3-tight: held by the loss distribution, which allows more lots; "
        "3-averaged: the weights averaged too), a panel of Figure 5, the sentences of its text, or "
        "lot sizes by the rates (5c-tuned) that lot-rates found on drawn digits",
        choices=tuple(FIGURES),
    )

    def __post_init__(self):
        super().__post_init__()
        if self.figure == "lot-rates" and self.dataset != "strokes":
            raise ParameterError("lot-rates chooses by drawn digits alone: say --dataset strokes")


def main(argv=None):
    """Run the sweep, write the figure, return its summary."""
    with user_errors() as note:
        config = parse(Config, argv, prog=f"{NAME}.py", description=__doc__.splitlines()[0])
        note.saved = config.saved
        common = "--accountant loss_distribution" + SMOKE * config.smoke
        return config.make(
            NAME, FIGURES[config.figure], f"figure_{config.figure}", common, figure=config.figure
        )


if __name__ == "__main__":
    main()
