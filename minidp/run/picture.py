"""Curves of a run as a picture. Matplotlib loads when the first one is drawn."""

import math

from ..util import plotting
from .progress import COLUMNS


def save_course(path, history, *, train_metrics=True, epsilon=None, title="", notice=""):
    """Write the curves of a run's history, its rows of metrics.csv, as PNG, whole or not at all, in
    the manner of the paper's Figure 3: of accuracy or of R2.

    epsilon   at which the rows' delta is drawn, on the right axis, logarithmic; 0 cannot be drawn
              and is left out
    notice    of the data, in a line below the axes
    """
    column = {name: [row.get(name) for row in history] for name in COLUMNS}
    r2 = any(value is not None for value in column["test_r2"] + column["train_r2_not_private"])
    name, shown = ("r2", "R2") if r2 else ("accuracy", "accuracy")
    figure, (left,) = plotting.new_figure(title=title, notice=notice)
    handles, _ = draw_curves(
        left,
        column["epoch"],
        column[f"test_{name}"],
        column[f"train_{name}_not_private"] if train_metrics else None,
        column["delta_at_epsilon"],
        epsilon,
        shown,
    )
    plotting.legend(figure, handles)
    plotting.save(figure, path)


def draw_curves(
    left,
    epochs,
    test_accuracy,
    train_accuracy=None,
    delta=None,
    epsilon=None,
    figure_name="accuracy",
):
    """Draw the curves into an axis, delta into a twin of it; returns (lines for a legend, the twin
    or None).
    """
    handles = []
    if any(value is not None for value in test_accuracy):
        handles += left.plot(
            epochs, test_accuracy, label=f"test {figure_name}", **plotting.line(0, len(epochs))
        )
    if train_accuracy is not None:
        handles += left.plot(
            epochs,
            train_accuracy,
            label=f"training {figure_name} (not private)",
            **plotting.line(1, len(epochs)),
        )
    left.set(xlabel="epoch", **({"ylabel": figure_name} if handles else {"yticks": []}))
    drawn = [
        value if value is not None and 0 < value < math.inf else math.nan for value in delta or ()
    ]
    if not all(map(math.isnan, drawn)):
        right = left.twinx()
        right.set(ylabel=f"delta at epsilon {epsilon:g}", yscale="log")
        handles += right.plot(epochs, drawn, label="delta (right)", **plotting.line(2, len(epochs)))
        return handles, right
    return handles, None
