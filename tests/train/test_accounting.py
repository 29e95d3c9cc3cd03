"""What a whole run is charged: the release of all layers as one sampled joint Gaussian, DP-PCA beside it."""
import math

import pytest

from minidp import nn
from minidp.mechanism import (FixedSizeSampler, Plan, PoissonSampler, PrivatePCA, Sanitizer,
                              ShuffleSampler, per_layer_groups)
from minidp.mechanism.rounding import products
from minidp.privacy import (Filter, FixedSizeSampled, Gaussian, JointGaussian, MomentsAccountant, NeighbouringRelation,
                            PoissonSampled)
from minidp.streams import Streams
from minidp.train import SGD, Trainer
from tests.support.training import make_data, make_network, make_trainer

DELTA = 1e-5
Q = 0.01  # lots of 600 among 60,000, as in the paper


def charged(sigma, pca_sigma, steps, layout):
    """The ledger of a real run: DP-PCA, then training in its directions, all through one filter."""
    x, y = make_data()
    streams = Streams(1)
    budget = Filter(MomentsAccountant(), math.inf, DELTA)
    projection = PrivatePCA(3, pca_sigma).fit(x, budget, streams.noise("pca"))
    network = nn.Sequential([nn.Dense(3, 4, rng=streams.init, dtype="float64"), nn.ReLU(),
                             nn.Dense(4, 3, rng=streams.init, dtype="float64")], (3,))
    plan = make_trainer(sampler="poisson", layout=layout, noise_multiplier=sigma, steps=steps).plan
    plan = Plan(PoissonSampler(Q), plan.sanitizer, steps, 1)
    record = Trainer(network, nn.SoftmaxCrossEntropy(), SGD(0.1), plan, budget).run(x @ projection, y, streams)
    assert record.stopped == "finished" and record.ledger is budget.ledger
    return record.ledger


@pytest.mark.parametrize("layout, event", [("per-layer", lambda sigma: JointGaussian((sigma, sigma))), ("flat", Gaussian)])
def test_a_run_is_charged_the_joint_gaussian_and_pca(layout, event):
    event = event(8.0 / products(1, "auto").factor)
    assert charged(8.0, 16.0, 145, layout).items() == [(Gaussian(16.0), 1), (PoissonSampled(Q, event), 145)]


@pytest.mark.parametrize("sampler, event, count", [
    (FixedSizeSampler(40, 8), lambda sigma: FixedSizeSampled(40, 8, JointGaussian((sigma / 2,) * 2)), 10),  # 2C
    (ShuffleSampler(40, 12), lambda sigma: JointGaussian((sigma,) * 2), 3)])  # ten lots begin three epochs of four
def test_other_samplers_are_charged_under_their_own_relation(sampler, event, count):
    network = make_network()
    plan = Plan(sampler, Sanitizer(per_layer_groups(network.params, 1.0, 2.0)), 10, sampler.lot_size)
    budget = Filter(MomentsAccountant(sampler.relation), math.inf, DELTA)
    PrivatePCA(2, 7.0).fit(make_data()[0], budget, Streams(1).noise("pca"))
    record = Trainer(network, nn.SoftmaxCrossEntropy(), SGD(0.1), plan, budget).run(*make_data(), Streams(1))
    pca = 7.0 / math.sqrt(2) if sampler.relation is NeighbouringRelation.REPLACE_ONE else 7.0
    assert record.ledger.items() == [(Gaussian(pca), 1), (event(2.0 / plan.products.factor), count)]
    assert math.isfinite(MomentsAccountant(sampler.relation).epsilon(record.ledger, DELTA).upper)
