"""Count what a private step asks of a GPU, on arrays that stand for CuPy's, and predict its time.

    python -m tools.gpu.count [--json FILE]

Nothing here is measured. Launches, copies and bytes are counted while NumPy computes the step
(tests/support/guarded.py); the time is a model of them. All but factored steps of dense networks
are counted at two small lots, and extended to the whole: their launches have to be equal, and all
else is linear in the lot. Kernels run as C++: a compiler is needed.
"""

import json
import sys
from dataclasses import replace
from itertools import product

import numpy as np

from minidp.cli import Parser, user_errors
from minidp.files import atomic_write
from tools.bench.ours import STRATEGIES, trainer_of
from tools.bench.workloads import WORKLOADS

try:
    from tests.support import launches, shim
    from tests.support.guarded import guarded_backend
except ImportError as error:
    raise SystemExit(
        f"error: {error}: tests/ has the arrays that stand for CuPy's; run this in a whole checkout"
    ) from error

MODEL = {  # of a card like the H100; what each costs when nothing overlaps
    "seconds_per_launch": 4e-6,
    "bytes_per_second": 3e12,
    "operations_per_second": {
        "float32": 6e13,
        "float64": 6e13,
    },  # nine tenths of the data sheet's, as with the bytes
    "seconds_per_wait": 1e-5,
    "seconds_per_copy": 1e-5,
    "copied_bytes_per_second": 2.5e10,
}
SMALL_LOTS = 16, 32


def counted(workload, strategy):
    """{name: number} of one step of a workload (a Workload or its name): what was counted, and
    "seconds" by the model.

    strategy: one of tools.bench.ours.STRATEGIES.
    """
    if not shim.COMPILER:
        raise SystemExit(
            "error: no C++ compiler (g++ or clang++), which runs the CUDA kernels of a step on the "
            "host"
        )
    workload = WORKLOADS.get(workload, workload)
    if strategy == "factored" and not workload.convolutional or workload.lot <= max(SMALL_LOTS):
        found = _of_lot(workload, strategy, workload.lot)
    else:
        (few, many), (less, more) = (
            SMALL_LOTS,
            (_of_lot(workload, strategy, lot) for lot in SMALL_LOTS),
        )
        if less["names"] != more["names"]:
            raise SystemExit(
                f"error: {workload.name} {strategy}: lots of {few} and {many} launch different "
                "kernels"
            )
        share = (workload.lot - few) / (many - few)
        found = {
            name: value if name == "names" else round(value + share * (more[name] - value))
            for name, value in less.items()
        }
    return {
        "workload": workload.name,
        "gradients": strategy,
        "lot": workload.lot,
        **found,
        "seconds": predicted(found),
    }


def _of_lot(workload, strategy, lot):
    """The second step's counts, of a lot of this size where the usual one is expected: the first
    one also makes what stays.
    """
    trainer, examples, streams = trainer_of(
        replace(workload, examples=4 * workload.lot), strategy, guarded_backend()
    )
    for step in range(2):
        with launches.counting() as found:
            trainer.step(examples, np.arange(lot), step, streams)
    return {
        "launches": found.launches.total(),
        "copies_to_device": len(found.to_device),
        "copies_to_host": len(found.to_host),
        "bytes_to_device": sum(found.to_device),
        "bytes_to_host": sum(found.to_host),
        "waits": found.waits,
        "bytes_read": found.read,
        "bytes_written": found.written,
        "memory_asked": found.memory_asked,
        **{
            f"operations_{dtype}": found.operations[dtype]
            for dtype in MODEL["operations_per_second"]
        },
        "names": dict(found.launches.most_common()),
    }


def predicted(found):
    """{part: seconds} by the model, and their sum: an upper bound of it, since copies and launches
    overlap with kernels.
    """
    copies = found["copies_to_device"] + found["copies_to_host"]
    parts = {
        "launches": found["launches"] * MODEL["seconds_per_launch"],
        "bytes": (found["bytes_read"] + found["bytes_written"]) / MODEL["bytes_per_second"],
        "products": sum(
            found[f"operations_{dtype}"] / rate
            for dtype, rate in MODEL["operations_per_second"].items()
        ),
        "host": found["waits"] * MODEL["seconds_per_wait"]
        + copies * MODEL["seconds_per_copy"]
        + (found["bytes_to_device"] + found["bytes_to_host"]) / MODEL["copied_bytes_per_second"],
    }
    return {**parts, "step": sum(parts.values())}


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.gpu.count", description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the counts there")
    args, steps = parser.parse_args(argv), []
    with user_errors() as note:
        note.saved = "nothing was written"
        for name, strategy in product(WORKLOADS, STRATEGIES):
            steps.append(step := counted(name, strategy))
            print(
                f"{name} {strategy:9} {step['launches']:5} launches, copies "
                f"{step['copies_to_device']} to the device and {step['copies_to_host']} back, "
                f"{step['waits']} waits, {(step['bytes_read'] + step['bytes_written']) / 1e6:.4g} "
                f"MB, predicted, not measured: {1e3 * step['seconds']['step']:.3g} ms",
                flush=True,
            )
    if args.json:
        with atomic_write(args.json) as file:
            file.write(
                json.dumps(
                    {
                        "command": f"python -m tools.gpu.count --json {args.json}",
                        "measured": False,
                        "model": MODEL,
                        "steps": steps,
                    },
                    indent=1,
                )
                + "\n"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
