"""Where the time of a private step goes, as a table.

    python -m tools.profile_step                        # the dense workloads of tools.benchmark
    python -m tools.profile_step --workload W2 --strategy explicit --json profile.json

Every row is the time inside one kind of function without that inside the functions of other rows: the median
over the steps. Parts of a lot that run side by side in two threads count twice. "elsewhere" is what the step
itself does between them: it adds up the parts and divides by the expected lot size.
"""
import minidp  # noqa: F401, I001  first, before NumPy loads: importing it may choose the kernels of matrix products

import argparse
import json
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from unittest import mock

from minidp import grads, nn, threads  # noqa: E402
from minidp.files import atomic_write  # noqa: E402
from minidp.mechanism import PoissonSampler, Sanitizer, noise, sanitizer  # noqa: E402
from minidp.nn.conv import ConvGrad  # noqa: E402
from minidp.train import SGD, Trainer, trainer  # noqa: E402
from tools.bench import ours  # noqa: E402
from tools.bench.workloads import WORKLOADS  # noqa: E402

GRADS = (grads.Explicit, grads.Outer, grads.OuterSum, ConvGrad)
LAYERS = (nn.Conv2D, nn.Dense, nn.Flatten, nn.MaxPool2D, nn.ReLU)
STEP = "elsewhere"
ROWS = {  # name of the row: (owner, function) whose time it is
    "draw the lot": [(PoissonSampler, "lots")],
    "gather": [(trainer, "gather")],
    **{f"forward {layer.kind}": [(layer, "forward")] for layer in LAYERS},
    "loss": [(nn.SoftmaxCrossEntropy, "forward"), (nn.SoftmaxCrossEntropy, "backward")],
    **{f"backward {layer.kind}": [(layer, "backward"), (layer, "param_grads")] for layer in LAYERS},
    "form gradients": [(grad, "explicit") for grad in GRADS],
    "norms": [(grad, name) for grad in GRADS for name in ("sq_norms", "sq_norms_upper")],
    "clip weights": [(sanitizer, "clip_weights")],
    "clipped sums": [(grad, name) for grad in GRADS for name in ("weighted_sum", "add_weighted_sum")],
    "add batches": [(Sanitizer, "clipped_sum")],
    "draw noise": [(noise, "standard_normal")],
    "add noise": [(Sanitizer, "release")],
    "update": [(SGD, "step")],
    STEP: [(Trainer, "step")],
}


class Clock:
    """Seconds in each row, without those in the rows called from it; every thread has its own stack."""

    def __init__(self):
        self.seconds, self._local = Counter(), threading.local()

    @contextmanager
    def row(self, name):
        """Count the time of the block to this row."""
        inside = self._local.__dict__.setdefault("inside", [])
        inside.append(0.0)
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self.seconds[name] += spent - inside.pop()
            if inside:
                inside[-1] += spent

    def timed(self, name, function):
        """The function, counted to a row. What a generator function does counts while it is asked for the next."""

        def wrapped(*args, **kwargs):
            with self.row(name):
                result = function(*args, **kwargs)
            return self._each(name, result) if name == "draw the lot" else result

        return wrapped

    def _each(self, name, lots):
        while True:
            with self.row(name):
                lot = next(lots, None)
            if lot is None:
                return
            yield lot


@contextmanager
def watched(clock):
    """Every function of ROWS counts its time while the block runs."""
    with ExitStack() as stack:
        for row, functions in ROWS.items():
            for owner, name in functions:
                stack.enter_context(mock.patch.object(owner, name, clock.timed(row, getattr(owner, name))))
        yield


def profile(workload, strategy, steps):
    """{workload, strategy, threads, steps, step_ms, rows: {name: ms a step}}; step_ms is measured unwatched."""
    step, _ = ours.make(strategy, workload, "cpu")
    for _ in range(3):
        step()
    unwatched, watches = [], []
    for _ in range(steps):
        started = time.perf_counter()
        step()
        unwatched.append(time.perf_counter() - started)
    for _ in range(steps):
        watches.append(Clock())
        with watched(watches[-1]):
            step()
    rows = {name: 1000 * median(clock.seconds[name] for clock in watches) for name in ROWS
            if any(name in clock.seconds for clock in watches)}
    return {"workload": workload.name, "strategy": strategy, "threads": threads.parts_for(workload.lot),
            "steps": steps, "step_ms": 1000 * median(unwatched), "rows": rows}


def table(found):
    """Lines of text."""
    total = sum(found["rows"].values())
    yield (f"{found['workload']} {found['strategy']}, {found['threads']} part(s) side by side: "
           f"{found['step_ms']:.2f} ms a step")
    for name, spent in found["rows"].items():
        yield f"  {name:18} {spent:9.3f} ms {spent / total:6.1%}"
    yield f"  {'in all':18} {total:9.3f} ms"


def main(argv=None):
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", nargs="+", choices=WORKLOADS, default=["W1", "W2", "W3"])
    parser.add_argument("--strategy", choices=ours.STRATEGIES, default="factored")
    parser.add_argument("--steps", type=int, default=30, help="steps that are averaged")
    parser.add_argument("--smoke", action="store_true", help="a few examples, for a trial of the tool")
    parser.add_argument("--json", metavar="FILE", help="write the table there")
    args = parser.parse_args(argv)
    if args.steps < 1:
        parser.error("expected --steps of at least 1")
    if args.json and not Path(args.json).resolve().parent.is_dir():
        parser.error(f"--json {args.json}: no such folder")
    results = []
    for name in args.workload:
        workload = WORKLOADS[name].small() if args.smoke else WORKLOADS[name]
        results.append(profile(workload, args.strategy, args.steps))
        print("\n".join(table(results[-1])), flush=True)
    if args.json:
        with atomic_write(args.json) as file:
            json.dump(results, file, indent=2)
            file.write("\n")
        print(f"wrote {args.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
