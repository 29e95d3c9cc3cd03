"""The pictures of Figures 3, 4 and 5 from their summaries. Matplotlib loads when the first one is drawn."""
import math

from minidp.files import atomic_write

LEAST_SPAN = 0.03  # of a panel's accuracy axis
LINES = {"projection-random": ("random projection", "tab:red"), "projection-none": ("no PCA", "tab:green")}


def draw_noise_levels(path, summary, lowest=0.8):
    """Figures 3 and 6: a plot for each level, accuracy from `lowest`; delta at its epsilon on the right axis."""
    figure, axes = _figure(1, len(summary["levels"]))
    for axis, level in zip(axes, summary["levels"].values()):
        curves = level["curves"]
        handles = axis.plot(curves["epoch"], curves["train_accuracy_not_private"], color="tab:red",
                            label="training (not private)")
        handles += axis.plot(curves["epoch"], curves["test_accuracy"], color="tab:blue", label="testing")
        axis.set(xlabel="epoch", ylabel="accuracy", ylim=(lowest, 1.0), title=(
            f"{level['label']}: {level['test_accuracy']:.2%} at epsilon {level['target_epsilon']:g}"
            + (f"\n{level['test_accuracy_over_views']:.2%} over ten views" if "test_accuracy_over_views" in level else "")))
        axis.grid(alpha=0.3)
        front = axis
        drawn = [value if value and value < math.inf else math.nan for value in curves["delta_at_epsilon"] or ()]
        if not all(map(math.isnan, drawn)):
            front = axis.twinx()
            front.set(ylabel=f"delta at epsilon {level['target_epsilon']:g}", yscale="log")
            handles += front.plot(curves["epoch"], drawn, color="tab:green", linestyle="--", label="delta")
        front.legend(handles=handles, loc="lower right", fontsize=8)
    notice = "\n" + summary["notice"] if summary.get("notice") else ""
    _save(figure, path, f"Figure {summary['figure']}, mean of {len(summary['seeds'])} seed(s), {summary['dataset']}{notice}")


def draw_budgets(path, summary):
    """Figure 4: accuracy against epsilon, a line for each delta."""
    figure, (axis,) = _figure(1, 1)
    for delta in sorted({pair["delta"] for pair in summary["pairs"]}, reverse=True):
        pairs = [pair for pair in summary["pairs"] if pair["delta"] == delta and pair["test_accuracy"] is not None]
        axis.plot([pair["epsilon"] for pair in pairs], [pair["test_accuracy"] for pair in pairs], marker="o",
                  label=f"delta {delta:g}")
    axis.set(xlabel="epsilon", ylabel="best test accuracy", xscale="log")
    ticks = sorted({pair["epsilon"] for pair in summary["pairs"]})
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    axis.legend()
    _save(figure, path, f"Figure 4, {summary['dataset']}")


def draw_panels(path, summary):
    """Figure 5, or one panel of it: accuracy against the parameter; a bar spans the seeds."""
    panels = summary["panels"]
    columns = min(3, len(panels))
    figure, axes = _figure(math.ceil(len(panels) / columns), columns)
    for axis, (letter, panel) in zip(axes, panels.items()):
        trained = [point for point in panel["points"] if point["steps"]]
        x, y = [point["x"] for point in trained], [point["test_accuracy"] for point in trained]
        spread = [[point["test_accuracy"] - point["lowest"] for point in trained],
                  [point["highest"] - point["test_accuracy"] for point in trained]]
        axis.errorbar(x, y, yerr=spread, marker="o", capsize=3, color="tab:blue")
        for line in panel["lines"]:
            if line["steps"]:
                label, color = LINES[line["name"]]
                axis.axhline(line["test_accuracy"], color=color, linestyle="--", label=label)
        for point in panel["points"]:
            if not point["steps"]:
                axis.plot([point["x"]], [0.02], "rx", transform=axis.get_xaxis_transform(), clip_on=False)
                axis.annotate("no lot left", (point["x"], 0.02), xycoords=axis.get_xaxis_transform(),
                              textcoords="offset points", xytext=(4, 4), fontsize=8, color="tab:red")
        low, high = axis.get_ylim()
        if high - low < LEAST_SPAN:  # so that what one seed differs from another does not look like a trend
            axis.set_ylim((low + high - LEAST_SPAN) / 2, (low + high + LEAST_SPAN) / 2)
        if not panel["points"]:
            axis.text(0.5, 0.5, "no run yet", transform=axis.transAxes, ha="center")
        if any(line["steps"] for line in panel["lines"]):
            axis.legend(fontsize=8, loc="lower right")
        axis.set(xlabel=panel["label"], ylabel="test accuracy", title=f"({'abcdef'.index(letter) + 1}) {panel['label']}")
        axis.grid(alpha=0.3)
    _save(figure, path, f"Figure 5, each point until (2, 1e-5) would be exceeded, {len(summary['seeds'])} seed(s), "
                        f"{summary['dataset']}")


def draw_runs(path, summary):
    """Test accuracy of all runs behind the sentences."""
    figure, (axis,) = _figure(1, 1)
    runs = sorted((run for run in summary["runs"] if run["steps"]), key=lambda run: run["test_accuracy"])
    figure.set_size_inches(7, 0.22 * len(runs) + 1.5)
    axis.plot([run["test_accuracy"] for run in runs], [run["name"] for run in runs], "o")
    axis.set(xlabel="test accuracy")
    axis.grid(alpha=0.3)
    _save(figure, path, f"Runs behind the sentences of Section {summary.get('section', '5.2')}, {summary['dataset']}")


def draw_claims(path, summary):
    """What each accountant's noise is worth against its claim, and the accuracy of each."""
    figure, (left, right) = _figure(1, 2)
    for name, marker in zip(summary["claims"][0]["accountants"], "osx"):
        worth = [claim["accountants"][name]["worth"]["upper"] / claim["claim"] for claim in summary["claims"]]
        left.plot(range(len(worth)), worth, marker=marker, label=name)
    left.axhline(1, color="grey", linestyle=":")
    left.set_xticks(range(len(summary["claims"])), [f"{claim['claim']:.3g}" for claim in summary["claims"]])
    left.set(xlabel="claimed epsilon", ylabel="certified epsilon / claimed")
    left.legend(fontsize=8)
    left.grid(alpha=0.3)
    for optimizer in dict.fromkeys(one["optimizer"] for one in summary["trained"]):
        ours = [one for one in summary["trained"] if one["optimizer"] == optimizer]
        right.plot([one["by"] for one in ours], [one["test_accuracy"] for one in ours], marker="o",
                   linestyle="none", label=f"Noisy{optimizer.upper() if optimizer == 'sgd' else optimizer.title()}")
    claim = summary["claims"][summary["setting"] - 1]
    right.set(xlabel="noise chosen by", ylabel="test accuracy", title=f"claim {claim['claim']:.3g}, {claim['epochs']} epochs")
    right.legend(fontsize=8)
    right.grid(alpha=0.3)
    _save(figure, path, f"Gaussian differential privacy, delta {summary['delta']:g}, {summary['dataset']}")


def _figure(rows, columns):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0 * columns, 3.8 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _save(figure, path, title):
    figure.suptitle(title)
    with atomic_write(path, "wb") as file:
        figure.savefig(file, format="png", dpi=100)
