"""Right networks of many layers pass the trial before the first charge."""

import numpy as np
import pytest

from minidp import nn
from minidp.train import crowd, selfcheck
from tests.support.guarded import guarded_backend
from tests.support.training import NUMPY

LABELS, ZEROS, LOSS = np.zeros(10, int), np.zeros(3, int), nn.SoftmaxCrossEntropy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_right_networks_pass_whatever_their_weights_are(dtype, scale):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        network = nn.Sequential(
            [
                nn.Dense(6, 40, rng=rng, dtype=dtype),
                nn.ReLU(),
                nn.LayerNorm(40, dtype=dtype),
                nn.Dense(40, 3, rng=rng, dtype=dtype),
            ],
            (6,),
        )
        for array in network.params.values():
            array += scale * rng.standard_normal(array.shape).astype(dtype)
        with np.errstate(all="ignore"):
            assert not list(crowd.faults(network, LOSS, LABELS, rng))


@pytest.mark.parametrize(
    "frozen, backend",
    [((), NUMPY), ((), guarded_backend()), (("conv1",), NUMPY), (("dense2",), NUMPY)],
)
def test_networks_of_every_kind_of_layer_pass(frozen, backend, rng):
    layers = [
        nn.UnitNorm(),
        nn.Conv2D(3, 8, 3, rng=rng),
        nn.GroupNorm(8, 2),
        nn.ReLU(),
        nn.MaxPool2D(2),
        nn.Conv2D(8, 8, 2, rng=rng, stride=2),
        nn.Sigmoid(),
        nn.AvgPool2D(2),
        nn.Flatten(),
        nn.Dense(32, 20, rng=rng),
        nn.LayerNorm(20),
        nn.Tanh(),
        nn.Dropout(0.5),
        nn.Project(rng.standard_normal((20, 12)).astype("float32")),
        nn.Dense(12, 4, rng=rng),
        nn.Softmax(),
    ]
    network = nn.Sequential(layers, (16, 16, 3), frozen=frozen).to(backend)
    for loss, targets in (
        (LOSS, ZEROS),
        (nn.SquaredError(), np.zeros((3, 4), "float32")),
    ):
        selfcheck.check(network, loss, targets)
    layers[-2].params["W"][...] = 0
    selfcheck.check(network, LOSS, ZEROS)
