"""Check the private steps of Opacus and JAX with minidp.audit.check_step, many times.

    python -m tools.step_peers --runs 100 --json experiments/results/step_peers.json

Needs the extra `peers`. Each adapter is what a user of that library writes to have her step
checked: one network 6-5-3 with tanh and half the squared error, whose gradients are clipped to
norm 1. Prints a line per peer; exits with 1 if anything that a peer claims is violated.
"""

import argparse
import time
from collections import Counter
from importlib.metadata import version

import numpy as np

from minidp.audit import check_step
from minidp.util.files import write_json

LOT, SIGMA, CLIP = 16, 1.5, 1.0
INPUTS = 6
PIECES = (30, 5, 15, 3)  # the network's tensors, in the order of their gradients


def opacus(clipping):
    """(step, what it states) of Opacus: flat, per_layer or ghost clipping."""
    import torch
    from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
    from opacus.optimizers import (
        DPOptimizer,
        DPOptimizerFastGradientClipping,
        DPPerLayerOptimizer,
    )
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    torch.seed()
    inner, loss = torch.optim.SGD(network.parameters(), lr=0.1), squared_error(torch)
    state = {"noise_multiplier": SIGMA, "max_grad_norm": CLIP, "expected_batch_size": LOT}
    stated = {}
    if clipping == "ghost":
        model = GradSampleModuleFastGradientClipping(
            network, max_grad_norm=CLIP, use_ghost_clipping=True
        )
        optimizer = DPOptimizerFastGradientClipping(inner, **state)
        loss = DPLossFastGradientClipping(model, optimizer, loss)
    elif clipping == "per_layer":
        model = GradSampleModule(network)
        norms = [CLIP / 2] * len(PIECES)  # together CLIP, to which its noise belongs
        optimizer = DPPerLayerOptimizer(inner, **{**state, "max_grad_norm": norms})
        ends = np.cumsum((0, *PIECES))
        stated["parts"] = {
            str(tensor): (slice(*ends[tensor : tensor + 2]), norm, SIGMA * CLIP / norm)
            for tensor, norm in enumerate(norms)
        }
    else:
        model, optimizer = GradSampleModule(network), DPOptimizer(inner, **state)

    def step(rows):
        rows = torch.from_numpy(rows)
        optimizer.zero_grad()
        loss(model(rows[:, :INPUTS]), rows[:, INPUTS:]).backward()
        optimizer.pre_step()  # clips, adds noise and divides, and does not descend
        return np.concatenate([each.grad.ravel() for each in network.parameters()])

    return step, stated


def squared_error(torch):
    """A mean over the lot, as Opacus takes it; for ghost clipping it asks for reduction "none"."""

    class SquaredError(torch.nn.Module):
        reduction = "mean"

        def forward(self, z, target):
            each = ((z - target) ** 2).sum(dim=1) / 2
            return each if self.reduction == "none" else each.mean()

    return SquaredError()


def jax():
    """(step, what it states) of plain JAX: vmap of grad, clipped, summed, with noise."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    shapes = (6, 5), (5,), (5, 3), (3,)
    params = [jnp.asarray(rng.uniform(-0.5, 0.5, shape), jnp.float32) for shape in shapes]
    keys = iter(lambda: jax.random.key(np.random.SeedSequence().entropy % 2**32), None)

    def loss(params, row):
        W, b, V, c = params
        z = jnp.tanh(row[:INPUTS] @ W + b) @ V + c
        return jnp.sum((z - row[INPUTS:]) ** 2) / 2

    @jax.jit
    def release(rows, key):
        grads = jax.vmap(jax.grad(loss), (None, 0))(params, rows)
        tensors = [each.reshape(len(rows), size) for each, size in zip(grads, PIECES)]
        flat = jnp.concatenate(tensors, axis=1)
        norms = jnp.linalg.norm(flat, axis=1, keepdims=True)
        total = (flat / jnp.maximum(1, norms / CLIP)).sum(axis=0)
        return (total + SIGMA * CLIP * jax.random.normal(key, total.shape)) / LOT

    return lambda rows: np.asarray(release(rows, next(keys))), {}


PEERS = {
    "Opacus, flat": lambda: opacus("flat"),
    "Opacus, per layer": lambda: opacus("per_layer"),
    "Opacus, ghost": lambda: opacus("ghost"),
    "JAX, vmap": jax,
}


def check(peer, runs):
    """Verdicts of `runs` reports of a peer, counted by test, and what does not hold that it does
    not claim.
    """
    step, stated = PEERS[peer]()
    stated |= {"row_shape": (INPUTS + 3,), "clip_norm": CLIP, "noise_multiplier": SIGMA}
    verdicts, started = {}, time.process_time()
    for run in range(runs):
        report = check_step(step, **stated, expected_lot_size=LOT, seed=run)
        for found in report.findings:
            verdicts.setdefault(found.name, Counter())[found.verdict] += 1
    seconds = (time.process_time() - started) / runs
    claiming = check_step(step, **stated, expected_lot_size=LOT, claims=("finite", "bits"))
    return {
        "runs": runs,
        "violated": sum(each["violated"] for each in verdicts.values()),
        "verdicts": verdicts,
        "not_claimed": {
            found.name: found.text for found in claiming.findings if found.verdict == "violated"
        },
        "calls_of_a_run": report.calls,
        "cpu_seconds_of_a_run": round(seconds, 2),
    }


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args(argv)
    found = {}
    for peer in PEERS:
        found[peer] = check(peer, args.runs)
        print(f"{peer}: {args.runs} runs, {found[peer]['violated']} violated", flush=True)
        for name, text in found[peer]["not_claimed"].items():
            print(f"  not claimed: {name}: {text}", flush=True)
    if args.json:
        versions = {name: version(name) for name in ("numpy", "torch", "opacus", "jax")}
        command = f"python -m tools.step_peers --runs {args.runs} --json {args.json}"
        about = {"command": command, "device": "cpu", "versions": versions}
        write_json(args.json, {**about, "peers": found})
    return 1 if any(each["violated"] for each in found.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
