"""The pictures of Figures 3 to 6 and of the sentences' runs, from their summaries, the paper's own
figures beside ours.
"""

import math
import statistics

from minidp.privacy.accountants import called
from minidp.run import plotting
from minidp.run.curves import draw_accuracy, draw_spent

from .results import rows_of

# the line's words and style
LINES = {
    "projection-random": ("random projection", 1),
    "projection-none": ("no PCA", 2),
}
DOTTED = {"color": "black", "linewidth": 1, "linestyle": (0, (1, 2))}  # the paper's figures


def draw_noise_levels(path, summary, limits=(0.8, 1.0)):
    """Figures 3 and 6: a panel for each level, accuracy within `limits`; delta at its epsilon on
    the right axis.

    All panels have one scale of accuracy and one of delta. A band spans the seeds.
    """
    levels = list(summary["levels"].values())
    figure, axes = _figure(
        summary, f"Figure {summary['figure']}", 1, len(levels), panel=(4.6, 4.2), sharey=True
    )
    for axis, level in zip(axes, levels):
        found = level["curves"]
        epochs = found["epoch"]
        handles = draw_accuracy(
            axis, epochs, found["test_accuracy"], found["train_accuracy_not_private"]
        )
        spent, right = draw_spent(axis, epochs, found["delta_at_epsilon"], "delta")
        handles += spent
        band = {"color": plotting.BLUE, "alpha": 0.25, "linewidth": 0}
        axis.fill_between(epochs, found["lowest"], found["highest"], **band)
        handles.append(axis.axhline(level["paper"], label="the paper, test accuracy", **DOTTED))
        views = ""
        if "test_accuracy_over_views" in level:
            views = f", {level['test_accuracy_over_views']:.2%} over ten views"
        axis.set(
            ylim=limits,
            ylabel="accuracy" if axis is axes[0] else "",
            title=(
                f"{level['label']}: {level['test_accuracy']:.2%} at epsilon "
                f"{level['target_epsilon']:g}{views}\nthe paper: {level['paper']:.0%}"
            ),
        )
        if right:
            right.set(
                yscale="log",
                ylim=(1e-12, 1e-4),
                ylabel="delta at the panel's epsilon" if axis is axes[-1] else "",
            )
            right.tick_params(labelright=axis is axes[-1])
    plotting.legend(figure, handles, columns=4)
    plotting.save(figure, path)


def draw_budgets(path, summary):
    """Figure 4: accuracy against epsilon, a line and a band over the seeds for each delta; stars
    are the paper's.
    """
    figure, (axis,) = _figure(summary, "Figure 4: best accuracy by (epsilon, delta)")
    deltas = sorted({pair["delta"] for pair in summary["pairs"]}, reverse=True)
    for i, delta in enumerate(deltas):
        pairs = [pair for pair in summary["pairs"] if pair["delta"] == delta and pair["steps"]]
        _draw_means(axis, pairs, "epsilon", f"delta {delta:g}", plotting.line(i))
    for i, delta in enumerate(deltas):
        printed = [pair for pair in summary["paper"] if pair["delta"] == delta]
        if printed:
            x, y = _columns(printed, "epsilon", "test_accuracy")
            style = plotting.PAPER | {"color": plotting.line(i)["color"]}
            axis.plot(x, y, label=f"the paper, delta {delta:g}", **style)
    ticks = sorted({pair["epsilon"] for pair in summary["pairs"]})
    axis.set(xlabel="epsilon", ylabel="best test accuracy", xscale="log")
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    plotting.legend(figure, axis.get_legend_handles_labels()[0])
    plotting.save(figure, path)


def draw_panels(path, summary):
    """Figure 5, or one panel of it: accuracy against the parameter, all panels on one scale; a band
    spans the seeds.
    """
    panels = summary["panels"]
    columns = min(3, len(panels))
    what = f"Figure {summary['figure']}: each point until (2, 1e-5) would be exceeded"
    figure, axes = _figure(
        summary,
        what,
        math.ceil(len(panels) / columns),
        columns,
        sharey=True,
        panel=(4.4, 3.4) if len(panels) > 1 else (6.4, 4.2),
    )
    handles = {}
    for axis, (letter, panel) in zip(axes, panels.items()):
        trained = [point for point in panel["points"] if point["steps"]]
        _draw_means(axis, trained, "x", None, plotting.line(0))
        for line in panel["lines"]:
            if line["steps"]:
                label, i = LINES[line["name"]]
                colour, dashes = plotting.COLOURS[i], plotting.DASHES[i]
                axis.axhline(line["test_accuracy"], label=label, color=colour, linestyle=dashes)
                axis.axhspan(line["lowest"], line["highest"], color=colour, alpha=0.2, linewidth=0)
                dotted = DOTTED | {"color": colour}
                axis.axhline(line["paper"], label=f"{label}, the paper", **dotted)
        for point in panel["points"]:
            if not point["steps"]:
                across = {"color": plotting.VERMILION, "transform": axis.get_xaxis_transform()}
                axis.plot([point["x"]], [0.03], "x", **across)
                axis.text(point["x"], 0.05, "no lot left", fontsize=plotting.SMALL, **across)
        if panel["paper"]:
            label = "the reference values, the paper"
            axis.plot(panel["reference"], panel["paper"], label=label, **plotting.PAPER)
        if panel["best"]:
            axis.axvline(panel["best"], label="the top, the paper", **DOTTED)
        axis.set(
            title=f"({ord(letter) - 96}) {panel['label']}" if letter in "abcdef" else panel["label"]
        )
        found, labels = axis.get_legend_handles_labels()
        handles |= dict(zip(labels, found))
    for axis in axes[::columns]:
        axis.set_ylabel("test accuracy")
    if handles:
        plotting.legend(figure, list(handles.values()))
    plotting.save(figure, path)


def draw_runs(path, summary):
    """Test accuracy of all runs behind the sentences; a bar spans the seeds."""
    found = {}
    for run in rows_of(summary):
        if run["steps"]:
            found.setdefault(run["name"], []).append(run["test_accuracy"])
    runs = sorted(found, key=lambda name: statistics.mean(found[name]))
    figure, (axis,) = _figure(
        summary,
        f"Runs behind the sentences of Section {summary.get('section', '5.2')}",
        panel=(7, 0.22 * len(runs) + 1.8),
    )
    lowest, highest, means = (
        [end(found[name]) for name in runs] for end in (min, max, statistics.mean)
    )
    axis.hlines(range(len(runs)), lowest, highest, color=plotting.BLUE)
    axis.plot(means, range(len(runs)), "o", color=plotting.BLUE)
    axis.set_yticks(range(len(runs)), [name.removeprefix("cifar_transfer-") for name in runs])
    axis.set(xlabel="test accuracy", ylim=(-1, len(runs)))
    plotting.save(figure, path)


def draw_claims(path, summary):
    """What each accountant's noise is worth against its claim, and the accuracy of each."""
    figure, (left, right) = _figure(
        summary,
        f"Gaussian differential privacy, delta {summary['delta']:g}",
        1,
        2,
        panel=(5.0, 4.2),
    )
    claims = summary["claims"]
    names = list(claims[0]["accountants"])
    for i, name in enumerate(names):
        worth = [one["accountants"][name]["worth"]["upper"] / one["claim"] for one in claims]
        left.plot(range(len(worth)), worth, label=f"noise by {called(name)}", **plotting.line(i))
    left.axhline(1, color="grey", linestyle=":")
    left.set_xticks(range(len(claims)), [f"{one['claim']:.3g}" for one in claims])
    left.set(
        xlabel="claimed epsilon",
        ylabel="certified epsilon / claimed",
        title="what the noise is worth",
    )
    left.legend(fontsize=plotting.SMALL)
    for i, optimizer in enumerate(dict.fromkeys(one["optimizer"] for one in summary["trained"])):
        ours = [one for one in summary["trained"] if one["optimizer"] == optimizer]
        by, y, low, high = _columns(ours, "by", "test_accuracy", "lowest", "highest")
        x, style = [*map(names.index, by)], plotting.line(i) | {"linestyle": "none"}
        label = {"sgd": "NoisySGD", "adam": "NoisyAdam"}[optimizer]
        right.plot(x, y, label=label, **style)
        right.vlines(x, low, high, color=style["color"])
    right.set_xticks(range(len(names)), [called(name).replace(" ", "\n", 1) for name in names])
    right.margins(x=0.2, y=0.15)
    claim = claims[summary["setting"] - 1]
    right.set(
        xlabel="noise chosen by",
        ylabel="test accuracy",
        title=f"claim {claim['claim']:.3g}, {claim['epochs']} epochs",
    )
    right.legend(fontsize=plotting.SMALL)
    plotting.save(figure, path)


def _columns(rows, *names):
    """A list of the rows' values for each name."""
    return [[row[name] for row in rows] for name in names]


def _draw_means(axis, rows, x, label, style):
    """The mean accuracies of rows against their entry x, and a band that spans the seeds."""
    x, y, seeds = _columns(rows, x, "test_accuracy", "test_accuracy_by_seed")
    axis.plot(x, y, label=label, **style)
    low, high = [*map(min, seeds)], [*map(max, seeds)]
    axis.fill_between(x, low, high, color=style["color"], alpha=0.25, linewidth=0)


def _figure(summary, what, *shape, **named):
    """(figure, axes) under a title that says what, over how many seeds, on which data."""
    seeds = len(summary["seeds"])
    fewest = summary.get("fewest_seeds", seeds)
    few = f"{fewest} to " if fewest < seeds else ""
    over = f"mean and range of {few}{seeds} seeds" if seeds > 1 else "one seed"
    title = f"{what}; {over}, {summary['dataset']}"
    return plotting.new_figure(*shape, title=title, notice=summary.get("notice", ""), **named)
