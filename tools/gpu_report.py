"""Train on a GPU and on the CPU with the same seeds, compare the weights, and time what a step is
made of, beside other libraries in the same call.

    python -m tools.gpu_report --out DIR [--parts NAME ...]

Write DIR/report.json after every part; all take about seven minutes. Exit status 1 if weights
differ by more than rounding or the main job fails, 2 without a usable GPU.

Seeded runs draw noise, lots and initial values from one key on any device. Each step on the GPU
starts at the CPU's weights: where rounding decides which of two nearly equal numbers is the
maximum, or the sign of one near 0, an example's gradient jumps, and weights that go on from there
part for good, between two CPUs as well.
"""

from minidp import host

host.tune()  # before NumPy loads

import os
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np

from minidp import nn
from minidp.arrays import add_products
from minidp.backend import Backend, synchronise, to_host
from minidp.commands.flags import Parser, user_errors
from minidp.compiled import kernel, prepare
from minidp.errors import MinidpError
from minidp.fast import device as kernels
from minidp.fast.flat import flattened
from minidp.mechanism.rounding import products as rule_of
from minidp.run.versions import versions
from minidp.util.files import read_json, write_json
from tools import benchmark, machine
from tools.contenders import CLIP_NORM, LEARNING_RATE, WORKLOADS, Workload, dense_relu, trainer_of
from tools.tables import ROOT

STEPS, SEED = 20, 1  # of the steps that are compared
CALLS = 200  # of what is timed by itself
CONTENDERS = ("auto", "floor", "torch", "opacus-ghost")
LARGE = Workload(
    "11 million parameters", partial(dense_relu, 3072, 3072, 512, 10), (3072,), 600, 6_000
)
ROUNDING = 1e-6  # of the largest weight: what nine of ten steps may differ by
CACHES = ("NUMBA_CACHE_DIR", "CUPY_CACHE_DIR")  # folders of compiled code
MAIN_JOB = "--noise medium --target-epsilon 2 --quiet".split()


def device(backend, out, small):
    """Versions, the device, and where its noise is drawn."""
    prepare(backend.xp)
    on_gpu = kernel("add_normals", backend.xp.zeros(1)) is not None
    found = {"processor": machine.processor(), "noise drawn on": "GPU" if on_gpu else "CPU"}
    if backend.name == "gpu":
        found |= machine.gpu("gpu")
        found["CUDA of driver"] = backend.xp.cuda.runtime.driverGetVersion()
    yield {**versions(), **found, "ok": True}


def microseconds(backend, call, calls=CALLS):
    """Of one call among many, until the device has done them all."""
    call()
    synchronise(backend.xp)
    started = time.perf_counter()
    for _ in range(calls):
        call()
    synchronise(backend.xp)
    return round(1e6 * (time.perf_counter() - started) / calls, 2)


def starts(backend, out, small):
    """What a start of each kind takes: the host's share, as long as the device is faster."""
    xp, calls = backend.xp, 3 if small else CALLS
    x, y = (xp.zeros(256, "float32") for _ in range(2))
    a = xp.zeros((16, 16), "float32")
    lot = np.arange(600)
    timed = {
        "a loop of 1,000 in Python": lambda: sum(range(1000)),
        "kernel": lambda: kernels.relu(x, y),
        "ufunc": lambda: xp.add(x, 1, out=y),
        "matmul": lambda: xp.matmul(a, a),
        "copy of a lot": lambda: xp.asarray(lot),
    }
    for name, call in timed.items():
        yield {"what": name, "us": microseconds(backend, call, calls), "ok": True}
    trainer, examples, streams = trainer_of(WORKLOADS["W1"].small(), "auto", backend, seed=SEED)
    lots = trainer.plan.sampler.lots(60_000, 2 * calls + 2, streams.sampling, 0)
    us = microseconds(backend, lambda: next(lots), calls)
    yield {"what": "draw of a lot", "us": us, "ok": True}


def products(backend, out, small):
    """Sums of outer products: blocks of float32 products added in float64, beside one product in
    float64.
    """
    xp, calls = backend.xp, 2 if small else 50
    for name, examples, inputs, outputs in (("W1", 600, 60, 1000), ("W3", 2000, 2304, 384)):
        if small:
            examples, inputs = 12, 5
        rng = np.random.default_rng(0)
        shapes = (examples, inputs), (examples, outputs)
        a, d = (xp.asarray(rng.standard_normal(shape, dtype=np.float32)) for shape in shapes)
        rows, found = rule_of(examples, "auto").rows, {}
        for how, each in (("float32 in blocks", rows), ("float64", 0)):
            call = partial(add_products, None, a, d, each)
            found[how] = microseconds(backend, call, calls)
        yield {"network": name, "us": found, "rows of a block": rows, "ok": True}


def trained(workload, backend, steps, begin=None):
    """(weights after each seeded private step, milliseconds of a step).

    begin: weights (steps, coordinates) at which the next steps start, in place of their own
    """
    trainer, examples, streams = trainer_of(workload, "auto", backend, seed=SEED)
    lots = trainer.plan.sampler.lots(workload.examples, steps, streams.sampling, 0)
    weights, seconds = [], []
    with flattened(trainer):
        params = [*trainer.network.params.values()]
        ends = np.cumsum([array.size for array in params])
        for step, lot in enumerate(lots):
            if step and begin is not None:
                for array, part in zip(params, np.split(begin[step - 1], ends[:-1])):
                    array[...] = backend.asarray(part.reshape(array.shape))
                synchronise(backend.xp)
            started = time.perf_counter()
            trainer.step(examples, lot, step, streams)
            synchronise(backend.xp)
            seconds.append(time.perf_counter() - started)
            weights.append(np.concatenate([to_host(array).ravel() for array in params]))
    return np.array(weights), round(1e3 * float(np.median(seconds)), 3)


def memory(backend):
    """Bytes that the device's pool of memory holds, or None where there is none."""
    pool = backend.xp.get_default_memory_pool() if backend.name == "gpu" else None
    return pool and pool.total_bytes()


def training(backend, out, small):
    """The same seeded steps on both devices. One example that jumps may move the weights of a step
    by twice its share.
    """
    for workload in (*WORKLOADS.values(), LARGE):
        if small and workload is LARGE:
            continue
        steps = 3 if small or workload is LARGE else STEPS
        workload = workload.small() if small else workload
        here, cpu_ms = trained(workload, Backend.numpy(), steps)
        there, gpu_ms = trained(workload, backend, steps, here)
        largest = np.abs(here).max(1)
        apart = np.abs(there - here).max(1) / largest
        usual, worst = float(np.quantile(apart, 0.9)), float(apart.max())
        share = 2 * LEARNING_RATE * CLIP_NORM / workload.lot / float(largest.min())
        row = {"network": workload.name, "gradients": "auto", "steps": steps, "worst step": worst}
        row |= {"nine of ten steps": usual, "cpu_ms": cpu_ms, "gpu_ms": gpu_ms}
        row["bytes on the device"] = memory(backend)
        yield {**row, "ok": usual <= ROUNDING and worst <= share}


def where(backend, out, small):
    """Milliseconds of each part of a step, with the device idle between them."""
    for workload in WORKLOADS.values():
        workload = workload.small() if small else workload
        trainer, examples, streams = trainer_of(workload, "auto", backend, seed=SEED)
        lot, found = np.arange(workload.lot), {}
        with flattened(trainer):
            for step in range(2 if small else 10):
                times = list(_parts_of(trainer, examples, lot, step, streams, backend))
                for name, seconds in times if step else ():
                    found.setdefault(name, []).append(1e3 * seconds)
        medians = {name: round(float(np.median(each)), 3) for name, each in found.items()}
        yield {"network": workload.name, "ms": medians, "ok": True}


def _parts_of(trainer, examples, lot, step, streams, backend):
    """(part of a step, its seconds), one after the other."""
    sanitizer, rule = trainer.plan.at(step, len(lot))
    kept, flat = {}, trainer.flat

    def gather():
        kept["batch"] = next(examples.batches(lot, len(lot)))

    def forward():
        kept["z"], kept["caches"] = trainer.network.forward(kept["batch"].x)

    def loss():
        kept["dz"] = nn.SoftmaxCrossEntropy()(kept["z"], kept["batch"].y)[1]

    def backward():
        kept["grads"] = trainer.network.param_grads(kept["dz"], kept["caches"])

    def clip():
        kept["sum"] = flat.sums.begin() if flat else {}
        sanitizer.add_clipped(kept["grads"], kept["sum"], None, rule)

    def release():
        noise, scale = streams.noise(step), 1 / trainer.plan.expected_lot_size
        if flat:
            flat.descend(sanitizer, kept["sum"], noise, scale, step)
        else:
            released = sanitizer.release(kept["sum"], noise, (), scale, "float32")
            trainer.optimizer.update(trainer.network.params, released, step)

    for part in (gather, forward, loss, backward, clip, release):
        started = time.perf_counter()
        part()
        synchronise(backend.xp)
        yield part.__name__, time.perf_counter() - started


def beside_others(backend, out, small):
    """A step beside its floor, PyTorch's without privacy and Opacus's, each in a process."""
    names, place = CONTENDERS, "gpu"
    if small:
        names, place = CONTENDERS[:2], "cpu"
    for workload in [WORKLOADS["W1"].small()] if small else WORKLOADS.values():
        contest = benchmark.hold(workload, names, 1 if small else 5, place)
        yield {**contest, "ok": True}


def main_job(backend, out, small):
    """The paper's main job, run as its user does, with empty caches of compiled code and again with
    full ones; the small version has synthetic digits.
    """
    with tempfile.TemporaryDirectory() as caches:
        for name in ("cold", "warm"):
            yield {"caches": name, **_main_job(out, small, name, caches)}


def _main_job(out, small, name, caches):
    folder = out / f"mnist_pca-{datetime.now():%Y%m%d-%H%M%S}-{name}"
    where = "--smoke --dataset strokes --device cpu" if small else "--device gpu"
    script = str(ROOT / "experiments" / "mnist_pca.py")
    command = [sys.executable, script, *MAIN_JOB, "--out", str(folder), *where.split()]
    paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if not small:
        environment |= dict.fromkeys(CACHES, caches)
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    wall = time.perf_counter() - started
    if done.returncode:
        return {"command": command, "error": done.stderr.strip(), "ok": False}
    result = read_json(folder / "result.json", MinidpError)
    named = "device gradients steps test_accuracy seconds_per_step seconds_total command".split()
    spent = result["epsilon"][result["accountant"]]["upper"]
    steps, run = result["steps"] * result["seconds_per_step"], result["seconds_total"]
    seconds = {"process": wall, "outside the run": wall - run, "steps": steps}
    seconds["rest of the run"] = run - steps
    found = {key: result[key] for key in named} | {"seconds": seconds}
    return {**found, "epsilon": spent, "ok": True}


PARTS = {
    "device": device,
    "starts": starts,
    "products": products,
    "training": training,
    "where": where,
    "benchmark": beside_others,
    "main job": main_job,
}


def main(argv=None, backend=None):
    """Run the command line; return the exit status. backend: replaces the GPU in tests."""
    parser = Parser(prog="python -m tools.gpu_report", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder for the report and the main job's run")
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME", help="only these")
    args = parser.parse_args(argv)
    command = shlex.join(["python", "-m", "tools.gpu_report", *(argv or sys.argv[1:])])
    about = {"command": command, "seed": SEED}
    with user_errors():
        small, backend = backend is not None, backend or Backend.pick("gpu")
        args.out.mkdir(parents=True, exist_ok=True)
        parts = {}
        for name in args.parts:
            parts[name] = list(PARTS[name](backend, args.out, small))
            write_json(args.out / "report.json", {"on": backend.name, **about, "parts": parts})
            for row in parts[name]:
                print(name, *(f"{key}={value}" for key, value in row.items()), sep="  ")
    return int(not all(row["ok"] for rows in parts.values() for row in rows))


if __name__ == "__main__":
    sys.exit(main())
