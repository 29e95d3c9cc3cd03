"""The benchmark's tables for tools/README.md, from its JSON; a picture of what grows with the
lot.
"""

from minidp import plotting
from tools.tables import Row, load, markdown, table

from .contest import KEPT
from .ours import STRATEGIES
from .report import LOTS

AGAINST = (
    ("floor", "floor"),
    ("PyTorch, its lot in place", "torch-in-place"),
    ("PyTorch, not private", "torch"),
    ("JAX, not private", "jax"),
    ("Opacus", "opacus"),
    ("Opacus, ghost clipping", "opacus-ghost"),
    ("JAX, vmap", "jax-vmap"),
)
WORDS = {
    "floor": "the floor",
    "torch": "PyTorch, not private",
    "jax": "JAX, not private",
    "torch-in-place": "PyTorch, not private, its lot in place",
    "opacus": "Opacus",
    "opacus-ghost": "Opacus, ghost clipping",
    "opacus-ew": "Opacus, expanded weights",
    "opacus-functorch": "Opacus, functorch",
    "jax-vmap": "JAX, private by vmap(grad)",
}
OURS = [("workload", "{label}"), ("gradients", "{contender}"), ("step, ms", "{step_ms:ms}")]
PEER = [("", "{step_ms:ms} ms, {peak_mib:.0f} MiB")]
GROWTH = [
    ("workload", "{workload}"),
    ("contender", "{words}"),
    (f"slope, lots of {LOTS[0]:,} to {LOTS[1]:,}", "{slope:.3f}"),
    ("time per example, the larger to the smaller", "{per_example:.2f}"),
    ("peak memory, the largest to a few batches", "{memory:.2f?}"),
]


def ours(path="benchmark.json"):
    """Each strategy on each workload: its time, its memory, and its ratio to the floor and the
    peers.
    """
    rows = [
        {**row, "label": label(one), "to": against(one, row["contender"])}
        for one in usual(path)
        for row in one["rows"]
        if row["contender"] in STRATEGIES
    ]
    ratios = [
        (f"to {words}", f"{{to.{name}:?}}")
        for words, name in AGAINST
        if any(name in row["to"] for row in rows)
    ]
    return table(
        [*OURS, *ratios, ("peak, MiB", "{peak_mib:.0f}")], [Row([row], path) for row in rows]
    )


def against(one, contender):
    """{peer: text of the ratio to it with an allocator that keeps its pages, and after a slash as
    it comes}.
    """
    found = {}
    for pair in one["ratios"]:
        if pair["of"] == contender:
            text = f"{pair['ratio']:.2g}" if pair["ratio"] < 1 else f"{pair['ratio']:.2f}"
            found.setdefault(pair["to"].removesuffix(KEPT), []).insert(0, text)
    return {name: " / ".join(texts) for name, texts in found.items()}


def peers(path="benchmark.json"):
    """The peers' own times and memory: a row each, a column a workload."""
    contests = usual(path)
    found = [
        {row["contender"]: table(PEER, [Row([row], path)])[-1].strip("| ") for row in one["rows"]}
        for one in contests
    ]
    names = [
        name + kept
        for name in WORDS
        for kept in ("", KEPT)
        if any(name + kept in one for one in found)
    ]
    return markdown(
        ["", *map(label, contests)],
        [[words(name), *(one.get(name, "-") for one in found)] for name in names],
    )


def words(name):
    """A contender in words."""
    plain = name.removesuffix(KEPT)
    return WORDS.get(plain, plain) + (", pages kept" if name.endswith(KEPT) else "")


def conditions(path="benchmark.json"):
    """One line: versions, threads and kernels that the figures were measured with."""
    contests = usual(path)
    rows = [row for one in contests for row in one["rows"]]
    versions = {name: number for row in rows for name, number in row["versions"].items()}
    kernels = {
        f"{row['products']['library']} ({row['products']['core']})"
        for row in rows
        if (row.get("products") or {}).get("core")
    }
    threads = sorted({one["threads"] for one in contests})
    return [
        f"Threads: {', '.join(map(str, threads))}; "
        + ", ".join(f"{name} {number}" for name, number in versions.items())
        + "; "
        + ", ".join(sorted(kernels))
        + f"; {min(one['rounds'] for one in contests)} rounds or more."
    ]


def growth(path="benchmark_lots.json"):
    """Time and memory against the size of the lot."""
    return table(
        GROWTH,
        [Row([{**one, "words": words(one["contender"])}], path) for one in load(path)["growth"]],
    )


def usual(path):
    """The contests at each workload's own lot."""
    return [one for one in load(path)["contests"] if one["usual_lot"]]


def label(one):
    """A contest's workload, and its device if that is a GPU."""
    return one["workload"] + (" on the GPU" if one["device"] == "gpu" else "")


def lot_sizes(contests, path):
    """Draw both for every workload, device and contender that was measured at more than one lot, as
    PNG.
    """
    series = {}
    for contest in contests:
        for row in contest["rows"]:
            name = f"{label(contest)}: {words(row['contender'])}"
            series.setdefault(name, []).append((contest["lot"], row["step_ms"], row["peak_mib"]))
    figure, axes = plotting.new_figure(
        1, 2, title="A private step against the size of its lot", panel=(5.2, 4.6)
    )
    handles = []
    for i, (name, points) in enumerate(
        (name, points) for name, points in series.items() if len(points) > 1
    ):
        lots, *measured = zip(*sorted(points))
        for axis, values in zip(axes, measured):
            drawn = axis.loglog(lots, values, label=name, **plotting.line(i))
        handles += drawn
    axes[0].set(xlabel="examples in a lot", ylabel="time of a step, ms")
    axes[1].set(xlabel="examples in a lot", ylabel="peak memory that the steps add, MiB")
    if handles:
        plotting.legend(figure, handles)
    plotting.save(figure, path)
