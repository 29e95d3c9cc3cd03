"""What a device does in a time: steps beside other libraries, the experiments; attacks on what it
releases.
"""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr
from datetime import datetime
from pathlib import Path

from minidp import data
from minidp.arithmetic import ARITHMETICS
from minidp.errors import DataUnavailableError, MinidpError
from minidp.files import read_json
from tools import benchmark
from tools.attacks.arithmetic import worst_neighbours
from tools.bench import contest
from tools.bench.workloads import WORKLOADS

from .compare import Skipped

ROOT = Path(__file__).resolve().parents[2]
STRATEGIES, PEERS = ("explicit", "factored"), ("torch", "opacus", "opacus-ghost", "jax", "jax-vmap")
DRAWN = "--dataset", "strokes"


def attacks(bench):
    """How far one example moves the sum of a lot whose roundings line up, on the device."""
    for arithmetic in ARITHMETICS:
        for n in (60,) if bench.small else (60, 600, 2048, 8192):
            reached, allowed = worst_neighbours(arithmetic, n, bench.backend.asarray)
            yield {
                "attack": f"one example more in a lot of {n}",
                "arithmetic": arithmetic,
                "reached": reached,
                "allowed": allowed,
                "ok": reached <= allowed,
            }


def steps(bench):
    """Explicit and factored steps, a copy of the lot's explicit gradients, and the peers that are
    installed, taking turns.
    """
    installed = [] if bench.small else contest.peers_installed(sys.executable)
    peers = [peer for peer in PEERS if contest.needs(peer) <= set(installed)]
    args = benchmark.parser().parse_args(
        [
            "--strategies",
            *STRATEGIES,
            "--floors",
            "copy",
            "--peers",
            *(peers or ["none"]),
            *["--smoke"] * bench.small,
        ]
    )
    settings = contest.Settings(
        "cpu" if bench.small else "gpu",
        rounds=2 if bench.small else 4,
        seconds=0 if bench.small else 0.1,
    )
    for workload in list(WORKLOADS.values())[: 1 if bench.small else None]:
        with redirect_stderr(io.StringIO()) as said:
            one, interrupted = benchmark.run(workload, workload.lot, args, settings, installed)
        if interrupted:
            raise KeyboardInterrupt
        ratio = {(pair["of"], pair["to"]): pair["ratio"] for pair in one["ratios"]} if one else {}
        for row in one["rows"] if one else ():
            copied = ratio.get((row["contender"], "copy"))
            yield {
                "workload": workload.name,
                "lot": one["lot"],
                "contender": row["contender"],
                "step, ms": row["step_ms"],
                **{f"{name} to it": ratio.get((name, row["contender"])) for name in STRATEGIES},
                "share of a copy's bandwidth": (
                    1 / copied if copied and row["contender"] == "explicit" else None
                ),
                "device, MiB": row.get("device_mib"),
                "versions": " ".join(map(" ".join, row["versions"].items())),
            }
        yield from (
            {
                "workload": workload.name,
                "contender": line,
                "ok": any(f" {peer}:" in f" {line}" for peer in PEERS),
            }
            for line in said.getvalue().splitlines()
        )  # who could not run; ours has to


def limits(bench):
    """What the project asks of a device, from the rows of the parts before."""
    done = {name: part["rows"] for name, part in bench.parts.items()}
    found = {(row["workload"], row["contender"]): row for row in done.get("steps", ())}
    if bench.backend.name != "gpu" or not found:
        raise Skipped("not measured: limits are for times on a device")
    asked = [
        (
            f"{name}: a factored step to PyTorch's without privacy",
            found[name, "torch"]["factored to it"],
            1.0,
        )
        for name in ("W1", "W2", "W3")
        if (name, "torch") in found
    ]
    asked.append(
        (
            "W1: an explicit step to a copy, whose bandwidth it reaches 60% of",
            found["W1", "copy"]["explicit to it"],
            1 / 0.6,
        )
    )
    asked += [("main job, seconds", row["seconds"], 15) for row in done.get("main job", ())]
    for what, measured, limit in asked:
        yield {"what": what, "measured": measured, "at most": limit, "ok": measured <= limit}


def experiment(script, *flags, load, small=()):
    """A part; load: finds the data set; small: flags of the small version, which needs no data set
    if there are any.
    """

    def run(bench):
        """An experiment, run as its user does, in a process of its own."""
        try:
            if not (bench.small and small):
                load(download=False, progress=False)
        except DataUnavailableError as error:
            raise Skipped(f"{str(error).partition(';')[0]}: name its folder by --data") from error
        folder = bench.out / f"{script.removesuffix('.py')}-{datetime.now():%Y%m%d-%H%M%S}"
        where = ["--smoke", *small, "--device", "cpu"] if bench.small else ["--device", "gpu"]
        done = subprocess.run(
            [
                sys.executable,
                str(ROOT / "experiments" / script),
                *flags,
                "--quiet",
                "--out",
                str(folder),
                *where,
            ],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        if done.returncode:
            raise MinidpError(
                f"{script} ended with {done.returncode}: "
                f"{(done.stderr.strip().splitlines() or [''])[-1]}"
            )
        result = read_json(folder / "result.json", MinidpError)
        yield {
            "device": result["device"],
            "gradients": result["gradients"],
            "steps": result["steps"],
            "epsilon": result["epsilon"][result["accountant"]]["upper"],
            "test accuracy": result["test_accuracy"],
            "ms a step": 1000 * result["seconds_per_step"],
            "seconds": result["seconds_total"],
            "command": result["command"],
        }

    return run


main_job = experiment(
    "mnist_pca.py", "--noise", "medium", "--target-epsilon", "2", load=data.load_mnist, small=DRAWN
)
cnn = experiment(
    "mnist_cnn.py", "--setting", "1", "--epochs", "5", load=data.load_mnist, small=DRAWN
)
cifar = experiment(
    "cifar_transfer.py", "train", "--views", "0", "--epochs", "4", load=data.load_cifar10
)
