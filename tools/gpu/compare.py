"""The GPU beside the CPU: every layer and loss, training with one seed, noise, and exact arithmetic bit for bit.

Seeded runs draw their noise, lots and initial values from one key on any device, so the two differ by rounding only, and
in exact arithmetic not at all. Each function yields rows of the report; `ok` says whether one is as it has to be.
"""
import time

import numpy as np

from minidp import nn
from minidp.arithmetic import ARITHMETICS, EXACT
from minidp.audit.cases import LAYERS, LOSSES, to_backend
from minidp.backend import Backend, synchronise, to_host
from minidp.errors import IndependenceError
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group, per_layer_groups
from minidp.streams import Streams
from minidp.train import SGD, Trainer, independence
from tools.bench.ours import network_of
from tools.bench.workloads import WORKLOADS

HERE = Backend.numpy()
TOLERANCES = {"float64": 1e-10, "float32": 1e-4}
TRAINING_TOLERANCE = 1e-2  # float32, after 200 steps; rounding differences grow with every step
SIZES, SIGMA = (1, 7, 511, 512, 513, 70_001), 4.0


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


def layers(bench):
    """Every layer and loss in both dtypes."""
    for dtype, tolerance in TOLERANCES.items():
        for what, cases, compute in (("layer", LAYERS, of_layer), ("loss", LOSSES, of_loss)):
            for case in cases:
                worst = max(map(difference, compute(case, bench.backend, dtype), compute(case, HERE, dtype)))
                yield {"what": f"{what} {case.name}", "dtype": dtype, "difference": worst, "at most": tolerance,
                       "ok": worst <= tolerance}


def train(backend, strategy, steps, arithmetic="ordinary", examples=6000, widths=(60, 200, 10), lot=300):
    """(parameters after `steps` seeded private steps, seconds a step)."""
    streams = Streams(1)
    x = streams.init.standard_normal((examples, widths[0])).astype(np.float32)
    y = x[:, : widths[-1]].argmax(axis=1)
    network = nn.Sequential([nn.Dense(*widths[:2], rng=streams.init), nn.ReLU(),
                             nn.Dense(*widths[1:], rng=streams.init)], widths[:1]).to(backend)
    sanitizer = Sanitizer(per_layer_groups(network.params, 4.0, 1.0), strategy, arithmetic)
    plan = Plan(PoissonSampler(lot / examples), sanitizer, steps, lot)
    trainer = Trainer(network, nn.SoftmaxCrossEntropy(), SGD(0.1), plan)
    x, y = backend.asarray(x), backend.asarray(y)
    started = time.perf_counter()
    trainer.run(x, y, streams, block_steps=steps)
    synchronise(backend.xp)
    return {key: to_host(array) for key, array in network.params.items()}, (time.perf_counter() - started) / steps


def training(bench):
    """The weights after private training by each strategy; in exact arithmetic they are the same bits."""
    steps = 5 if bench.small else 200
    for arithmetic in ARITHMETICS:
        for strategy in ("auto", "explicit", "factored"):
            (here, here_s), (there, there_s) = (train(place, strategy, steps, arithmetic) for place in (HERE, bench.backend))
            worst = max(difference(there[key], here[key]) for key in here)
            same = all(there[key].tobytes() == here[key].tobytes() for key in here)
            most = 0.0 if arithmetic == EXACT else TRAINING_TOLERANCE
            yield {"arithmetic": arithmetic, "gradients": strategy, "steps": steps, "difference": worst, "at most": most,
                   "same bits": same, "cpu, ms a step": 1000 * here_s, f"{bench.backend.name}, ms a step": 1000 * there_s,
                   "ok": same if arithmetic == EXACT else worst <= most}


def noise(bench):
    """Releases of the same raw sums, bit for bit, in odd sizes, both dtypes and both arithmetics."""
    for arithmetic in ARITHMETICS:
        for dtype in TOLERANCES:
            differing = 0
            for size in SIZES:
                rng, keys = np.random.default_rng(size), [("layer", "W"), ("layer", "b")]
                raws = {key: np.trunc(rng.standard_normal(size) * 2.0**32) for key in keys}
                sanitizer = Sanitizer(flat_group(keys, 1.0, SIGMA), arithmetic=arithmetic)
                here, there = (sanitizer.release({key: place.asarray(raw / (1 if sanitizer.exact else 2.0**32))
                                                  for key, raw in raws.items()}, Streams(1).noise(size), dtype=dtype)
                               for place in (HERE, bench.backend))
                differing += sum(int((to_host(there[key]) != here[key]).sum()) for key in keys)
            yield {"arithmetic": arithmetic, "released as": dtype, "numbers": 2 * sum(SIZES), "that differ": differing,
                   "ok": differing == 0}


def independent(bench):
    """The self-check of exact arithmetic on the device: an example's results are its own bits in every batch."""
    for name in ("W1", "W5") if bench.small else WORKLOADS:
        workload = WORKLOADS[name]
        network = network_of(workload, np.random.default_rng(0)).to(bench.backend).use(EXACT)
        try:
            independence.check(network, nn.SoftmaxCrossEntropy(), np.arange(workload.classes))
            found = "the same bits in every batch"
        except IndependenceError as error:
            found = str(error)
        yield {"network": name, "found": found, "ok": found.startswith("the same")}
