"""Curves of a run as a picture. Matplotlib loads when the first one is drawn."""
import math

from minidp.files import atomic_write


def save_curves(path, epochs, test_accuracy, *, train_accuracy=None, delta=None, epsilon=None, title=""):
    """Write a PNG in the manner of the paper's Figure 3, whole or not at all.

    epochs          where the curves were measured
    test_accuracy   fractions, one for each of them; train_accuracy likewise, if it was measured
    delta           at the fixed `epsilon`, on the right axis, logarithmic; 0 cannot be drawn and is left out
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left = figure.add_subplot(xlabel="epoch", ylabel="accuracy", title=title)
    lines = left.plot(epochs, test_accuracy, color="tab:blue", label="test accuracy")
    if train_accuracy is not None:
        lines += left.plot(epochs, train_accuracy, color="tab:red", label="training accuracy (not private)")
    left.grid(alpha=0.3)
    front = left
    drawn = [value if value is not None and 0 < value < math.inf else math.nan for value in delta or ()]
    if not all(map(math.isnan, drawn)):
        front = left.twinx()
        front.set(ylabel=f"delta at epsilon {epsilon:g}", yscale="log")
        lines += front.plot(epochs, drawn, color="tab:green", linestyle="--", label="delta")
    front.legend(handles=lines, loc="lower right")
    with atomic_write(path, "wb") as file:
        figure.savefig(file, format="png", dpi=120)
