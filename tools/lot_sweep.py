#!/usr/bin/env python3
"""Lots of many batches: time and memory of a private step of the CIFAR network, end to end, against the lot.

    python tools/lot_sweep.py --json experiments/results/conv_lots.json

Every lot size has a process of its own. Its peak memory is that of the whole process, data and libraries
included. Times are the smallest of the repeats: of the clock, and of all cores together, which counts no waiting
for other jobs; where a machine is shared, the second one tells whether time is linear in the lot.
"""
import minidp  # noqa: F401, I001  first, before NumPy loads: importing it may choose the kernels of matrix products

import argparse
import json
import multiprocessing
import os
import platform
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from minidp.backend import Backend  # noqa: E402
from minidp.files import atomic_write  # noqa: E402
from minidp.train import Trainer  # noqa: E402
from tools.bench import machine, ours  # noqa: E402
from tools.bench.workloads import WORKLOADS  # noqa: E402

WORKLOAD, LOTS, BATCH, REPEATS = "W4", (500, 1000, 2000, 4000), 500, 3


def measure(lot, batch, repeats):
    """{lot, seconds, cpu_seconds, process_mib} of steps with a Poisson lot of so many examples on average."""
    with mock.patch.object(ours, "Trainer", partial(Trainer, batch_size=batch)):
        step = ours.make_step(WORKLOADS[WORKLOAD].of_lot(lot), "auto", Backend.numpy())
    times = []
    for _ in range(repeats):
        clock, cpu = time.perf_counter(), time.process_time()
        step()
        times.append((time.perf_counter() - clock, time.process_time() - cpu))
    seconds, cpu_seconds = map(min, zip(*times))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"lot": lot, "batch": batch, "seconds": seconds, "cpu_seconds": cpu_seconds, "process_mib": peak / 2**20}


def main(argv=None):
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lots", nargs="+", type=int, default=LOTS, help="average lot sizes")
    parser.add_argument("--batch", type=int, default=BATCH, help="examples computed at once")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="steps a lot size")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    args = parser.parse_args(argv)
    if min(*args.lots, args.batch, args.repeats) < 1:
        parser.error("expected --lots, --batch and --repeats of at least 1")
    if args.json and not Path(args.json).resolve().parent.is_dir():
        parser.error(f"--json {args.json}: no such folder")
    rows = []
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as pool:
        for row in pool.map(partial(measure, batch=args.batch, repeats=args.repeats), args.lots):
            rows.append(row)
            print(f"lot {row['lot']:6,}: {row['seconds']:7.2f} s, {row['cpu_seconds']:7.2f} s of all cores "
                  f"({1000 * row['cpu_seconds'] / row['lot']:.2f} ms an example), {row['process_mib']:6.0f} MiB",
                  flush=True)
    if args.json:
        flags = [f"--lots {' '.join(map(str, args.lots))}", f"--batch {args.batch}", f"--repeats {args.repeats}"]
        with atomic_write(args.json) as file:
            json.dump({"command": f"python tools/lot_sweep.py {' '.join(flags)}", "device": "cpu",
                       "network": f"{WORKLOAD} of tools/benchmark.py, flat clipping, Poisson lots",
                       "machine": {"processor": platform.machine(), "cores": os.cpu_count(),
                                   "vector_instructions": machine.vector_flags(), "products": machine.products(),
                                   "shared": "with other jobs, so compare cpu_seconds"},
                       "versions": machine.versions(), "rows": rows}, file, indent=2)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
