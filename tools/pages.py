"""What the tables of each page hold."""

from tools import paper
from tools.cells import entries, load, table
from tools.figure_pages import of
from tools.page_rows import (
    accountants,
    compared,
    devices,
    scores,
    steps,
)

STEPS = """
workload: {workload}
gradients: {contender}
step, ms: {step_ms:ms}
step / floor: {to.floor:.2f?}
step / PyTorch's, not private: {to.torch:.2f?}
"""
DEVICES = """
workload: {workload}
two CPU cores, ms: {cpu:ms}
one GPU (H200), ms: {gpu:ms}
GPU / CPU: {ratio:.2f}
"""
TO_JAX = "step / JAX's, not private: {to.jax:.2f?}\n"
TO_OPACUS = "step / Opacus's, ghost clipping: {to.opacus-ghost:.2f?}\n"
BENCHMARK = STEPS + TO_JAX + TO_OPACUS


def front_page():
    """The table of README.md."""
    return {
        "results": table(
            """
what: {what}
minidp: {ours}
others: {others}
""",
            compared(),
        )
    }


def reference():
    """The table of minidp/README.md."""
    return {
        "own data": table(
            """
data: {about}
rows: {rows:,}
accuracy, or R2 (standard deviation): {score}
epsilon: {epsilon:upper}
delta: {delta:g}
""",
            scores(),
        ),
    }


def of_persons():
    """The table of minidp/data/README.md."""
    return {
        "persons": table(
            """
trained on: {key}
AUROC, five splits by person: {mean:.4f}
standard error: {standard_error:.4f}
""",
            entries("persons.json", "auroc"),
        ),
    }


def accounting():
    """The table of minidp/privacy/README.md."""
    return {
        "which sampler": table(
            """
`--sampler`: `{sampler}`
lots: {lots}
neighbours: {neighbours}
epsilon at most: {loss_distribution.upper:upper}
""",
            entries("samplers.json", "runs"),
        ),
        "beside": table(
            """
epsilon: {range}
settings: {settings}
of theirs, inside our interval: {inside}
above it: {above}
width of our interval, at most: {width:.2%}
our upper end / theirs - 1: {ours}
our rdp / theirs - 1, at most: {rdp:+.2%}
""",
            accountants(),
        ),
    }


def developers():
    """The tables of tools/README.md."""
    files = "benchmark.json", "benchmark_avx2.json", "benchmark_gpu.json"
    every, avx2, gpu = (sum(map(steps, load(file)["contests"]), []) for file in files)
    return {
        "benchmark": table(BENCHMARK, every),
        "avx2": table(BENCHMARK, avx2),
        "gpu": table(STEPS + TO_OPACUS, gpu),
        "devices": table(DEVICES, devices()),
    }


def your_table():
    """The table of minidp/fitting/README.md."""
    return {
        "beside": table(
            """
model, data: {key}
accuracy: {accuracy.mean:.2%}
AUROC: {auroc.mean:.4f}
log loss: {log_loss.mean:.3f}
seconds a fit: {seconds.mean:.1f}
""",
            [
                row
                for peer in ("minidp", "dp_ebm", "diffprivlib")
                for row in entries(f"tables_{peer}.json", "figures")
            ],
        ),
    }


PAGES = {
    "README.md": front_page,
    "minidp/fitting/README.md": your_table,
    "minidp/README.md": reference,
    "minidp/PAPER.md": paper.tables,
    "minidp/data/README.md": of_persons,
    "minidp/privacy/README.md": accounting,
    "tools/README.md": developers,
    "experiments/README.md": of("ledgers", "today", "claims", "trained"),
    "experiments/FIGURES.md": of(
        "commands", "figure 2", "figure 3", "figure 4", "figure 5", "figure 5c tuned"
    ),
    "experiments/CIFAR.md": of("figure 6", "scratch"),
    "experiments/BEYOND.md": of("cnn", "best", "adult", "over epsilons", "regressions", "names"),
    "experiments/VERDICTS.md": of(
        "figure 3 verdicts", "sentences", "figure 6 verdicts", "ledgers verdicts"
    ),
    "experiments/SETTINGS.md": of("earlier programs"),
}
