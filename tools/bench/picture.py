"""Time and peak memory of a step against the size of its lot."""
from minidp import plotting

from .tables import label, words


def lot_sizes(contests, path):
    """Draw both for every workload, device and contender that was measured at more than one lot, as PNG."""
    series = {}
    for contest in contests:
        for row in contest["rows"]:
            name = f"{label(contest)}: {words(row['contender'])}"
            series.setdefault(name, []).append((contest["lot"], row["step_ms"], row["peak_mib"]))
    figure, axes = plotting.new_figure(1, 2, title="A private step against the size of its lot", panel=(5.2, 4.6))
    handles = []
    for i, (name, points) in enumerate((name, points) for name, points in series.items() if len(points) > 1):
        lots, *measured = zip(*sorted(points))
        for axis, values in zip(axes, measured):
            drawn = axis.loglog(lots, values, label=name, **plotting.line(i))
        handles += drawn
    axes[0].set(xlabel="examples in a lot", ylabel="time of a step, ms")
    axes[1].set(xlabel="examples in a lot", ylabel="peak memory that the steps add, MiB")
    if handles:
        plotting.legend(figure, handles)
    plotting.save(figure, path)
