"""The benchmark's tables for the README, from its JSON."""
import json
from pathlib import Path

from .contest import KEPT
from .report import LOTS, markdown

AGAINST = (("floor", "floor"), ("PyTorch, not private", "torch"), ("JAX, not private", "jax"),
           ("Opacus", "opacus"), ("Opacus, ghost clipping", "opacus-ghost"), ("JAX, vmap", "jax-vmap"))
RESULTS = Path(__file__).resolve().parents[2] / "experiments" / "results"
STRATEGIES = ("auto", "factored", "explicit")
WORDS = {"floor": "the floor", "torch": "PyTorch, not private", "jax": "JAX, not private", "opacus": "Opacus",
         "opacus-ghost": "Opacus, ghost clipping", "opacus-ew": "Opacus, expanded weights",
         "opacus-functorch": "Opacus, functorch", "jax-vmap": "JAX, private by vmap(grad)"}


def ours(path=RESULTS / "benchmark.json"):
    """Each strategy on each workload: its time, its memory, and its ratio to the floor and the peers."""
    return markdown(("workload", "gradients", "step, ms", *(f"to {words}" for words, _ in AGAINST), "peak, MiB"),
                    [_ours(one, row) for one in _usual(path) for row in one["rows"] if row["contender"] in STRATEGIES])


def _ours(one, row):
    ratios = {pair["to"]: pair["ratio"] for pair in one["ratios"] if pair["of"] == row["contender"]}

    def against(name):
        values = [f"{ratios[key]:.2g}" if ratios[key] < 1 else f"{ratios[key]:.2f}"
                  for key in (name, name + KEPT) if key in ratios]
        return " / ".join(values) or "-"

    return (_label(one), row["contender"], _ms(row), *(against(name) for _, name in AGAINST), _mib(row))


def peers(path=RESULTS / "benchmark.json"):
    """The peers' own times and memory: a row each, a column a workload."""
    contests = _usual(path)
    found = [{row["contender"]: f"{_ms(row)} ms, {_mib(row)} MiB" for row in one["rows"]} for one in contests]
    names = [name + kept for name in WORDS for kept in ("", KEPT) if any(name + kept in one for one in found)]
    return markdown(("", *map(_label, contests)),
                    [(_words(name), *(one.get(name, "-") for one in found)) for name in names])


def _words(name):
    plain = name.removesuffix(KEPT)
    return WORDS.get(plain, plain) + (", pages kept" if name.endswith(KEPT) else "")


def conditions(path=RESULTS / "benchmark.json"):
    """One line: versions, threads and kernels that the figures were measured with."""
    contests = _usual(path)
    rows = [row for one in contests for row in one["rows"]]
    versions = {name: number for row in rows for name, number in row["versions"].items()}
    kernels = {f"{row['products']['library']} ({row['products']['core']})" for row in rows
               if (row.get("products") or {}).get("core")}
    threads = sorted({one["threads"] for one in contests})
    yield (f"Threads: {', '.join(map(str, threads))}; "
           + ", ".join(f"{name} {number}" for name, number in versions.items()) + "; " + ", ".join(sorted(kernels))
           + f"; {min(one['rounds'] for one in contests)} rounds or more.")


def growth(path=RESULTS / "benchmark_lots.json"):
    """Time and memory against the size of the lot."""
    small, large = LOTS
    rows = []
    for one in json.loads(path.read_text(encoding="utf-8"))["growth"]:
        memory = "-" if one["memory"] is None else f"{one['memory']:.2f}"
        rows.append((one["workload"], _words(one["contender"]), f"{one['slope']:.3f}", f"{one['per_example']:.2f}", memory))
    return markdown(("workload", "contender", f"slope, lots of {small:,} to {large:,}",
                     "time an example, the larger to the smaller", "peak memory, the largest to a few batches"), rows)


def _usual(path):
    data = json.loads(path.read_text(encoding="utf-8"))
    return [one for one in data["contests"] if one["usual_lot"]]


def _label(one):
    return one["workload"] + (" on the GPU" if one["device"] == "gpu" else "")


def _ms(row):
    return f"{row['step_ms']:.3g}" if row["step_ms"] < 100 else f"{row['step_ms']:.0f}"


def _mib(row):
    return f"{row['peak_mib']:.0f}"
