"""The style of every picture: size, colours that colour-blind readers can tell apart, wrapped
titles.

Matplotlib loads with the first figure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from ..util.atomic import StrPath, atomic_write

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008, without the yellow, which is too pale on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, VERMILION, *_, BLACK = COLOURS
MARKERS = "os^Dv<>"
DASHES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 3)))
PAPER: dict[str, Any] = {
    "linestyle": "none",
    "marker": "*",
    "markersize": 10,
    "color": BLACK,
    "markerfacecolor": "white",
    "zorder": 5,
}
TITLE, PANEL_TITLE, SMALL = 12, 10, 8  # points
DPI = 150


def new_figure(
    rows: int = 1,
    columns: int = 1,
    *,
    title: str = "",
    notice: str = "",
    panel: tuple[float, float] = (6.4, 4.2),
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """(figure, list of its axes): panels of `panel` inches below a title and a notice (synthetic
    digits).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(panel[0] * columns, panel[1] * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False, **shared).flat)
    for axis in axes:
        axis.grid(alpha=0.3)
    text = "\n".join(filter(None, [title, notice]))
    if text:
        figure.suptitle(_wrapped(text, figure.get_figwidth(), TITLE), fontsize=TITLE)
    return figure, axes


def legend(figure: Figure, handles: Sequence[Artist], columns: int = 3) -> None:
    """One legend for all panels, below them, in as many columns as fit, at most `columns`."""
    made = figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=SMALL)
    figure.draw_without_rendering()
    if made.get_window_extent().width > figure.bbox.width and columns > 1:
        made.remove()
        legend(figure, handles, columns - 1)


def line(i: int, points: int = 1) -> dict[str, Any]:
    """Keywords of the i-th line of a plot: colour, dashes and marker differ together; about eight
    markers a line.
    """
    return {
        "color": COLOURS[i % len(COLOURS)],
        "linestyle": DASHES[i % len(DASHES)],
        "marker": MARKERS[i % len(MARKERS)],
        "markersize": 4,
        "markevery": max(1, points // 8),
    }


def save(figure: Figure, target: StrPath | IO[bytes]) -> None:
    """Write the figure as PNG to a path, atomically, or into an open file. Titles of panels are
    wrapped.
    """
    for axis in figure.axes:
        grid = axis.get_subplotspec().get_gridspec()  # type: ignore[union-attr]
        width = figure.get_figwidth() / grid.ncols
        axis.set_title(_wrapped(axis.get_title(), width, PANEL_TITLE), fontsize=PANEL_TITLE)
    if hasattr(target, "write"):
        figure.savefig(target, format="png", dpi=DPI)
    else:
        with atomic_write(target, "wb") as file:
            figure.savefig(file, format="png", dpi=DPI)


def _wrapped(text, inches, points):
    """The text in lines that fit. A character counts as 0.56 of its size wide, more than the font's
    average.
    """
    width = int(0.95 * inches * 72 / (0.56 * points))
    return "\n".join(textwrap.fill(part, width) for part in text.splitlines())
