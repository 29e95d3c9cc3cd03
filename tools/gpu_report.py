"""Check and time minidp on a GPU: is it right, how fast is it, and how does the main job do on it?

    python -m tools.gpu_report --out DIR [--data DIR] [--parts NAME ...]    # at most 8 minutes

Write DIR/report.json after every part. A part is cut when its seconds are used up. Ctrl-C leaves
what was done. Exit status 1 if a part failed, 2 without a usable GPU.

Seeded runs draw noise, lots and initial values from one key on any device, so that GPU and CPU
differ by rounding only, and in exact arithmetic not at all.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np

from minidp import nn
from minidp.audit import checks
from minidp.backend import Backend, to_host
from minidp.commands.flags import Parser, user_errors
from minidp.errors import MinidpError
from minidp.exact.arithmetic import ARITHMETICS, EXACT
from minidp.run.result import versions
from minidp.train import selfcheck, twins
from minidp.util.files import read_json, write_json
from tools import machine
from tools.attacks.arithmetic import worst_neighbours
from tools.benchmark import PEERS, ROOT, STRATEGIES, WORKLOADS, hold
from tools.benchmark_ours import network_of, trainer_of

SECONDS = 480  # of the whole report
STEPS = 200
# of float32 weights after STEPS steps; rounding differences grow with every step
TRAINING_TOLERANCE = 1e-2
SIZES = (1, 7, 511, 512, 513, 70_001)
HERE = Backend.numpy()
MAIN_JOB = ("--noise", "medium", "--target-epsilon", "2", "--quiet")


class OutOfTime(BaseException):
    """A part's seconds are used up; no library's `except Exception` may catch it."""


@dataclass
class Bench:
    """The inputs of all parts, and the report so far.

    small   few and small: a trial of this tool on another backend than a GPU
    parts   {name: what became of it, and its rows}
    """

    backend: Backend
    out: Path
    small: bool = False
    parts: dict = field(default_factory=dict)


def device(bench):
    """Versions and device."""
    found = {**versions(), "processor": machine.processor(), "backend": bench.backend.name}
    if bench.backend.name == "gpu":
        cuda = bench.backend.xp.cuda
        about = cuda.runtime.getDeviceProperties(cuda.Device().id)
        found |= {
            "device": about["name"].decode(),
            "compute capability": f"{about['major']}.{about['minor']}",
            "free and total memory, bytes": cuda.runtime.memGetInfo(),
            "CUDA of driver": cuda.runtime.driverGetVersion(),
            "CUDA at run time": cuda.runtime.runtimeGetVersion(),
        }
    for what, value in found.items():
        yield {"what": what, "found": str(value)}


def difference(got, expected):
    """The largest difference over the largest number expected (1 for 0); infinite for NaN."""
    got, expected = to_host(got), to_host(expected)
    largest = np.abs(expected).max(initial=0) or 1
    found = float(np.abs(got - expected).max(initial=0) / largest)
    return found if found == found else float("inf")


def layers(bench):
    """The registered checks of every layer and loss, on the device."""
    cards = "nn.activation" if bench.small else "nn."
    for (card, label), found in checks.load().items():
        for check in found if card.startswith(cards) else ():
            outcome = checks.run(check, bench.backend)
            row = {"what": f"{card} [{label}]", "check": check.name, "beside": check.method}
            yield {**row, "found": outcome.problem or outcome.error, "ok": outcome.passed}


def train(workload, strategy, backend, steps):
    """{parameter: its values after private steps with a seed}."""
    trainer, examples, streams = trainer_of(workload, strategy, backend, seed=1)
    lots = trainer.plan.sampler.lots(workload.examples, steps, streams.sampling, 0)
    for step, lot in enumerate(lots):
        trainer.step(examples, lot, step, streams)
    return {key: to_host(array) for key, array in trainer.network.params.items()}


def training(bench):
    """Weights after private training beside the CPU's; in exact arithmetic the same bits."""
    steps = 5 if bench.small else STEPS
    for name in ("W1", "W5"):
        workload = WORKLOADS[name].small() if bench.small else WORKLOADS[name]
        for strategy in STRATEGIES:
            here = train(workload, strategy, HERE, steps)
            there = train(workload, strategy, bench.backend, steps)
            worst = max(difference(there[key], here[key]) for key in here)
            same = all(there[key].tobytes() == here[key].tobytes() for key in here)
            ok = same if strategy == EXACT else worst <= TRAINING_TOLERANCE
            row = {"network": name, "gradients": strategy, "steps": steps}
            yield {**row, "difference": worst, "same bits": same, "ok": ok}


def noise(bench):
    """Noise of both arithmetics on the same raw sums: the same bits as the CPU's."""
    for size in SIZES:
        raw = np.trunc(np.random.default_rng(size).standard_normal(size) * 2.0**32) * 2.0**-32
        there, here = (twins._released(place.asarray(raw)) for place in (bench.backend, HERE))
        differing = [int((to_host(got) != want).sum()) for got, want in zip(there, here)]
        yield {"numbers": size, "that differ": differing, "ok": not any(differing)}


def independent(bench):
    """The self-check of exact arithmetic: an example's results are its own bits in every batch."""
    for name in ("W1", "W5") if bench.small else WORKLOADS:
        network = network_of(WORKLOADS[name], np.random.default_rng(0)).to(bench.backend).use(EXACT)
        selfcheck.check_bits(network, nn.SoftmaxCrossEntropy(), np.arange(10))
        yield {"network": name, "found": "the same bits in every batch"}


def attacks(bench):
    """How far one example moves the sum of a lot whose roundings line up, over the clip norm."""
    for arithmetic in ARITHMETICS:
        for n in (60,) if bench.small else (60, 600, 2048, 8192):
            reached, charged = worst_neighbours(arithmetic, n, bench.backend.asarray)
            row = {"arithmetic": arithmetic, "lot": n, "reached": reached, "charged": charged}
            yield {**row, "ok": reached <= charged}


def steps(bench):
    """Explicit and factored steps beside the peers; those that are not installed are left out."""
    ours, workloads = ["explicit", "factored"], WORKLOADS.values()
    peers, how = PEERS, (4, 0.1, "gpu")
    if bench.small:
        workloads, peers, how = [WORKLOADS["W1"].small()], (), (2, 0.0, "cpu")
    for workload in workloads:
        contest = hold(workload, [*ours, *peers], *how)
        ratio = {(pair["of"], pair["to"]): pair["ratio"] for pair in contest["ratios"]}
        for row in contest["rows"]:
            name = row["contender"]
            found = {"workload": workload.name, "contender": name, "step, ms": row["step_ms"]}
            yield found | {f"{own} to it": ratio.get((own, name)) for own in ours}
        for name, why in contest["left_out"].items():
            said = f"{name} left out: {why}"
            yield {"workload": workload.name, "contender": said, "ok": name in PEERS}


def main_job(bench):
    """The paper's main job, run as its user does; the small version has synthetic digits."""
    where = "--device gpu".split()
    if bench.small:
        where = "--smoke --dataset strokes --device cpu".split()
    folder = bench.out / f"mnist_pca-{datetime.now():%Y%m%d-%H%M%S}"
    script = str(ROOT / "experiments" / "mnist_pca.py")
    command = [sys.executable, script, *MAIN_JOB, "--out", str(folder), *where]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [""]
        raise MinidpError(f"mnist_pca.py ended with {done.returncode}: {said[-1]}")
    result = read_json(folder / "result.json", MinidpError)
    spent = result["epsilon"][result["accountant"]]["upper"]
    named = ("gradients", "steps", "test_accuracy", "seconds_per_step", "seconds_total", "command")
    yield {**{key: result[key] for key in named}, "epsilon": spent}


# {name: (seconds, function)}; it yields rows, and `ok` False in one of them fails the part
PARTS = {
    "device": (15, device),
    "layers and losses": (65, layers),
    "training": (50, training),
    "noise": (15, noise),
    "independence": (20, independent),
    "attacks": (15, attacks),
    "steps": (220, steps),
    "main job": (60, main_job),
}


@contextmanager
def at_most(seconds):
    """Raise OutOfTime in the block once it has run so long."""

    def cut(number, frame):
        raise OutOfTime(f"cut after its {seconds} seconds")

    before = signal.signal(signal.SIGALRM, cut)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(name, bench):
    """Put the part into the report, whatever becomes of it. An interrupt is passed on."""
    seconds, rows = PARTS[name]
    seconds *= 4 if bench.small else 1  # the small version may run beside other tests
    made = bench.parts[name] = {"state": "failed", "message": "", "rows": []}
    started = time.perf_counter()
    try:
        with at_most(seconds):
            for row in rows(bench):
                made["rows"].append(row)
        wrong = sum(row.get("ok") is False for row in made["rows"])
        if wrong:
            made["message"] = f"{wrong} of {len(made['rows'])} rows are not as they have to be"
        else:
            made["state"] = "passed"
    except KeyboardInterrupt:
        made["state"] = "interrupted"
        raise
    except (Exception, SystemExit, OutOfTime) as error:  # noqa: BLE001  all belong into the report
        said = str(error).strip().splitlines() or [""]
        made["message"] = f"{type(error).__name__}: {said[0]}"
    finally:
        made["seconds"] = round(time.perf_counter() - started, 2)
        if bench.backend.name == "gpu":  # what comes next may be another process
            bench.backend.xp.get_default_memory_pool().free_all_blocks()


def main(argv=None, backend=None):
    """Run the command line; return the exit status. backend: replaces the GPU in tests."""
    parser = Parser(prog="python -m tools.gpu_report", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the report and the experiments' runs"
    )
    parser.add_argument(
        "--data",
        type=Path,
        help="folder with MNIST and CIFAR-10 (default: where minidp finds them)",
    )
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME", help="these alone"
    )
    args = parser.parse_args(argv)
    with user_errors() as told:
        told.saved = f"what was done is in {args.out}"
        bench = Bench(backend or Backend.pick("gpu"), args.out, small=backend is not None)
        twins.try_twins(bench.backend.xp)
        if args.data:
            os.environ["MINIDP_DATA"] = str(args.data.resolve())
        args.out.mkdir(parents=True, exist_ok=True)
        report = args.out / "report.json"
        for name in args.parts:
            try:
                run(name, bench)
            finally:
                write_json(
                    report, {"on": bench.backend.name, "limit_s": SECONDS, "parts": bench.parts}
                )
            print(
                name + ": {state} in {seconds} s {message}".format(**bench.parts[name]), flush=True
            )
    print(f"wrote {report}")
    return int(any(part["state"] == "failed" for part in bench.parts.values()))


if __name__ == "__main__":
    sys.exit(main())
