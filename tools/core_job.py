"""The paper's job in small, with the core of minidp alone: private PCA, clipping by layer, Poisson
lots until a budget is spent, the moments accountant; and some lots of a convolutional network.

Prints one JSON object: the figures, a hash of the weights, and the modules of minidp that were
loaded. `tools.core` runs it in a copy of the core and beside it in the whole library.
"""

import json
import sys

import numpy as np

from minidp import nn
from minidp.mechanism import Plan, PoissonSampler, PrivatePCA, Sanitizer, per_layer_groups
from minidp.privacy import Filter, MomentsAccountant
from minidp.streams import Streams
from minidp.train import SGD, Trainer

ROWS, SIDE, DIMENSIONS, DELTA = 2000, 6, 20, 1e-5


def reduced(x, budget, streams):
    """The rows on directions that a private PCA released, charged to the budget."""
    pca = PrivatePCA(DIMENSIONS, noise_multiplier=7.0)
    budget.charge(pca.event())
    directions = pca.release(pca.raw_second_moments(x), streams.noise("pca"))
    project = nn.Project(np.asarray(directions, dtype="float32"))
    return nn.Sequential(project, input_shape=SIDE * SIDE).predict(x)


def plan_for(network, rate, sigma, steps):
    """Lots of a rate, clipped layer by layer to norm 1."""
    groups = per_layer_groups(network.params, clip_norm=1.0, noise_multiplier=sigma)
    return Plan(PoissonSampler(rate), Sanitizer(groups), steps, round(rate * ROWS))


def main():
    """Train twice and print what came of it."""
    rng, streams = np.random.default_rng(0), Streams(7)
    x = rng.random((ROWS, SIDE * SIDE), dtype="float32")
    y = (x[:, : x.shape[1] // 2].sum(axis=1) > x[:, x.shape[1] // 2 :].sum(axis=1)).astype(int)
    budget = Filter(MomentsAccountant(), epsilon=2.0, delta=DELTA)
    z = reduced(x, budget, streams)
    dense = nn.Sequential(
        nn.Dense(DIMENSIONS, 30, rng=streams.init),
        nn.ReLU(),
        nn.Dense(30, 2, rng=streams.init),
    )
    plan = plan_for(dense, 0.05, sigma=2.0, steps=400)
    trained = Trainer(dense, nn.SoftmaxCrossEntropy(), SGD(0.5), plan, budget).train(z, y, streams)

    images = nn.Sequential(
        nn.Conv2D(1, 4, 3, rng=streams.init),
        nn.ReLU(),
        nn.MaxPool2D(2),
        nn.Flatten(),
        nn.Dense(4 * (SIDE // 2) ** 2, 2, rng=streams.init),
        input_shape=(SIDE, SIDE, 1),
    )
    plan = plan_for(images, 0.05, sigma=1.0, steps=5)
    trainer = Trainer(images, nn.SoftmaxCrossEntropy(), SGD(0.1), plan)
    trainer.train(x.reshape((ROWS, SIDE, SIDE, 1)), y, Streams(3))

    found = {
        "epsilon": MomentsAccountant().epsilon(trained.ledger, DELTA).upper,
        "steps": trained.progress.step,
        "stopped": trained.stopped,
        "accuracy": float((dense.predict(z).argmax(axis=1) == y).mean()),
        "modules": sorted(
            name.removeprefix("minidp.") for name in sys.modules if name.startswith("minidp.")
        ),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
