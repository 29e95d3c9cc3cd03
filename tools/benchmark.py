"""Time one private step beside its floor and beside other libraries.

    python -m tools.benchmark                                # all workloads, all peers
    python -m tools.benchmark --workloads W1 --peers none    # minidp and the floor alone
    python -m tools.benchmark --rounds 30 --json found.json

A private step draws the lot, computes the gradients, clips, sums, adds noise and updates. The floor
is the bare matrix products of forward and backward (without the first layer's input gradient) and
one draw of the noise. `torch` and `jax` are the steps of PyTorch and JAX without privacy;
`opacus-ghost` is Opacus's private step with ghost clipping. The peers gather lots of a fixed size
that were drawn before, which is cheaper than what a private step has to do.

Each contender is a process of its own, with as many threads as cores and an allocator that keeps
the pages that it frees. A round gives each contender one turn, in random order, one at a time. A
ratio is the median over the rounds of the ratio within the round, because what disturbs the machine
then disturbs both. Ctrl-C keeps the workloads that are done.
"""

import json
import math
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from minidp.commands.flags import Parser, user_errors, whole_number
from minidp.errors import MinidpError
from minidp.util.files import write_json
from minidp.util.validate import count
from tools import machine
from tools.cells import markdown

ROOT = Path(__file__).resolve().parents[1]
STRATEGIES = ("auto", "factored", "explicit")
PEERS = ("torch", "jax", "opacus-ghost")
CLIP_NORM = 4.0
NOISE_MULTIPLIER = 4.0
LEARNING_RATE = 0.05
CLASSES = 10
SETTLE = 0.06  # seconds between turns, in which the threads of the contender before stop spinning
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
SETTINGS = {  # of each contender's environment: pages are kept, and JAX leaves memory to others
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    "PYTHONPATH": str(ROOT),
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


class ContenderError(MinidpError):
    """A contender cannot run, or its process ended."""


@dataclass(frozen=True)
class Workload:
    """A network, its lot and the size of its data set: what every library builds its step from.

    layers       ("dense", inputs, outputs, bias), ("maxpool", window, stride), ("relu",),
                 ("flatten",), or ("conv", inputs, outputs, kernel, stride, padding) with padding
                 "same" or "valid"
    input_shape  of one example; images are (height, width, channels)
    flat         one clip group over all parameters; otherwise one per layer
    """

    name: str
    layers: tuple
    input_shape: tuple
    lot: int
    examples: int
    flat: bool = False

    def small(self):
        """The same network with a few examples, for trials of what uses it."""
        return replace(self, lot=16, examples=64)


def dense_relu(*widths, bias):
    """Dense layers of these widths with ReLU between them."""
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [("dense", inputs, outputs, bias), ("relu",)]
    return tuple(layers[:-1])


# Abadi et al., Section 5.3: convolutions 5x5x64 with ReLU and 2x2 max pooling, dense 384, 384, 10.
CIFAR_NETWORK = (
    *(("conv", 3, 64, 5, 1, "same"), ("relu",), ("maxpool", 2, 2)),
    *(("conv", 64, 64, 5, 1, "same"), ("relu",), ("maxpool", 2, 2)),
    ("flatten",),
    *dense_relu(6 * 6 * 64, 384, 384, 10, bias=True),
)

# The tutorial network for private MNIST: convolutions 8x8x16 and 4x4x32, stride 2, dense 32, 10.
MNIST_CNN = (
    *(("conv", 1, 16, 8, 2, "same"), ("relu",), ("maxpool", 2, 1)),
    *(("conv", 16, 32, 4, 2, "valid"), ("relu",), ("maxpool", 2, 1)),
    ("flatten",),
    *dense_relu(4 * 4 * 32, 32, 10, bias=True),
)

WORKLOADS = {
    "W1": Workload("W1", dense_relu(60, 1000, 10, bias=False), (60,), 600, 60_000),
    "W2": Workload("W2", dense_relu(784, 1000, 10, bias=False), (784,), 600, 60_000),
    "W3": Workload("W3", dense_relu(2304, 384, 384, 10, bias=False), (2304,), 2000, 50_000),
    "W4": Workload("W4", CIFAR_NETWORK, (24, 24, 3), 128, 10_000, flat=True),
    "W5": Workload("W5", MNIST_CNN, (28, 28, 1), 256, 60_000, flat=True),
}


def weights(workload):
    """Yield (the shape of W, outputs last; whether there is a bias) of each layer that has W."""
    for kind, *sizes in workload.layers:
        if kind == "dense":
            inputs, outputs, bias = sizes
            yield (inputs, outputs), bias
        elif kind == "conv":
            inputs, outputs, kernel = sizes[:3]
            yield (kernel, kernel, inputs, outputs), True


def parameters(workload):
    """Count the network's parameters; a contender with another number of them does other work."""
    return sum(math.prod(shape) + bias * shape[-1] for shape, bias in weights(workload))


def data(workload):
    """Draw x (examples, *input_shape) float32 and y (examples,) int64."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((workload.examples, *workload.input_shape), dtype=np.float32)
    return x, rng.integers(0, CLASSES, workload.examples)


def same_padding(size, kernel, stride):
    """(before, after): zeros such that ceil(size / stride) windows fit, the odd one behind."""
    total = max(0, (-(-size // stride) - 1) * stride + kernel - size)
    return total // 2, total - total // 2


def contend(make):
    """Be the process of one contender of a workload.

    make(contender, workload, device) gives (a step without arguments, its network's parameters).
    """
    contender, described, device = sys.argv[1:]
    workload = Workload(**json.loads(described))

    def prepare():
        step, found = make(contender, workload, device)
        if found != parameters(workload):
            sys.exit(f"{found:,} parameters, not {parameters(workload):,}: other work")
        for _ in range(3):
            step()
        return step, {"versions": machine.versions(), "products": machine.products()}

    serve(prepare)


def serve(prepare):
    """Print a line of JSON about the step, then answer each line, a turn's seconds, with the turn's
    milliseconds; prepare() gives (the step, what is said about it).
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not come between the answers
    step, about = prepare()
    print(json.dumps(about), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(turn(step, float(line))), file=answers, flush=True)


def turn(step, seconds):
    """The median milliseconds of a turn's steps, three at least; their first third only wakes
    threads and caches.
    """
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        started = time.perf_counter()
        step()
        times.append(1000 * (time.perf_counter() - started))
    return round(statistics.median(times[len(times) // 3 :]), 4)


class Contender:
    """A process that times one library's step when asked; it prepares the step by itself."""

    def __init__(self, *command):
        """command: a module that calls `serve`, and its arguments."""
        threads = dict.fromkeys(THREADS, str(machine.available_cores()))
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **SETTINGS, **threads},
            cwd=ROOT,
            start_new_session=True,  # Ctrl-C is for this process, which ends the others
        )

    def answer(self):
        """The next line that the process prints. Raises ContenderError if the process ended."""
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        status = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().strip().splitlines() or [f"exit status {status}"]
        raise ContenderError(said[-1].removeprefix("error: "))

    def turn(self, seconds):
        """The milliseconds of one turn."""
        time.sleep(SETTLE)
        try:
            print(seconds, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            pass  # the process ended, and `answer` says why
        return self.answer()

    def close(self):
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def take_turns(commands, rounds, seconds):
    """({contender: what it says of its step}, {contender: its turns}, {contender: why it was left
    out}) of {contender: command}.
    """
    contenders = {name: Contender(*command) for name, command in commands.items()}
    about, turns, left_out = {}, {name: [] for name in commands}, {}
    order = random.Random(0)
    try:
        for number in range(rounds + 1):
            for name in order.sample([*turns], len(turns)):
                try:
                    if number == 0:
                        about[name] = contenders[name].answer()
                    else:
                        turns[name].append(contenders[name].turn(seconds))
                except ContenderError as error:
                    left_out[name] = str(error)
                    del turns[name]
    finally:
        for contender in contenders.values():
            contender.close()
    return about, turns, left_out


def hold(workload, names, rounds, seconds=0.1, device="cpu"):
    """The rows and ratios of the named contenders on one workload, and why others were left out."""
    commands = {}
    for name in names:
        module = "tools.benchmark_peers" if name in PEERS else "tools.benchmark_ours"
        commands[name] = (module, name, json.dumps(asdict(workload)), device)
    about, turns, left_out = take_turns(commands, rounds, seconds)
    return {
        "workload": workload.name,
        "lot": workload.lot,
        "device": device,
        "rounds": rounds,
        "threads": machine.available_cores(),
        "processor": machine.processor(),
        "rows": [
            {"contender": name, "step_ms": statistics.median(each), "turns_ms": each, **about[name]}
            for name, each in turns.items()
        ],
        "ratios": ratios(turns),
        "left_out": left_out,
    }


def ratios(turns):
    """[{"of", "to", "ratio"}]: our steps against the floor and the peers.

    turns: {contender: milliseconds of each round}
    """
    return [
        {"of": ours, "to": other, "ratio": ratio(turns[ours], turns[other])}
        for ours in STRATEGIES
        for other in ("floor", *PEERS)
        if ours in turns and other in turns
    ]


def ratio(turns, others):
    """The median of the ratios within the rounds."""
    return statistics.median(a / b for a, b in zip(turns, others, strict=True))


def table(contest):
    """Lines of Markdown: each contender's time, and the ratios of our steps to it."""
    found = {(pair["of"], pair["to"]): f"{pair['ratio']:.3g}" for pair in contest["ratios"]}
    ours = [row["contender"] for row in contest["rows"] if row["contender"] in STRATEGIES]
    lines = []
    for row in contest["rows"]:
        against = [found.get((name, row["contender"]), "") for name in ours]
        lines.append([row["contender"], f"{row['step_ms']:.2f}", *against])
    return markdown([contest["workload"], "step, ms", *(f"{name} to it" for name in ours)], lines)


def main(argv=None):
    """Run the command line; return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    parser = Parser(prog="python -m tools.benchmark", description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=STRATEGIES)
    parser.add_argument("--peers", nargs="+", choices=(*PEERS, "none"), default=PEERS)
    parser.add_argument("--rounds", type=whole_number, default=15, help="turns of each contender")
    parser.add_argument("--json", metavar="FILE", help="written after every workload")
    args = parser.parse_args(argv)
    names = [*args.strategies, "floor", *(name for name in args.peers if name != "none")]
    contests = []
    with user_errors() as note:
        count(1, rounds=args.rounds)
        note.saved = "workloads that were done are printed, and in the file of --json"
        for name in args.workloads:
            contest = hold(WORKLOADS[name], names, args.rounds)
            command = shlex.join(["python", "-m", "tools.benchmark", *argv])
            contests.append({**contest, "command": command})
            for contender, reason in contest["left_out"].items():
                print(f"left out: {contender}: {reason}", file=sys.stderr)
            print(*table(contest), "", sep="\n", flush=True)
            if args.json:
                write_json(args.json, {"contests": contests})
    return 0 if any(contest["rows"] for contest in contests) else 1


if __name__ == "__main__":
    sys.exit(main())
