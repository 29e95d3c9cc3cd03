"""Check the private steps of Opacus and JAX with minidp.audit.check_step, many times.

    python -m tools.step_peers --runs 100 --json experiments/results/step_peers.json

Needs the extra `peers`. Each adapter is what a user of that library writes to have their step
checked: one network 6-5-3 with tanh and half the squared error, whose gradients are clipped to
norm 1. Prints a line per peer; exits with 1 if anything that a peer claims is violated.
"""

import argparse
from collections import Counter
from importlib.metadata import version

import numpy as np

from minidp.audit import check_step
from minidp.util.files import write_json

LOT, SIGMA, CLIP = 16, 1.5, 1.0
INPUTS = 6  # of a row; its last three numbers are the targets
SHAPES = ((6, 5), (5,), (5, 3), (3,))


def opacus():
    """A step of Opacus with flat clipping."""
    import torch
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    torch.set_num_threads(1)
    model = GradSampleModule(
        torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    )
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=SIGMA,
        max_grad_norm=CLIP,
        expected_batch_size=LOT,
    )

    def step(rows):
        rows = torch.from_numpy(rows)
        optimizer.zero_grad()
        errors = model(rows[:, :INPUTS]) - rows[:, INPUTS:]
        ((errors**2).sum(dim=1) / 2).mean().backward()
        optimizer.pre_step()  # clips, adds noise and divides, and does not descend
        return np.concatenate([each.grad.ravel() for each in model.parameters()])

    return step


def jax():
    """A step of plain JAX: vmap of grad, clipped, summed, with noise."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    params = [jnp.asarray(rng.uniform(-0.5, 0.5, shape), jnp.float32) for shape in SHAPES]

    def loss(params, row):
        W, b, V, c = params
        z = jnp.tanh(row[:INPUTS] @ W + b) @ V + c
        return jnp.sum((z - row[INPUTS:]) ** 2) / 2

    @jax.jit
    def release(rows, key):
        grads = jax.vmap(jax.grad(loss), (None, 0))(params, rows)
        flat = jnp.concatenate([each.reshape(len(rows), -1) for each in grads], axis=1)
        norms = jnp.linalg.norm(flat, axis=1, keepdims=True)
        total = (flat / jnp.maximum(1, norms / CLIP)).sum(axis=0)
        return (total + SIGMA * CLIP * jax.random.normal(key, total.shape)) / LOT

    def step(rows):
        return np.asarray(release(rows, jax.random.key(np.random.SeedSequence().entropy % 2**32)))

    return step


PEERS = {"Opacus, flat": opacus, "JAX, vmap": jax}


def check(peer, runs):
    """Verdicts of `runs` reports of a peer, counted by test, and what does not hold that it does
    not claim.
    """
    step, verdicts = PEERS[peer](), {}

    def report(**how):
        return check_step(
            step,
            row_shape=(INPUTS + 3,),
            clip_norm=CLIP,
            noise_multiplier=SIGMA,
            expected_lot_size=LOT,
            **how,
        )

    for run in range(runs):
        for found in report(seed=run).findings:
            verdicts.setdefault(found.name, Counter())[found.verdict] += 1
    claiming = report(claims=("finite", "bits")).findings
    return {
        "runs": runs,
        "violated": sum(each["violated"] for each in verdicts.values()),
        "verdicts": verdicts,
        "not_claimed": {each.name: each.text for each in claiming if each.verdict == "violated"},
    }


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--json", metavar="FILE", required=True)
    args = parser.parse_args(argv)
    found = {peer: check(peer, args.runs) for peer in PEERS}
    for peer, figures in found.items():
        print(f"{peer}: {args.runs} runs, {figures['violated']} violated")
    write_json(
        args.json,
        {
            "command": f"python -m tools.step_peers --runs {args.runs} --json {args.json}",
            "device": "cpu",
            "versions": {name: version(name) for name in ("numpy", "torch", "opacus", "jax")},
            "peers": found,
        },
    )
    return 1 if any(each["violated"] for each in found.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
