"""Compare the GPU with the CPU: every layer and loss, and 200 steps of private training with one seed.

    python -m tools.gpu.check

Exit status 1 if any difference exceeds its tolerance, 2 without a usable GPU. Seeded runs draw their noise,
lots and initial values on the host, so the two devices differ by rounding only.
"""
import sys
import time

import numpy as np

from minidp import nn
from minidp.backend import Backend, synchronise, to_host
from minidp.cli import Parser
from minidp.errors import DeviceUnavailableError
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, per_layer_groups
from minidp.streams import Streams
from minidp.train import SGD, Trainer
from minidp.audit.cases import LAYERS, LOSSES, to_backend

STEPS = 200
TOLERANCES = {"float64": 1e-10, "float32": 1e-4}
TRAINING_TOLERANCE = 1e-2  # float32, after 200 steps; rounding differences grow with every step


def difference(got, expected):
    """Largest difference, relative to the largest number expected."""
    got, expected = to_host(got), to_host(expected)
    scale = np.abs(expected).max(initial=0)
    return float(np.abs(got - expected).max(initial=0) / scale) if scale else float(np.abs(got).max(initial=0))


def of_layer(case, place, dtype):
    """Output, input gradient and per-example gradients of one layer."""
    rng = np.random.default_rng(1)
    layer = to_backend(case.make(rng, dtype), place)
    y, cache = layer.forward(place.asarray(case.input(rng, 16, dtype)))
    dy = place.asarray(rng.uniform(-1, 1, y.shape).astype(dtype))
    grads = layer.param_grads(dy, cache)
    return [y, layer.backward(dy, cache), *(grads[name].materialise() for name in sorted(grads)),
            *(grads[name].sq_norms() for name in sorted(grads))]


def of_loss(case, place, dtype):
    """Losses and their gradient."""
    rng = np.random.default_rng(1)
    z, target = rng.uniform(-3, 3, (16, 5)).astype(dtype), case.target(rng, 16, 5)
    return case.loss(*map(place.asarray, (z, target.astype(dtype) if target.dtype.kind == "f" else target)))


def train(backend, strategy, steps, examples=6000, widths=(60, 200, 10), lot=300):
    """(parameters after `steps` seeded private steps, seconds a step)."""
    streams = Streams(1)
    x = streams.init.standard_normal((examples, widths[0])).astype(np.float32)
    y = x[:, : widths[-1]].argmax(axis=1)
    network = nn.Sequential([nn.Dense(*widths[:2], rng=streams.init), nn.ReLU(),
                             nn.Dense(*widths[1:], rng=streams.init)], widths[:1]).to(backend)
    sanitizer = Sanitizer(per_layer_groups(network.params, 4.0, 1.0), strategy)
    plan = Plan(PoissonSampler(lot / examples), sanitizer, steps, lot)
    trainer = Trainer(network, nn.SoftmaxCrossEntropy(), SGD(0.1), plan)
    x, y = backend.asarray(x), backend.asarray(y)
    started = time.perf_counter()
    trainer.run(x, y, streams, block_steps=steps)
    synchronise(backend.xp)
    return network.params, (time.perf_counter() - started) / steps


def check(backend, steps=STEPS):
    """Print every comparison of `backend` with the CPU; returns the number that exceed their tolerance."""
    rows = []
    for dtype, tolerance in TOLERANCES.items():
        for what, cases, compute in (("layer", LAYERS, of_layer), ("loss", LOSSES, of_loss)):
            for case in cases:
                worst = max(map(difference, compute(case, backend, dtype), compute(case, Backend.numpy(), dtype)))
                rows.append((f"{what} {case.name}, {dtype}", worst, tolerance))
    for strategy in ("auto", "explicit", "factored"):
        here, here_s = train(Backend.numpy(), strategy, steps)
        there, there_s = train(backend, strategy, steps)
        worst = max(difference(there[key], here[key]) for key in here)
        rows.append((f"{steps} steps, {strategy} ({1000 * here_s:.2f} ms cpu, {1000 * there_s:.2f} ms {backend.name})",
                     worst, TRAINING_TOLERANCE))
    for name, found, tolerance in rows:
        print(f"{'ok  ' if found <= tolerance else 'FAIL'} {found:9.2e} (at most {tolerance:.0e})  {name}")
    failed = sum(not found <= tolerance for _, found, tolerance in rows)
    print(f"{len(rows)} comparisons, {failed} failed")
    return failed


def main(argv=None):
    """The command line; returns the exit status."""
    Parser(prog="python -m tools.gpu.check", description=__doc__.splitlines()[0]).parse_args(argv)
    try:
        backend = Backend.cupy()
    except DeviceUnavailableError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 1 if check(backend) else 0


if __name__ == "__main__":
    sys.exit(main())
