"""What a device does in a time: steps beside other libraries, launches and kernels, the experiments; attacks on what it releases."""
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from minidp import data
from minidp.arithmetic import ARITHMETICS
from minidp.backend import synchronise
from minidp.errors import DataUnavailableError, MinidpError
from minidp.files import read_json
from minidp.streams import Streams
from tools import benchmark
from tools.attack_pictures import SIGMAS, share_on_lattice, worst_neighbours
from tools.bench import contest, ours
from tools.bench.workloads import WORKLOADS

from .count import counted

ROOT = Path(__file__).resolve().parents[2]
STRATEGIES, PEERS = ("explicit", "factored"), ("torch", "opacus", "opacus-ghost", "jax", "jax-vmap")
TRACED, DEVICE_WORK = 10, ("kernel", "gpu_memcpy", "gpu_memset")  # steps; categories of CUPTI's events
BANDWIDTH, MAIN_SECONDS = 0.6, 15  # of a copy's, in an explicit step of W1; of the main job


class Skipped(MinidpError):
    """A part that cannot run here, and why."""


def attacks(bench):
    """Two attacks of tools.attack_pictures on sums and releases of arrays on the device."""
    size, lots = (2000, (60, 650)) if bench.small else (20_000, (60, 600, 2048, 8192))
    for arithmetic in ARITHMETICS:
        shares = [share_on_lattice(arithmetic, value, sigma, size, Streams(0), 10 * i + j, bench.backend.asarray)
                  for i, value in enumerate((0.0, size**-0.5)) for j, sigma in enumerate(SIGMAS)]
        apart = max(abs(a - b) for a, b in zip(shares, shares[len(SIGMAS):]))
        errors = 5 * (1 / size) ** 0.5  # five standard errors of a difference of two shares of size / 2 pairs
        yield {"attack": "pairs on the lattice of float32 noise", "arithmetic": arithmetic, "found": apart, "allowed": errors,
               "ok": apart <= errors}
        for n in lots:
            found, charged = worst_neighbours(arithmetic, n, bench.backend.asarray)
            yield {"attack": f"one example more in a lot of {n}", "arithmetic": arithmetic, "found": found,
                   "allowed": charged, "ok": found <= charged}


def steps(bench):
    """Explicit and factored steps, a copy of the lot's explicit gradients, and the peers, taking turns on the device."""
    installed = [] if bench.small else contest.peers_installed(sys.executable)
    peers = [peer for peer in PEERS if contest.needs(peer) <= set(installed)]
    bench.note("not installed, or left out of the small version: " + (", ".join(sorted(set(PEERS) - set(peers))) or "none"))
    args = benchmark.parser().parse_args(["--strategies", *STRATEGIES, "--floors", "copy", "--peers", *(peers or ["none"]),
                                          *(["--smoke"] if bench.small else [])])
    device = "gpu" if bench.backend.name == "gpu" else "cpu"
    settings = contest.Settings(device, rounds=2 if bench.small else 4, seconds=0 if bench.small else 0.1)
    for workload in list(WORKLOADS.values())[: 1 if bench.small else None]:
        one, interrupted = benchmark.run(workload, workload.lot, args, settings, installed)
        if interrupted:
            raise KeyboardInterrupt
        ratio = {(pair["of"], pair["to"]): pair["ratio"] for pair in one["ratios"]}
        for row in one["rows"]:
            to = {f"{name} to it": ratio.get((name, row["contender"])) for name in STRATEGIES}
            yield {"workload": one["workload"], "lot": one["lot"], "contender": row["contender"], "step, ms": row["step_ms"], **to,
                   "on the device, MiB": row.get("device_mib"), "versions": " ".join(map(" ".join, row["versions"].items()))}


def limits(bench):
    """What the project asks of a device, from the rows of the parts before."""
    if bench.backend.name != "gpu":
        raise Skipped("not measured: times on a device are asked for, and this is none")
    found = {(row["workload"], row["contender"]): row for row in bench.rows("steps")}
    if ("W1", "copy") not in found:
        raise Skipped("not measured: the part steps has no rows of W1")
    for name in ("W1", "W2", "W3"):
        if (name, "torch") in found:
            ratio = found[name, "torch"]["factored to it"]
            yield {"what": f"{name}: a factored step to PyTorch's without privacy", "measured": ratio, "limit": "at most 1", "ok": ratio <= 1}
    share = 1 / found["W1", "copy"]["explicit to it"]
    yield {"what": "W1: bandwidth of an explicit step, as a share of a copy's", "measured": share,
           "limit": f"at least {BANDWIDTH}", "ok": share >= BANDWIDTH}
    for row in bench.rows("main job"):
        yield {"what": "main job, seconds", "measured": row["seconds"], "limit": f"below {MAIN_SECONDS}",
               "ok": row["seconds"] < MAIN_SECONDS}


def launches(bench):
    """Launches and copies of a step: predicted by the guarded arrays, and measured by CUPTI."""
    found = bench.kernels = {}
    for name, workload in WORKLOADS.items():
        for strategy in STRATEGIES:
            predicted = counted(workload.small() if bench.small else workload, strategy)
            measured = {}
            if bench.backend.name == "gpu":
                step = ours.make_step(workload, strategy, bench.backend)
                found[name, strategy] = events = traced(step, bench.backend.xp)
                measured = Counter(event["cat"] for event in events)
            yield {"workload": name, "gradients": strategy, "step, predicted, ms": 1000 * predicted["seconds"]["step"],
                   "launches, predicted": predicted["launches"], "measured": measured["kernel"] / TRACED if measured else "not measured",
                   "copies and fills, measured": sum(measured[kind] for kind in DEVICE_WORK[1:]) / TRACED if measured else "not measured",
                   "device busy, ms": sum(event["dur"] for event in events) / TRACED / 1000 if measured else "not measured"}


def traced(step, xp):
    """What the device did in TRACED steps, by CUPTI through PyTorch's profiler, which sees CuPy's kernels too.

    CuPy has no hook for launches of its own. Raises Skipped without PyTorch for the device.
    """
    try:
        import torch
        from torch.profiler import ProfilerActivity, profile
    except ImportError as error:
        raise Skipped("not measured: launches are read from CUPTI through PyTorch's profiler, and PyTorch is not installed") from error
    if not torch.cuda.is_available():
        raise Skipped("not measured: launches are read from CUPTI through PyTorch's profiler, and PyTorch finds no GPU")
    for _ in range(3):  # kernels are compiled at their first use
        step()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(TRACED):
            step()
        synchronise(xp)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        seen.export_chrome_trace(str(path))
        return device_events(json.loads(path.read_text()))


def device_events(trace):
    """Kernels, copies and fills of a trace in Chrome's format."""
    return [event for event in trace["traceEvents"] if event.get("cat") in DEVICE_WORK]


def profile_of(bench):
    """Where the device's time goes: the kernels of each workload by their names."""
    if not getattr(bench, "kernels", None):
        raise Skipped("not measured: no step was traced")
    for (name, strategy), events in bench.kernels.items():
        spent, times = Counter(), Counter()
        for event in events:
            spent[event["name"]] += event["dur"]
            times[event["name"]] += 1
        for kernel, microseconds in spent.most_common(8):
            yield {"workload": name, "gradients": strategy, "kernel": kernel[:120], "in a step": times[kernel] / TRACED,
                   "microseconds in a step": microseconds / TRACED, "share": microseconds / sum(spent.values())}


def experiment(script, *flags, load, small=()):
    """A part that runs an experiment as its user does, in a process of its own, and reads its result.

    load: finds its data set. small: flags of the small version, which needs none if there are any.
    """
    def run(bench):
        folder = bench.out / script.removesuffix(".py")
        try:
            if not (bench.small and small):
                load(download=False, progress=False)
        except DataUnavailableError as error:
            raise Skipped(f"{str(error).partition(';')[0]}: name its folder by --data") from error
        where = ["--smoke", *small, "--device", "cpu"] if bench.small else ["--device", bench.device]
        command = [sys.executable, str(ROOT / "experiments" / script), *flags, "--quiet", "--out", str(folder), *where]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        if done.returncode:
            raise MinidpError(f"{script} ended with {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}")
        result = read_json(folder / "result.json", MinidpError)
        yield {"experiment": result["experiment"], "data": result["dataset"], "device": result["device"],
               "gradients": result["gradients"], "steps": result["steps"],
               "epsilon": result["epsilon"][result["accountant"]]["upper"], "test accuracy": result["test_accuracy"],
               "ms a step": 1000 * result["seconds_per_step"], "seconds": result["seconds_total"], "command": result["command"]}

    return run


DRAWN = "--dataset", "strokes"
main_job = experiment("mnist_pca.py", "--noise", "medium", "--target-epsilon", "2", load=data.load_mnist, small=DRAWN)
cnn = experiment("mnist_cnn.py", "--setting", "1", "--epochs", "5", load=data.load_mnist, small=DRAWN)
cifar = experiment("cifar_transfer.py", "train", "--views", "0", "--epochs", "4", load=data.load_cifar10)
