"""Train on a GPU and on the CPU with the same seeds, compare the weights, and time both.

    python -m tools.gpu_report --out DIR [--parts NAME ...]

Write DIR/report.json after every part. Exit status 1 if weights differ by more than rounding or the
main job fails, 2 without a usable GPU.

Seeded runs draw noise, lots and initial values from one key on any device.
"""

import os
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
from minidp.train.noise_trial import try_noise
from minidp.util.files import read_json, write_json
from tools import machine
from tools.cells import ROOT
from tools.contenders import WORKLOADS, trainer_of

STEPS = 200
TOLERANCE = 1e-2  # of float32 weights after STEPS steps; rounding differences grow with every step
MAIN_JOB = "--noise medium --target-epsilon 2 --quiet".split()


def device(backend, out, small):
    """Versions, the device, and where its noise is drawn."""
    try_noise(backend.xp)
    on_gpu = kernel("add_normals", backend.xp.zeros(1)) is not None
    found = {"processor": machine.processor(), "noise drawn on": "GPU" if on_gpu else "CPU"}
    if backend.name == "gpu":
        cuda = backend.xp.cuda
        about = cuda.runtime.getDeviceProperties(cuda.Device().id)
        found["GPU"] = f"{about['name'].decode()}, {about['major']}.{about['minor']}"
        found["CUDA of driver"] = cuda.runtime.driverGetVersion()
    yield {**versions(), **found, "ok": True}


def trained(workload, strategy, backend, steps):
    """(weights after seeded private steps, milliseconds of a step)."""
    trainer, examples, streams = trainer_of(workload, strategy, backend, seed=1)
    lots = trainer.plan.sampler.lots(workload.examples, steps, streams.sampling, 0)
    seconds = []
    for step, lot in enumerate(lots):
        started = time.perf_counter()
        trainer.step(examples, lot, step, streams)
        synchronise(backend.xp)
        seconds.append(time.perf_counter() - started)
    weights = [to_host(array).ravel() for array in trainer.network.params.values()]
    return np.concatenate(weights), round(1e3 * float(np.median(seconds)), 3)


def training(backend, out, small):
    """The same seeded steps on both devices."""
    for name in ("W1", "W5"):
        workload = WORKLOADS[name].small() if small else WORKLOADS[name]
        for strategy in ("explicit", "factored"):
            steps = 5 if small else STEPS
            here, cpu_ms = trained(workload, strategy, Backend.numpy(), steps)
            there, gpu_ms = trained(workload, strategy, backend, steps)
            worst = float(np.abs(there - here).max() / np.abs(here).max())
            row = {"network": name, "gradients": strategy, "steps": steps, "difference": worst}
            yield {**row, "cpu_ms": cpu_ms, "gpu_ms": gpu_ms, "ok": worst <= TOLERANCE}


def main_job(backend, out, small):
    """The paper's main job, run as its user does; the small version has synthetic digits."""
    folder = out / f"mnist_pca-{datetime.now():%Y%m%d-%H%M%S}"
    where = "--smoke --dataset strokes --device cpu" if small else "--device gpu"
    script = str(ROOT / "experiments" / "mnist_pca.py")
    command = [sys.executable, script, *MAIN_JOB, "--out", str(folder), *where.split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        yield {"command": command, "error": done.stderr.strip(), "ok": False}
        return
    result = read_json(folder / "result.json", MinidpError)
    named = ("gradients", "steps", "test_accuracy", "seconds_per_step", "seconds_total", "command")
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
    with user_errors():
        small, backend = backend is not None, backend or Backend.pick("gpu")
        args.out.mkdir(parents=True, exist_ok=True)
        parts = {}
        for name in args.parts:
            parts[name] = list(PARTS[name](backend, args.out, small))
            write_json(args.out / "report.json", {"on": backend.name, "parts": parts})
            for row in parts[name]:
                print(name, *(f"{key}={value}" for key, value in row.items()), sep="  ")
    return int(not all(row["ok"] for rows in parts.values() for row in rows))


if __name__ == "__main__":
    sys.exit(main())
