#!/usr/bin/env python3
"""Time and peak memory of one private step, beside the floor that no implementation can go below.

    python tools/benchmark.py                      # all workloads, their strategies, a table
    python tools/benchmark.py --workloads W1 --json benchmark.json

A step draws the lot, computes the gradients, clips, adds noise and updates. The floor, measured in the same
process and interleaved with the steps, is the bare matrix products of forward and backward (without the first
layer's input gradient) and one draw of the noise. Times are medians; compare the ratios, since machines are
noisy. Each measurement runs in a fresh process; its peak memory is the growth of the peak RSS during the steps
over the RSS with data and parameters loaded.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Workload:
    """A network, the lot and the data set's size; `layers(nn, rng)` builds it for images of `input_shape`.

    flat  one clip group over all parameters, else one a layer
    """

    layers: object
    input_shape: tuple
    classes: int
    lot: int
    examples: int
    strategies: tuple = ("factored", "explicit")
    flat: bool = False


def dense_relu(*widths, **options):
    """A function (nn, rng) that makes dense layers of these widths with ReLU between them."""

    def layers(nn, rng):
        made = []
        for inputs, outputs in zip(widths, widths[1:]):
            made += [nn.Dense(inputs, outputs, rng=rng, **options), nn.ReLU()]
        return made[:-1]

    return layers


def cifar_network(nn, rng):
    """Two convolutions 5x5x64 with ReLU and 2x2 max pooling, dense 384, 384, 10 (Abadi et al., Section 5.3)."""
    made = []
    for channels in (3, 64):
        made += [nn.Conv2D(channels, 64, 5, rng=rng), nn.ReLU(), nn.MaxPool2D(2)]
    return [*made, nn.Flatten(), *dense_relu(6 * 6 * 64, 384, 384, 10)(nn, rng)]


def mnist_cnn(nn, rng):
    """The tutorial network for private MNIST: convolutions 8x8x16 and 4x4x32, stride 2, dense 32, 10."""
    return [nn.Conv2D(1, 16, 8, rng=rng, stride=2), nn.ReLU(), nn.MaxPool2D(2, 1),
            nn.Conv2D(16, 32, 4, rng=rng, stride=2, padding="valid"), nn.ReLU(), nn.MaxPool2D(2, 1),
            nn.Flatten(), *dense_relu(4 * 4 * 32, 32, 10)(nn, rng)]


CONVOLUTIONAL = ("auto", "factored", "explicit")
WORKLOADS = {
    "W1": Workload(dense_relu(60, 1000, 10, bias=False), (60,), 10, 600, 60_000),
    "W2": Workload(dense_relu(784, 1000, 10, bias=False), (784,), 10, 600, 60_000),
    "W3": Workload(dense_relu(2304, 384, 384, 10, bias=False), (2304,), 10, 2000, 50_000),
    "W4": Workload(cifar_network, (24, 24, 3), 10, 128, 10_000, CONVOLUTIONAL, flat=True),
    "W5": Workload(mnist_cnn, (28, 28, 1), 10, 256, 60_000, CONVOLUTIONAL, flat=True),
}
STRATEGIES = ("auto", "factored", "explicit")


def make_step(workload, strategy, backend):
    """A function that does one whole private step, and one that does the floor."""
    from minidp import nn
    from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, per_layer_groups
    from minidp.streams import Streams
    from minidp.train import SGD, Trainer

    streams = Streams(0)
    x = streams.init.standard_normal((workload.examples, *workload.input_shape), dtype=np.float32)
    x, y = backend.asarray(x), backend.asarray(streams.init.integers(0, workload.classes, workload.examples))
    network = nn.Sequential(workload.layers(nn, streams.init), workload.input_shape).to(backend)
    groups = flat_group if workload.flat else per_layer_groups
    sanitizer = Sanitizer(groups(network.params(), 4.0, 4.0), strategy)
    plan = Plan(PoissonSampler(workload.lot / workload.examples), sanitizer, 10**9, workload.lot)
    trainer = Trainer(network, nn.SoftmaxCrossEntropy(), SGD(0.05), plan)
    sizes = iter(range(10**9))

    def step():
        (lot,) = plan.sampler.lots(workload.examples, 1, streams.sampling)
        trainer.step(x, y, lot, next(sizes), streams)
        _wait(backend)

    return step, make_floor(network, workload.lot, backend, streams)


def products(network, lot):
    """(rows, inputs, outputs) of each layer's matrix product on a lot; of a convolution, of its patches."""
    shape, found = network.input_shape, []
    for layer in network.layers:
        shape = layer.output_shape(shape)
        if "W" in layer.params:
            *inputs, outputs = layer.params["W"].shape
            found.append((lot * prod(shape[:-1]), prod(inputs), outputs))
    return found


def make_floor(network, lot, backend, streams):
    """The bare products of forward and backward on one lot, and one draw of the noise."""
    from minidp.backend import standard_normal

    def draw(*shape):
        return backend.asarray(streams.init.standard_normal(shape, dtype=np.float32))

    layers = [(draw(rows, i), draw(rows, o), draw(i, o)) for rows, i, o in products(network, lot)]
    shapes = [array.shape for array in network.params().values()]
    noise = streams.noise_for(backend.xp)

    def floor():
        for k, (a, d, W) in enumerate(layers):
            a @ W
            a.T @ d
            if k:
                d @ W.T
        for shape in shapes:
            standard_normal(noise, shape, np.float32, backend.xp)
        _wait(backend)

    return floor


def _wait(backend):
    from minidp.backend import synchronise

    synchronise(backend.xp)


def measure(name, strategy, device, repeats):
    """One measurement in this process: medians of interleaved repeats, and the memory of the steps."""
    from minidp.backend import Backend

    backend = Backend.pick(device)
    step, floor = make_step(WORKLOADS[name], strategy, backend)
    before = _rss()
    _reset_peak()
    for _ in range(3):
        step()
    peak = _peak_rss() - before
    floor()
    times = {"step": [], "floor": []}
    for _ in range(repeats):
        for which, function in (("step", step), ("floor", floor)):
            started = time.perf_counter()
            function()
            times[which].append(time.perf_counter() - started)
    step_s, floor_s = (statistics.median(times[which]) for which in ("step", "floor"))
    return {"workload": name, "strategy": strategy, "device": backend.name, "lot": WORKLOADS[name].lot,
            "step_ms": 1000 * step_s, "floor_ms": 1000 * floor_s, "ratio": step_s / floor_s,
            "peak_mib": peak / 2**20, "repeats": repeats}


def _rss():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmRSS in /proc/self/status")


def _reset_peak():
    """Let the peak start from here; where the system has no such switch, the peak so far counts too."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def _peak_rss():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_fresh_process(name, strategy, device, repeats):
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--one", name, strategy, "--device", device, "--repeats", str(repeats)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        print(done.stderr.strip(), file=sys.stderr)
        raise SystemExit(done.returncode)
    return json.loads(done.stdout)


def main(argv=None):
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, help="default: those that suit the workload")
    parser.add_argument("--device", choices=("auto", "cpu", "gpu"), default="auto")
    parser.add_argument("--repeats", type=int, default=30, help="steps timed (a third of it for explicit)")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.repeats < 1:
        parser.error("expected --repeats of at least 1")
    from minidp.errors import MinidpError

    if args.one:
        try:
            print(json.dumps(measure(*args.one, args.device, args.repeats)))
        except MinidpError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        return 0
    from minidp.files import atomic_write

    if args.json and not Path(args.json).resolve().parent.is_dir():
        parser.error(f"--json {args.json}: no such folder")

    rows = []
    print(f"{'':4} {'strategy':9} {'device':6} {'step ms':>9} {'floor ms':>9} {'ratio':>6} {'peak MiB':>9}")
    for name in args.workloads:
        for strategy in args.strategies or WORKLOADS[name].strategies:
            repeats = -(-args.repeats // 3) if strategy == "explicit" else args.repeats
            row = in_fresh_process(name, strategy, args.device, repeats)
            rows.append(row)
            print(f"{name:4} {strategy:9} {row['device']:6} {row['step_ms']:9.2f} {row['floor_ms']:9.2f} "
                  f"{row['ratio']:6.2f} {row['peak_mib']:9.1f}", flush=True)
    if args.json:
        with atomic_write(args.json) as file:
            json.dump({"command": ["tools/benchmark.py", *(sys.argv[1:] if argv is None else argv)],
                       "cores": os.cpu_count(), "rows": rows}, file, indent=2)
            file.write("\n")
        print(f"wrote {args.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
