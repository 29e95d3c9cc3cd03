"""The GPU beside the CPU: layers, losses, kernels, training with one seed, noise, independence;
rows of the report.

Seeded runs draw their noise, lots and initial values from one key on any device, so the two differ
by rounding only, and in exact arithmetic not at all. `ok` says whether a row is as it has to be.
"""

import time
from unittest import mock

import numpy as np

from minidp import nn
from minidp.arithmetic import ARITHMETICS, EXACT
from minidp.audit.cases import LAYERS, LOSSES, to_backend
from minidp.backend import Backend, synchronise, to_host
from minidp.errors import MinidpError
from minidp.mechanism import Sanitizer, flat_group
from minidp.streams import Streams
from minidp.train import independence
from tools.bench import ours
from tools.bench.workloads import WORKLOADS

HERE = Backend.numpy()
TOLERANCES = {"float64": 1e-10, "float32": 1e-4}
STEPS, TRAINING_TOLERANCE = (
    200,
    1e-2,
)  # float32, after so many steps; rounding differences grow with every step
SIZES = 1, 7, 511, 512, 513, 70_001


class Skipped(MinidpError):
    """A part that cannot run here, and why."""


def difference(got, expected):
    """Largest difference, relative to the largest number expected, or as it is where that is 0;
    infinite for NaN.
    """
    got, expected = to_host(got), to_host(expected)
    found = float(np.abs(got - expected).max(initial=0) / (np.abs(expected).max(initial=0) or 1))
    return found if found == found else float("inf")


def of_layer(case, place, dtype):
    """Output, input gradient and per-example gradients of one layer."""
    rng = np.random.default_rng(1)
    layer = to_backend(case.make(rng, dtype), place)
    y, cache = layer.forward(place.asarray(case.input(rng, 16, dtype)))
    dy = place.asarray(rng.uniform(-1, 1, y.shape).astype(dtype))
    grads = layer.param_grads(dy, cache)
    return [
        y,
        layer.backward(dy, cache),
        *(grads[name].materialise() for name in sorted(grads)),
        *(grads[name].sq_norms() for name in sorted(grads)),
    ]


def of_loss(case, place, dtype):
    """Losses and their gradient."""
    rng = np.random.default_rng(1)
    z, target = rng.uniform(-3, 3, (16, 5)).astype(dtype), case.target(rng, 16, 5)
    return case.loss(
        *map(place.asarray, (z, target.astype(dtype) if target.dtype.kind == "f" else target))
    )


def layers(bench):
    """Every layer and loss in both dtypes."""
    for dtype, tolerance in TOLERANCES.items():
        for compute, cases in ((of_layer, LAYERS), (of_loss, LOSSES)):
            for case in cases:
                worst = max(
                    map(difference, compute(case, bench.backend, dtype), compute(case, HERE, dtype))
                )
                yield {
                    "what": case.name,
                    "dtype": dtype,
                    "difference": worst,
                    "at most": tolerance,
                    "ok": worst <= tolerance,
                }


def kernels(bench):
    """Every CUDA kernel beside its definition, both on the device: the cases of
    tests/device_kernels.
    """
    try:
        from tests.device_kernels import test_kernels as known
    except ImportError as error:
        raise MinidpError(
            f"{error}: the kernels' cases are in tests/; pip install -e '.[test]' in a whole "
            "checkout"
        ) from error

    if bench.small and not known.shim.COMPILER:
        raise Skipped("no C++ compiler: the CUDA sources were not executed on the host")
    with mock.patch.multiple(known, asarray=bench.backend.asarray, guarded_xp=bench.backend.xp):
        for source, cases in known.CASES.items():
            for case in cases[: 1 if bench.small else None]:
                try:
                    found = case(np.random.default_rng(0)) or "what the definitions give"
                except AssertionError as error:
                    found = " ".join(str(error).split())[:300]
                yield {
                    "source": source,
                    "case": case.__name__,
                    "found": found,
                    "ok": found.startswith("what"),
                }


def train(workload, strategy, backend, steps):
    """({parameter: its values after `steps` private steps with a seed}, milliseconds a step)."""
    (trainer, examples, streams), started = (
        ours.trainer_of(workload, strategy, backend, seed=1),
        time.perf_counter(),
    )
    for step, lot in enumerate(
        trainer.plan.sampler.lots(workload.examples, steps, streams.sampling, 0)
    ):
        trainer.step(examples, lot, step, streams)
    synchronise(backend.xp)
    spent = 1000 * (time.perf_counter() - started) / steps
    return {key: to_host(array) for key, array in trainer.network.params.items()}, spent


def training(bench):
    """The weights after private training, in exact arithmetic the same bits."""
    steps = 5 if bench.small else STEPS
    for workload in (
        WORKLOADS[name].small() if bench.small else WORKLOADS[name] for name in ("W1", "W5")
    ):
        for strategy in ours.STRATEGIES:
            (here, here_ms), (there, there_ms) = (
                train(workload, strategy, place, steps) for place in (HERE, bench.backend)
            )
            worst, most = (
                max(difference(there[key], here[key]) for key in here),
                0.0 if strategy == EXACT else TRAINING_TOLERANCE,
            )
            same = all(there[key].tobytes() == here[key].tobytes() for key in here)
            yield {
                "network": workload.name,
                "gradients": strategy,
                "steps": steps,
                "difference": worst,
                "at most": most,
                "same bits": same,
                "ms a step on the CPU": here_ms,
                f"on {bench.backend.name}": there_ms,
                "ok": same if strategy == EXACT else worst <= most,
            }


def noise(bench):
    """Releases of the same raw sums, bit for bit."""
    keys = [("layer", "W"), ("layer", "b")]
    for arithmetic in ARITHMETICS:
        for dtype in TOLERANCES:
            differing, sanitizer = 0, Sanitizer(flat_group(keys, 1.0, 4.0), arithmetic=arithmetic)
            for size in SIZES:
                raw = np.trunc(np.random.default_rng(size).standard_normal(size) * 2.0**32) / (
                    1 if sanitizer.exact else 2.0**32
                )
                here, there = (
                    sanitizer.release(
                        {key: place.asarray(raw.copy()) for key in keys},
                        Streams(1).noise(size),
                        dtype=dtype,
                    )
                    for place in (HERE, bench.backend)
                )
                differing += sum(int((to_host(there[key]) != here[key]).sum()) for key in keys)
            yield {
                "arithmetic": arithmetic,
                "released as": dtype,
                "numbers": len(keys) * sum(SIZES),
                "that differ": differing,
                "ok": differing == 0,
            }


def independent(bench):
    """The self-check of exact arithmetic on the device: an example's results are its own bits in
    every batch.
    """
    for workload in [WORKLOADS[name] for name in (("W1", "W5") if bench.small else WORKLOADS)]:
        network = ours.network_of(workload, np.random.default_rng(0)).to(bench.backend).use(EXACT)
        independence.check(network, nn.SoftmaxCrossEntropy(), np.arange(workload.classes))
        yield {"network": workload.name, "found": "the same bits in every batch"}
