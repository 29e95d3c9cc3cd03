"""Pictures and tables of epsilon and of trade-off curves. Matplotlib loads when the first one is drawn."""
import csv
import math

from ..files import atomic_write


def save_epsilon_curves(path, epochs, curves, delta, title="", reference=(), kinds=None, logarithmic=False):
    """Write path.csv and path.png: epsilon against epochs, one line per accountant, with its certified band.

    epochs      (K,), where the curves were read
    curves      {name: list of K Bound}; an unknown bound is left out
    reference   (epochs, epsilon, label) of points to mark, such as figures that the paper prints
    kinds       {name: "bound" | "approximation" | "comparison"}; what is no bound says so in the legend
    """
    with atomic_write(f"{path}.csv") as file:
        writer = csv.writer(file)
        writer.writerow(["epochs", *(f"{name}_{side}" for name in curves for side in ("lower", "estimate", "upper"))])
        for i, epoch in enumerate(epochs):
            sides = [(bounds[i].lower, bounds[i].estimate, bounds[i].upper) for bounds in curves.values()]
            writer.writerow([epoch, *("" if value is None else repr(float(value))
                                      for three in sides for value in three)])
    figure, axes = _figure("epochs", f"epsilon at delta = {delta:g}", title)
    for name, bounds in curves.items():
        known = [(epoch, bound) for epoch, bound in zip(epochs, bounds)
                 if bound.upper is not None and math.isfinite(bound.upper)]
        line, = axes.plot([epoch for epoch, _ in known], [bound.upper for _, bound in known], label=_label(name, kinds))
        if known and all(bound.lower is not None for _, bound in known):
            axes.fill_between([epoch for epoch, _ in known], [bound.lower for _, bound in known],
                              [bound.upper for _, bound in known], color=line.get_color(), alpha=0.3, linewidth=0)
    for x, y, label in reference:
        axes.plot([x], [y], "k+", markersize=9)
        axes.annotate(label, (x, y), textcoords="offset points", xytext=(4, 4), fontsize=8)
    if logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    _save(figure, f"{path}.png")


def _label(name, kinds):
    kind = (kinds or {}).get(name, "bound")
    return name if kind == "bound" else f"{name} ({kind}, no guarantee)"


def save_tradeoff(path, alphas, curves):
    """Write a PNG of type II against type I error; alphas (K,), curves {name: betas (K,)}."""
    figure, axes = _figure("false positive rate", "false negative rate, at least", "")
    axes.plot([0, 1], [1, 0], color="grey", linestyle=":", label="nothing released")
    for name, betas in curves.items():
        axes.plot(alphas, betas, label=name)
    axes.legend()
    _save(figure, path)


def _figure(x, y, title):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot(xlabel=x, ylabel=y, title=title)


def _save(figure, path):
    with atomic_write(path, "wb") as file:
        figure.savefig(file, format="png", dpi=150)
