"""Pictures of the attacks' lower bounds beside the certified intervals, and of the ledger of
2016.
"""

import numpy as np

from minidp.run import plotting


def draw_attacks(result, words, path):
    """Every bound as a mark beside the certified interval; a panel for each setting."""
    settings = {}
    for found in result["attacks"]:
        settings.setdefault(f"q {found['q']:g}, {found['steps']} steps", []).append(found)
    figure, panels = plotting.new_figure(
        1,
        len(settings),
        panel=(3.9, 4.2),
        notice=words,
        title="How much of the certified epsilon attacks show, with 95% confidence",
    )
    for axis, (where, rows) in zip(panels, settings.items()):
        places = np.arange(len(rows))
        low, high = np.array([found["certified"] for found in rows]).T
        style = {"color": plotting.BLACK, "edgecolor": plotting.BLACK}
        marks = [axis.bar(places, high - low, 0.9, low, label="certified interval", **style)]
        for i, name in enumerate(rows[0]["bounds"]):
            shown = [found["bounds"][name]["lower"] for found in rows]
            style = {"color": plotting.COLOURS[i], "label": name}
            marks += axis.plot(places + 0.2 * (i - 0.5), shown, plotting.MARKERS[i], **style)
        axis.set(title=where, xlim=(-0.6, len(rows) - 0.4), ylim=(0, 10.6))
        axis.set_xticks(places, [f"$\\sigma$ {found['noise_multiplier']:.2f}" for found in rows])
    panels[0].set_ylabel(f"epsilon at delta {result['delta']:g}")
    plotting.legend(figure, marks, 3)
    plotting.save(figure, path)


def draw_2016(found, path):
    """What the ledger of 2016 prints, what an attack shows, and what the joint analysis certifies,
    over the lots.
    """
    figure, (axis,) = plotting.new_figure(
        title="The ledger of the 2016 code prints less than an attack shows",
        notice=f"sigma {found['noise_multiplier']:g} on each of {found['tensors']} tensors, "
        f"{found['pca_noise_multiplier']:g} on PCA, q {found['q']:g}, delta {found['delta']:g}; "
        "the attack is on the steps alone, and right with 95% confidence",
    )
    rows = {
        "certified: both tensors of a step are from one lot": [y for _, y in found["certified"]],
        "shown by an attack on every step": found["lower"],
        "printed: each tensor as if from a lot of its own": found["printed"],
    }
    lines = []
    for i, (name, y) in enumerate(rows.items()):
        lines += axis.plot(found["lots"], y, label=name, **plotting.line(i))
    axis.fill_between(
        found["lots"], found["printed"], found["lower"], alpha=0.15, color=plotting.VERMILION
    )
    axis.set(xlabel="lots", ylabel="epsilon", ylim=(0, None))
    plotting.legend(figure, lines, 1)
    plotting.save(figure, path)
