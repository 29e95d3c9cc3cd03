"""Layers of sequences in networks: training in every form and arithmetic, model files, ids."""

import numpy as np
import pytest

from minidp import nn
from minidp.backend import to_host
from minidp.errors import ParameterError, ShapeError
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.train import SGD, Trainer, evaluate

T, V, WIDTH = 3, 5, 4


def recurrent(rng):
    layers = [nn.Embedding(V, WIDTH, rng=rng), nn.LSTM(WIDTH, WIDTH, rng=rng)]
    return nn.Sequential([*layers, nn.Dense(WIDTH, V, rng=rng)], (T,))


def attending(rng):
    attention = nn.CausalAttention(WIDTH, heads=2, rng=rng)
    inner = nn.Residual([nn.LayerNorm(WIDTH), nn.Dense(WIDTH, WIDTH, rng=rng), nn.Dropout(0.5)])
    layers = [nn.Positions(T, WIDTH, rng=rng), nn.Residual([nn.LayerNorm(WIDTH), attention]), inner]
    return nn.Sequential([nn.Tied([nn.Embedding(V, WIDTH, rng=rng), *layers])], (T,))


networks = pytest.mark.parametrize("make", [recurrent, attending])


def data(size=40):
    rng = np.random.default_rng(0)
    return rng.integers(-1, V, (size, T)), rng.integers(-1, V, (size, T))


def trained(make, **how):
    x, y = data()
    network = make(np.random.default_rng(1))
    groups = flat_group(network.params, 0.1, 1.0)
    plan = Plan(PoissonSampler(0.5), Sanitizer(groups, **how), 2, 20)
    Trainer(network, nn.SequenceCrossEntropy(), SGD(0.5), plan).run(x, y, 3)
    return network


@networks
def test_every_form_and_arithmetic_trains_on_ids_alike(make):
    one, *others = (
        trained(make, **how)
        for how in ({"strategy": "factored"}, {"strategy": "explicit"}, {"arithmetic": "exact"})
    )
    before = make(np.random.default_rng(1)).params
    for key, array in one.params.items():
        assert (array != before[key]).any()
        # noise of exact arithmetic is drawn by another law
        np.testing.assert_allclose(others[0].params[key], array, rtol=1e-4, atol=1e-6)
    x, y = data()
    assert np.isfinite(evaluate(others[1], nn.SequenceCrossEntropy(), x, y).loss)


def test_an_id_of_no_row_gives_zeros_and_moves_nothing(backend):
    layer = nn.Embedding(V, WIDTH)
    layer.params["E"] = backend.asarray(layer.params["E"])
    for x in (np.array([[0, -1, V]]), np.array([[0.2, np.nan, V]])):
        y, cache = layer.forward(backend.asarray(x))
        y, row = to_host(y), to_host(layer.params["E"])[0]
        assert not y[0, 1:].any() and (y[0, 0] == row).all()
        g = layer.param_grads(backend.asarray(np.ones((1, T, WIDTH))), cache)["E"].materialise()
        assert to_host(g).sum() == WIDTH


def test_chains_that_do_not_fit_are_refused():
    with pytest.raises(
        ShapeError, match=r"residual1: expected the layers to keep the shape \(3,\)"
    ):
        nn.Sequential([nn.Residual([nn.Dense(3, 2)])], (3,))
    with pytest.raises(ShapeError, match="lstm1: expected at least one position"):
        nn.Sequential([nn.LSTM(3, 4)], (0, 3))
    with pytest.raises(ShapeError, match=r"tied1: expected the last layer to give \(3, 4\)"):
        nn.Sequential([nn.Tied([nn.Embedding(V, WIDTH), nn.Dense(WIDTH, 2)])], (T,))
    with pytest.raises(ParameterError, match="expected an Embedding as the first layer"):
        nn.Tied([nn.Dense(3, 3)])
    with pytest.raises(ParameterError, match="expected heads=3 to divide width=4"):
        nn.CausalAttention(4, 3)
