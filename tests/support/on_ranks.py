"""What tests/test_ranks.py runs under mpiexec: python on_ranks.py WHAT FOLDER; rank 0 writes what
came out.
"""

import math
import os
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np

from minidp import fit, nn
from minidp.commands.flags import user_errors
from minidp.errors import ParameterError
from minidp.mechanism import (
    Plan,
    PoissonSampler,
    Sanitizer,
    ShuffleSampler,
    flat_group,
    per_layer_groups,
)
from minidp.privacy import Ledger
from minidp.ranks import current
from minidp.streams import Streams
from minidp.train import SGD, Trainer
from tests.support import running
from tests.support.training import EXAMPLES, make_data, make_network

SAMPLERS = {
    "poisson": (PoissonSampler(0.2), 8),
    "nearly empty": (PoissonSampler(0.01), 0.4),
    "fewer than ranks": (ShuffleSampler(EXAMPLES, 2), 2),
    "shuffle": (ShuffleSampler(EXAMPLES, 12), 12),
}


class Kept(SGD):
    """Keeps what was released."""

    def __init__(self, rate):
        super().__init__(rate)
        self.released = []

    def update(self, params, grads, step):
        self.released.append(np.concatenate([grads[key].ravel() for key in params]))
        super().update(params, grads, step)


def trained(sampler, lot, strategy="auto", layout=per_layer_groups, dtype="float32"):
    """(steps, P) releases and final parameters."""
    network, (x, y) = make_network(dtype=dtype), make_data(dtype=dtype)
    plan = Plan(sampler, Sanitizer(layout(network.params, 1.0, 1.0), strategy), 8, lot)
    trainer = Trainer(network, nn.SoftmaxCrossEntropy(), Kept(0.5), plan)
    trainer.train(x, y, Streams(4), block_steps=4)
    return np.stack(
        [
            *trainer.optimizer.released,
            np.concatenate([array.ravel() for array in network.params.values()]),
        ]
    )


def cases():
    """{case: array}"""
    found = {name: trained(*sampler) for name, sampler in SAMPLERS.items()}
    found["explicit"] = trained(*SAMPLERS["poisson"], "explicit", flat_group)
    x = np.random.default_rng(2).normal(size=(300, 4))
    persons = {"person": np.arange(300) // 3, "rows_per_person": 2, "lot_size": 60}
    weighted = persons | {"rows_per_person": 1, "example_weight": np.arange(100) % 3 / 2}
    for case, more in (
        ("fit", {"lot_size": 300}),
        ("persons", persons),
        ("weighted persons", weighted),
    ):
        named = {"epsilon": 2.0, "delta": 1e-4, "steps": 5, "seed": 1}
        model = fit(x, x[:, 0] > 0, quiet=True, **named, **more)
        found[case] = model.predict_proba(x)
    return found


def noise(releases=1000, size=2000):
    """[variance of the noise of many releases over (sigma C)^2, places that were drawn, and by how
    many ranks each], without a seed.
    """
    ranks, streams, key, places = (
        current(),
        Streams(),
        ("layer", "W"),
        np.zeros((releases, size), np.int64),
    )
    sanitizer, squares = Sanitizer(flat_group({key: np.empty(size)}, 0.5, 3.0)), 0.0
    for step in range(releases):
        draws = streams.noise(step)
        add = draws.add_normals

        def watched(out, std, grid, place, *rest):
            places[step, place[1] : place[1] + out.size] += 1
            add(out, std, grid, place, *rest)

        draws.add_normals = watched
        released = sanitizer.release({key: np.zeros(size)}, draws, (), 1.0, None, ranks)[key]
        squares += float((released**2).mean())
    ranks.check_equal("releases without a seed", sha256(released.tobytes()).digest())
    drawn = np.sum(ranks.collect(places), axis=0)
    return np.array([squares / releases / 1.5**2, drawn.min(), drawn.max()])


def ledger_first(folder):
    """A run without a seed, in which every rank looks at the ledger on disk at each step;
    result.json's figures.
    """
    step = Trainer.step

    def watched(self, examples, lot, number, streams):
        assert (
            sum(times for _, times in Ledger.load(folder / "run" / "ledger.json").items()) > number
        )
        step(self, examples, lot, number, streams)

    Trainer.step = watched
    result = running.train(folder / "run", measure_every=3)
    return np.array([result["ranks"], result["steps"], result["test_accuracy"]])


def long_run(folder, steps):
    """A run that is killed and resumed; each rank says which process it is."""
    (folder / f"rank{current().rank}").write_text(str(os.getpid()))
    return running.train(folder / "run", 3, steps=steps, measure_every=250)


def fail(how):
    """Rank 1 fails in the middle of a run, or all ranks before it."""
    losses, calls = nn.SoftmaxCrossEntropy(), []

    class Failing(nn.SoftmaxCrossEntropy):
        def __call__(self, z, y):
            calls.append(0)
            if len(calls) > 30 and current().rank == 1:
                raise (
                    ParameterError("a disk of this rank")
                    if how != "fault"
                    else ZeroDivisionError("of this rank")
                )
            return losses(z, y)

    running.train(
        sys.argv[2] + "/run", steps=3000, loss=Failing(), epsilon=1e-3 if how == "all" else math.inf
    )


def main(what, folder, steps=0):
    folder = Path(folder)
    with user_errors():
        if what == "cases":
            found = {**cases(), "noise": noise(), "ledger": ledger_first(folder)}
        elif what == "long":
            return long_run(folder, int(steps))
        else:
            return fail(what)
        if current().rank == 0:
            np.savez(folder / "found.npz", **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
