"""Curves of a run as a picture. Matplotlib loads with the first picture."""

import math

from ..privacy.accountants import called
from ..util.notices import say
from . import plotting
from .progress import COLUMNS


def draw_course(path, history, record):
    """Call `save_course`; if drawing fails, the run continues with an empty file."""
    try:
        save_course(path, history, record)
    except Exception as error:  # from the drawing library, or a full disk
        say(f"NOTICE: {path.name} is empty: it could not be drawn ({error})")
        path.write_bytes(b"")


def save_course(path, history, record):
    """Write the curves of a run's history (the rows of metrics.csv) as PNG, atomically: accuracy or
    R2, and epsilon on the right axis.

    An epsilon that is infinite or unknown is left out. record: a Record.
    """
    column = {name: [row.get(name) for row in history] for name in COLUMNS}
    r2 = any(value is not None for value in column["test_r2"] + column["train_r2_not_private"])
    name, shown = ("r2", "R2") if r2 else ("accuracy", "accuracy")
    figure, (left,) = plotting.new_figure(
        title=f"Training on {record.dataset}", notice=record.notice
    )
    measured = column[f"test_{name}"], column[f"train_{name}_not_private"]
    handles = draw_accuracy(left, column["epoch"], *measured, shown)
    label = f"epsilon ({called(record.accountant)}) at delta {record.delta:g}"
    right, _ = draw_spent(left, column["epoch"], column["epsilon"], label, bool(handles))
    plotting.legend(figure, handles + right)
    plotting.save(figure, path)


def draw_accuracy(axis, epochs, test_accuracy, train_accuracy=None, figure_name="accuracy"):
    """Draw the measured curves into an axis; returns lines for a legend."""
    handles = []
    curves = {"test {}": test_accuracy, "training {} (not private)": train_accuracy}
    for number, (label, values) in enumerate(curves.items()):
        if values is not None and any(value is not None for value in values):
            style = plotting.line(number, len(epochs))
            handles += axis.plot(epochs, values, label=label.format(figure_name), **style)
    axis.set(xlabel="epoch")
    if handles:
        axis.set(ylabel=figure_name)
    return handles


def draw_spent(left, epochs, spent, label, twin=True):
    """Draw epsilon or delta over the epochs into a twin of the axis, on its right; returns (lines
    for a legend, the twin), or ([], None) without any finite figure. twin=False: into `left`.
    """
    values = [
        math.nan if value is None or not 0 < float(value) < math.inf else float(value)
        for value in spent or ()
    ]
    if all(map(math.isnan, values)):
        return [], None
    axis = left.twinx() if twin else left
    axis.set(ylabel=label)
    name = f"{label.split()[0]}{' (right)' if twin else ''}"
    return axis.plot(epochs, values, label=name, **plotting.line(2, len(epochs))), axis
