"""Train on a GPU and on the CPU with the same seeds, compare the weights, and time both.

    python -m tools.gpu_report --out DIR [--parts NAME ...]

Write DIR/report.json after every part. Exit status 1 if weights differ by more than rounding or the
main job fails, 2 without a usable GPU.

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
import time
from datetime import datetime
from pathlib import Path

import numpy as np

from minidp.backend import Backend, synchronise, to_host
from minidp.commands.flags import Parser, user_errors
from minidp.compiled import kernel
from minidp.errors import MinidpError
from minidp.run.versions import versions
from minidp.train.device_trial import try_twins
from minidp.util.files import read_json, write_json
from tools import machine
from tools.cells import ROOT
from tools.contenders import CLIP_NORM, LEARNING_RATE, WORKLOADS, trainer_of

STEPS, SEED = 100, 1  # of the steps that are compared
ROUNDING = 1e-6  # of the largest weight: what nine of ten steps may differ by
MAIN_JOB = "--noise medium --target-epsilon 2 --quiet".split()


def device(backend, out, small):
    """Versions, the device, and where its noise is drawn."""
    try_twins(backend.xp)
    on_gpu = kernel("add_normals", backend.xp.zeros(1)) is not None
    found = {"processor": machine.processor(), "noise drawn on": "GPU" if on_gpu else "CPU"}
    if backend.name == "gpu":
        found |= machine.gpu("gpu")
        found["CUDA of driver"] = backend.xp.cuda.runtime.driverGetVersion()
    yield {**versions(), **found, "ok": True}


def trained(workload, strategy, backend, steps, starts=None):
    """(weights after each seeded private step, milliseconds of a step).

    starts: weights (steps, coordinates) at which the next steps start, in place of their own
    """
    trainer, examples, streams = trainer_of(workload, strategy, backend, seed=SEED)
    lots = trainer.plan.sampler.lots(workload.examples, steps, streams.sampling, 0)
    weights, seconds = [], []
    params = [*trainer.network.params.values()]
    ends = np.cumsum([array.size for array in params])
    for step, lot in enumerate(lots):
        if step and starts is not None:
            for array, part in zip(params, np.split(starts[step - 1], ends[:-1])):
                array[...] = backend.asarray(part.reshape(array.shape))
            synchronise(backend.xp)
        started = time.perf_counter()
        trainer.step(examples, lot, step, streams)
        synchronise(backend.xp)
        seconds.append(time.perf_counter() - started)
        weights.append(np.concatenate([to_host(array).ravel() for array in params]))
    return np.array(weights), round(1e3 * float(np.median(seconds)), 3)


def training(backend, out, small):
    """The same seeded steps on both devices. One example that jumps may move the weights of a step
    by twice its share.
    """
    for name in ("W1", "W5"):
        workload = WORKLOADS[name].small() if small else WORKLOADS[name]
        for strategy in ("explicit", "factored"):
            steps = 5 if small else STEPS
            here, cpu_ms = trained(workload, strategy, Backend.numpy(), steps)
            there, gpu_ms = trained(workload, strategy, backend, steps, here)
            largest = np.abs(here).max(1)
            apart = np.abs(there - here).max(1) / largest
            usual, worst = float(np.quantile(apart, 0.9)), float(apart.max())
            share = 2 * LEARNING_RATE * CLIP_NORM / workload.lot / float(largest.min())
            row = {"network": name, "gradients": strategy, "steps": steps, "worst step": worst}
            row |= {"nine of ten steps": usual, "cpu_ms": cpu_ms, "gpu_ms": gpu_ms}
            yield {**row, "ok": usual <= ROUNDING and worst <= share}


def main_job(backend, out, small):
    """The paper's main job, run as its user does; the small version has synthetic digits."""
    folder = out / f"mnist_pca-{datetime.now():%Y%m%d-%H%M%S}"
    where = "--smoke --dataset strokes --device cpu" if small else "--device gpu"
    script = str(ROOT / "experiments" / "mnist_pca.py")
    command = [sys.executable, script, *MAIN_JOB, "--out", str(folder), *where.split()]
    paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        yield {"command": command, "error": done.stderr.strip(), "ok": False}
        return
    result = read_json(folder / "result.json", MinidpError)
    named = "device gradients steps test_accuracy seconds_per_step seconds_total command".split()
    spent = result["epsilon"][result["accountant"]]["upper"]
    yield {**{key: result[key] for key in named}, "epsilon": spent, "ok": True}


PARTS = {"device": device, "training": training, "main job": main_job}


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
