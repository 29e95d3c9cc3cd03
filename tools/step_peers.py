"""Check the private steps of Opacus, JAX, JAX-Privacy and TensorFlow Privacy with
minidp.audit.check_step: as their users write them, and with three planted faults each.

    python -m tools.step_peers --peers opacus --runs 5 --json experiments/results/step_peers.json

Each library wants an environment of its own, with what minidp needs and: opacus (and torch); jax
and jax-privacy; tensorflow and tensorflow-privacy. The JSON keeps what others found.
One network 6-5-3 with tanh and half the squared error, clipped to norm 1. Exits with 1 if a step as
its users write it is accused, or a planted fault is not found.
"""

import argparse
import json
import os
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import numpy as np

from minidp.audit import check_step
from minidp.util.files import write_json

LOT, SIGMA, CLIP = 16, 1.5, 1.0
PADDED = 64  # rows of a lot in JAX: a multiple of it
INPUTS = 6  # of a row; its last three numbers are the targets
SHAPES = ((6, 5), (5,), (5, 3), (3,))


def less_the_mean(rows):
    """Rows whose inputs are centred by the lot, as batch normalisation does."""
    rows = rows.copy()
    rows[:, :INPUTS] -= rows[:, :INPUTS].mean(axis=0) if len(rows) else 0
    return rows


# what a step does in place of what it states: its clip norm, its noise multiplier, its rows
FAULTS = {
    "": (CLIP, SIGMA, np.asarray),
    "half the noise": (CLIP, SIGMA / 2, np.asarray),
    "clipped to 2 C": (2 * CLIP, SIGMA / 2, np.asarray),
    "inputs less the lot's mean": (CLIP, SIGMA, less_the_mean),
}


class _Halved:
    """Half the squared error of a row; their mean, or, as Opacus asks, each."""

    reduction = "mean"

    def __call__(self, z, target):
        losses = ((z - target) ** 2).sum(dim=1) / 2
        return losses.mean() if self.reduction == "mean" else losses


def opacus(kind):
    """A maker of steps of Opacus: "flat", "layer", "ghost" or "adaptive" clipping."""

    def make(clip, sigma, seen):
        import torch
        from opacus import grad_sample, optimizers
        from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

        torch.set_num_threads(1)
        network = (torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
        wrapper, optimizer, more = {
            "flat": ("GradSampleModule", "DPOptimizer", {}),
            "layer": ("GradSampleModule", "DPPerLayerOptimizer", {}),
            "ghost": (
                "GradSampleModuleFastGradientClipping",
                "DPOptimizerFastGradientClipping",
                {"max_grad_norm": clip, "use_ghost_clipping": True},
            ),
            "adaptive": ("GradSampleModule", "AdaClipDPOptimizer", {}),
        }[kind]
        model = getattr(grad_sample, wrapper)(torch.nn.Sequential(*network), **more)
        settings = {"noise_multiplier": sigma, "expected_batch_size": LOT, "max_grad_norm": clip}
        if kind == "layer":  # equal shares of the clip norm
            settings["max_grad_norm"] = [clip / 2] * 4
        if kind == "adaptive":
            settings |= {"target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2}
            settings |= {"max_clipbound": 10, "min_clipbound": 0.1, "unclipped_num_std": 10}
        descent = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = getattr(optimizers, optimizer)(descent, **settings)
        criterion = _Halved()
        if kind == "ghost":
            criterion = DPLossFastGradientClipping(model, optimizer, criterion)

        def step(rows):
            rows = torch.from_numpy(np.array(seen(rows)))
            optimizer.zero_grad()
            if kind == "adaptive":  # each call starts from the same clip norm
                optimizer.max_grad_norm = clip
            criterion(model(rows[:, :INPUTS]), rows[:, INPUTS:]).backward()
            optimizer.pre_step()  # clips, adds noise and divides, and does not descend
            return np.concatenate([each.grad.ravel() for each in model.parameters()])

        return step

    return make


def _loss(params, row):
    import jax.numpy as jnp

    W, b, V, c = params
    z = jnp.tanh(row[:INPUTS] @ W + b) @ V + c
    return jnp.sum((z - row[INPUTS:]) ** 2) / 2


def padded(rows):
    """Rows and some of zeros, so that lots have few shapes, and may be empty; their weights."""
    weights = np.zeros((len(rows) // PADDED + 1) * PADDED, "float32")
    weights[: len(rows)] = 1
    padding = np.zeros((len(weights) - len(rows), INPUTS + 3), "float32")
    return np.concatenate([rows, padding]), weights


def _params():
    rng = np.random.default_rng(0)
    return [rng.uniform(-0.5, 0.5, shape).astype("float32") for shape in SHAPES]


def jax(clip, sigma, seen):
    """A step of plain JAX: vmap of grad, clipped, summed, with noise."""
    import jax
    import jax.numpy as jnp

    params = _params()

    @jax.jit
    def release(rows, weights, key):
        grads = jax.vmap(jax.grad(_loss), (None, 0))(params, rows)
        flat = jnp.concatenate([each.reshape(len(rows), -1) for each in grads], axis=1)
        norms = jnp.linalg.norm(flat, axis=1, keepdims=True)
        total = weights @ (flat / jnp.maximum(1, norms / clip))
        return (total + sigma * clip * jax.random.normal(key, total.shape)) / LOT

    def step(rows):
        key = jax.random.key(np.random.SeedSequence().entropy % 2**32)
        rows, weights = padded(seen(rows))
        return np.asarray(release(rows, weights, key))

    return step


def jax_privacy(clip, sigma, seen):
    """A step of JAX-Privacy: clipped_grad and its Gaussian privatizer."""
    import jax
    import jax.numpy as jnp
    from jax_privacy import clipped_grad, noise_addition

    params, seed = _params(), np.random.SeedSequence().entropy % 2**31
    clipped = clipped_grad(_loss, l2_clip_norm=clip, keep_batch_dim=False, normalize_by=LOT)
    privatizer = noise_addition.gaussian_privatizer(stddev=sigma * clip / LOT, prng_key=seed)
    state = privatizer.init(params)

    @jax.jit
    def release(rows, padding, state):
        total = clipped(params, rows, is_padding_example=padding)
        noisy, state = privatizer.update(total, state)
        return jnp.concatenate([each.ravel() for each in noisy]), state

    def step(rows):
        nonlocal state
        rows, weights = padded(seen(rows))
        released, state = release(rows, weights == 0, state)
        return np.asarray(released)

    return step


def tensorflow_privacy(clip, sigma, seen):
    """A step of TensorFlow Privacy's vectorised optimizer, for lots of a fixed size."""
    import tensorflow as tf
    from tensorflow_privacy import VectorizedDPKerasSGDOptimizer

    params = [tf.Variable(each) for each in _params()]
    optimizer = VectorizedDPKerasSGDOptimizer(clip, sigma, num_microbatches=LOT)

    @tf.function
    def release(rows):
        W, b, V, c = params
        with tf.GradientTape(persistent=True) as tape:
            z = tf.tanh(rows[:, :INPUTS] @ W + b) @ V + c
            losses = tf.reduce_sum((z - rows[:, INPUTS:]) ** 2, axis=1) / 2
        grads = optimizer._compute_gradients(losses, params, tape=tape)
        return tf.concat([tf.reshape(grad, [-1]) for grad, _ in grads], 0)

    return lambda rows: release(tf.constant(seen(rows))).numpy()


PEERS = {  # by environment: {name: (maker of a step, what is stated besides)}
    "opacus": {
        "Opacus, flat": (opacus("flat"), {}),
        "Opacus, per layer": (opacus("layer"), {}),
        "Opacus, ghost": (opacus("ghost"), {}),
        # the count of clipped gradients takes a part of the noise multiplier
        "Opacus, adaptive": (
            opacus("adaptive"),
            {"noise_multiplier": (SIGMA**-2 - 20.0**-2) ** -0.5},
        ),
    },
    "jax": {"JAX, vmap": (jax, {}), "JAX-Privacy": (jax_privacy, {})},
    # it divides by the rows at hand
    "tensorflow": {
        "TensorFlow Privacy, vectorised": (tensorflow_privacy, {"relation": "zero_out"})
    },
}
LIBRARIES = {
    "opacus": ("torch", "opacus"),
    "jax": ("jax", "jax-privacy"),
    "tensorflow": ("tensorflow-cpu", "tensorflow-privacy"),
}


def check(make, stated, runs):
    """{what is wrong: {"reports", "passed", verdicts of each test}} of so many reports each."""
    stated = {
        "row_shape": (INPUTS + 3,),
        "clip_norm": CLIP,
        "noise_multiplier": SIGMA,
        "expected_lot_size": LOT,
        **stated,
    }
    found = {}
    for fault, settings in FAULTS.items():
        passed, verdicts, times = Counter(), {}, runs if not fault else 1
        for run in range(times):
            report = check_step(make(*settings), seed=run, **stated)
            passed[str(report.passed)] += 1
            for each in report.findings:
                verdicts.setdefault(each.name, Counter())[each.verdict] += 1
        found[fault or "as written"] = {"reports": times, "passed": passed, "verdicts": verdicts}
    return found


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", choices=PEERS, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", required=True)
    args = parser.parse_args(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    kept, wrong = {}, 0
    if Path(args.json).is_file():
        kept = json.loads(Path(args.json).read_text(encoding="utf-8")).get("peers", {})
    for name, (make, stated) in PEERS[args.peers].items():
        found = check(make, stated, args.runs)
        right = "False" not in found["as written"]["passed"]
        missed = [fault for fault in FAULTS if fault and "False" not in found[fault]["passed"]]
        wrong += not right or bool(missed)
        print(f"{name}: {args.runs} reports, {'right' if right else 'ACCUSED'}; missed: {missed}")
        kept[name] = {
            "command": f"python -m tools.step_peers --peers {args.peers} --runs {args.runs} "
            f"--json {args.json}",
            "device": "cpu",
            "seeds": list(range(args.runs)),
            "versions": {each: version(each) for each in ("numpy", *LIBRARIES[args.peers])},
            "found": found,
        }
    write_json(args.json, {"peers": kept})
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
