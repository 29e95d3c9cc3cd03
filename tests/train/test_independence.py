"""The self-check of exact arithmetic: what it passes, and what it refuses by name."""
import numpy as np
import pytest

from minidp import nn
from minidp.errors import IndependenceError
from minidp.grads import Explicit
from minidp.train import independence

LABELS = np.zeros(3, int)


class OwnProduct(nn.Dense):
    def compute_y(self, x, rng):
        return x @ self.params["W"], x


class OwnGradient(nn.Dense):
    def compute_dx(self, dy, x):
        return dy @ self.params["W"].T


class OwnFactors(nn.Dense):
    def compute_grads(self, dy, x):
        return {"W": Explicit((x @ (x.T @ x))[:, :, None] * dy[:, None])}


def mixing(z, target):
    losses, dz = nn.SoftmaxCrossEntropy()(z, target)
    return losses, dz * (1 + dz[0, 0] / 2**20)


def dense(middle, rng):
    own = middle(120, 100, rng=rng, bias=False, name="middle")
    return nn.Sequential([nn.Dense(200, 120, rng=rng), nn.Tanh(), own, nn.Dense(100, 5, rng=rng)], (200,)).use("exact")


@pytest.mark.parametrize("middle, what", [
    (OwnProduct, "the output"), (OwnGradient, "dx"), (OwnFactors, "factor g of the gradient of W")])
def test_layers_with_products_of_their_own_are_refused_by_name(middle, what, rng):
    with pytest.raises(IndependenceError, match=f"middle: {what} of an example has other bits .*arithmetic.product"):
        independence.check(dense(middle, rng), nn.SoftmaxCrossEntropy(), LABELS)


def test_losses_that_mix_and_ordinary_arithmetic_are_refused(rng):
    with pytest.raises(IndependenceError, match="loss mixing: dz"):
        independence.check(dense(nn.Dense, rng), mixing, LABELS)
    with pytest.raises(IndependenceError, match="dense1: the output"):
        independence.check(dense(nn.Dense, rng).use("ordinary"), nn.SoftmaxCrossEntropy(), LABELS)


@pytest.mark.parametrize("frozen", [(), ("conv1",), ("dense2",)])
def test_networks_of_every_kind_of_layer_pass(frozen, backend, rng):
    layers = [nn.UnitNorm(), nn.Conv2D(3, 8, 3, rng=rng), nn.GroupNorm(8, 2), nn.ReLU(), nn.MaxPool2D(2),
              nn.Conv2D(8, 8, 2, rng=rng, stride=2), nn.Sigmoid(), nn.AvgPool2D(2), nn.Flatten(),
              nn.Dense(32, 20, rng=rng), nn.LayerNorm(20), nn.Tanh(), nn.Dropout(0.5),
              nn.Project(rng.standard_normal((20, 12)).astype("float32")), nn.Dense(12, 4, rng=rng), nn.Softmax()]
    network = nn.Sequential(layers, (16, 16, 3), frozen=frozen).to(backend).use("exact")
    independence.check(network, nn.SoftmaxCrossEntropy(), LABELS)
    independence.check(network, nn.SquaredError(), np.zeros((3, 4), "float32"))


def test_a_network_with_a_forward_of_its_own_is_checked_as_a_whole(rng):
    class Halved(nn.Sequential):
        def forward(self, x, *, rng=None):
            y, caches = super().forward(x, rng=rng)
            return y / 2, caches

    independence.check(Halved(dense(nn.Dense, rng).layers, (200,)), nn.SoftmaxCrossEntropy(), LABELS)
    with pytest.raises(IndependenceError, match="network: the output"):
        independence.check(Halved(dense(OwnProduct, rng).layers, (200,)), nn.SoftmaxCrossEntropy(), LABELS)
