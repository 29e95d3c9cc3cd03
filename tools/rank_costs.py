"""What one step costs on the ranks that a launcher started, and its parts.

    python -m tools.rank_costs W2                                    # one process, as many threads as it takes
    OPENBLAS_NUM_THREADS=1 mpiexec -n 2 python -m tools.rank_costs W2 --lot 60000

Milliseconds, the least and the median over steps; the parts are rank 0's, and what it waits for
others counts as sum.
"""

import argparse
import shlex
import sys
import time
from dataclasses import replace
from functools import wraps
from pathlib import Path

from .bench.ours import make_step  # tunes the host before NumPy loads
from .bench import machine
from .bench.workloads import WORKLOADS
import numpy as np

from minidp.backend import Backend
from minidp.files import read_json, write_json
from minidp.mechanism import Sanitizer
from minidp.ranks import current
from minidp.train import SGD


def timed(owner, name, into):
    """Have a method's seconds added to the last of `into`."""
    method = getattr(owner, name)

    @wraps(method)
    def watched(*arguments, **named):
        began = time.perf_counter()
        found = method(*arguments, **named)
        into[-1] += time.perf_counter() - began
        return found

    setattr(owner, name, watched)


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m tools.rank_costs", description=__doc__.splitlines()[0]
    )
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--lot", type=int, help="examples of a lot (default: the workload's)")
    parser.add_argument(
        "--strategy", default="factored", help="of the gradients, or exact (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--json", metavar="FILE", help="add the figures to this list")
    args = parser.parse_args(argv)
    workload, ranks, parts = WORKLOADS[args.workload], current(), {"whole": []}
    step = make_step(
        replace(workload, lot=args.lot or workload.lot), args.strategy, Backend.numpy()
    )
    for owner, name, part in (
        (ranks, "scatter_sum", "sum"),
        (ranks, "gather", "gather"),
        (Sanitizer, "noisy", "noise"),
        (Sanitizer, "release", "release in all"),
        (SGD, "update", "update"),
    ):
        timed(owner, name, parts.setdefault(part, [0]))
    for _ in range(args.steps):
        for seconds in parts.values():
            seconds.append(0.0)
        ranks.barrier()
        began = time.perf_counter()
        step()
        parts["whole"][-1] = time.perf_counter() - began
    found = {
        part: {"least_ms": 1e3 * min(seconds[3:]), "median_ms": 1e3 * float(np.median(seconds[3:]))}
        for part, seconds in parts.items()
    }
    with ranks.one_voice():
        print(
            f"{args.workload}, {ranks.size} ranks: "
            + ", ".join(
                f"{part} {one['least_ms']:.2f} / {one['median_ms']:.2f}"
                for part, one in found.items()
            )
        )
        if args.json and ranks.rank == 0:
            before = read_json(args.json)["runs"] if Path(args.json).exists() else []
            flags = shlex.join(sys.argv[1:] if argv is None else argv)
            write_json(
                args.json,
                {
                    "runs": [
                        *before,
                        {
                            "command": f"mpiexec -n {ranks.size} python -m tools.rank_costs {flags}",
                            "workload": args.workload,
                            "lot": args.lot or workload.lot,
                            "ranks": ranks.size,
                            "steps": args.steps,
                            "seeds": 1,
                            "data": "random numbers",
                            "device": "cpu",
                            "processor": machine.processor(),
                            "products": machine.products(),
                            "versions": machine.versions(),
                            "parts": found,
                        },
                    ]
                },
            )


if __name__ == "__main__":
    sys.exit(main())
