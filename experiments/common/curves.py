"""Pictures and tables of epsilon and of trade-off curves. Matplotlib loads when the first one is
drawn.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from minidp.privacy import Accountant, Bound, Ledger
from minidp.privacy.accountants import called
from minidp.run import plotting
from minidp.run.tradeoff import epsilon_delta_curve, tangents
from minidp.util.atomic import StrPath, atomic_write

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEGEND = {  # what the paper calls the curves of Figure 2
    "paper_strong_composition": "strong composition, as in the paper",
    "moments_paper_orders": "moments accountant, orders up to 32",
}


def accountant_curve(accountant: Accountant, ledger: Ledger, alphas: NDArray) -> NDArray:
    """A lower bound on the trade-off curve: the maximum of the lines that an accountant's certified
    deltas give.
    """
    epsilons = np.linspace(0.0, max(1.0, min(accountant.epsilon(ledger, 1e-6).upper, 100.0)), 40)
    curves = [
        epsilon_delta_curve(alphas, epsilon, delta)
        for epsilon, delta in tangents(accountant, ledger, epsilons)
    ]
    return np.max(curves, axis=0)


def save_epsilon_curves(
    path: StrPath,
    epochs: Sequence[float],
    curves: Mapping[str, Sequence[Bound]],
    delta: float,
    title: str,
    kinds: Mapping[str, str],
    reference: Sequence[tuple[float, float, str]] = (),
    logarithmic: bool = False,
) -> None:
    """Write path.csv and path.png: epsilon against epochs, one line per accountant, with its
    certified band.

    epochs      (K,), where the curves were read
    curves      {name: list of K Bound}; an unknown bound is left out
    kinds       {name: "bound" | "approximation" | "comparison"}; what is no bound says so in the
                legend, and is dashed
    reference   (epochs, epsilon, label) of points to mark, away from the left edge, such as figures
                that the paper prints
    """
    with atomic_write(f"{path}.csv") as file:
        writer = csv.writer(file)
        ends = [(name, end) for name in curves for end in ("lower", "estimate", "upper")]
        writer.writerow(["epochs", *(f"{name}_{end}" for name, end in ends)])
        for i, epoch in enumerate(epochs):
            writer.writerow([epoch, *(getattr(curves[name][i], end) for name, end in ends)])
    figure, (axes,) = plotting.new_figure(title=title)
    for i, (name, bounds) in enumerate(curves.items()):
        # matplotlib draws no line to NaN
        lowers, uppers = (
            [math.nan if end in (None, math.inf) else end for end in ends]
            for ends in zip(*((bound.lower, bound.upper) for bound in bounds))
        )
        (drawn,) = axes.plot(epochs, uppers, **_line(i, len(epochs), name, kinds))
        axes.fill_between(epochs, lowers, uppers, color=drawn.get_color(), alpha=0.3, linewidth=0)
    if reference:
        axes.plot(
            *zip(*((x, y) for x, y, _ in reference)), label="printed in the paper", **plotting.PAPER
        )
    for x, y, label in reference:
        axes.annotate(
            label,
            (x, y),
            textcoords="offset points",
            xytext=(-6, 4),
            ha="right",
            fontsize=plotting.SMALL,
        )
    axes.set(xlabel="epochs", ylabel=f"epsilon at delta = {delta:g}")
    if logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    plotting.legend(figure, axes.get_legend_handles_labels()[0], columns=2)
    plotting.save(figure, f"{path}.png")


def _line(i, points, name, kinds):
    """The label and style of a line: solid for a bound, dashed for what is none."""
    style = plotting.line(i, points)
    label = LEGEND.get(name, called(name))
    if kinds.get(name, "bound") == "bound":
        return {**style, "label": label, "linestyle": "-"}
    return {**style, "label": f"{label}\n(no guarantee)", "linestyle": "--"}


def save_tradeoff(
    path: StrPath,
    alphas: NDArray,
    curves: Mapping[str, NDArray],
    title: str,
    kinds: Mapping[str, str],
) -> None:
    """Write a PNG of type II against type I error; alphas (K,), curves {name: betas (K,)}, kinds as
    above.
    """
    figure, (axes,) = plotting.new_figure(title=title)
    for i, (name, betas) in enumerate(curves.items()):
        # never above a falling curve
        axes.plot(alphas, betas, drawstyle="steps-pre", **_line(i, len(alphas), name, kinds))
    axes.plot([0, 1], [1, 0], color="grey", linestyle=":", label="nothing released")
    axes.set(xlabel="false positive rate", ylabel="false negative rate, at least")
    axes.legend()
    plotting.save(figure, path)
