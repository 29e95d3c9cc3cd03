"""Layers of sequences in networks: training in every form, model files, ids."""

import tracemalloc

import numpy as np

from minidp import fit, nn
from minidp.backend import to_host
from minidp.layers.embedding import RowsGrad
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.train import SGD, Trainer

T, V, WIDTH = 3, 5, 4


def network_of(rng):
    layers = [nn.Embedding(V, WIDTH, rng=rng), nn.LSTM(WIDTH, WIDTH, rng=rng)]
    return nn.Sequential([*layers, nn.Dense(WIDTH, V, rng=rng)], (T,))


def data(size=40):
    rng = np.random.default_rng(0)
    return rng.integers(-1, V, (size, T)), rng.integers(-1, V, (size, T))


def trained(strategy):
    x, y = data()
    network = network_of(np.random.default_rng(1))
    groups = flat_group(network.params, 0.1, 1.0)
    plan = Plan(PoissonSampler(0.5), Sanitizer(groups, strategy), 2, 20)
    Trainer(network, nn.SequenceCrossEntropy(), SGD(0.5), plan).train(x, y, 3)
    return network


def test_every_form_trains_on_ids_alike():
    one, other = (trained(strategy) for strategy in ("factored", "explicit"))
    before = network_of(np.random.default_rng(1)).params
    for key, array in one.params.items():
        assert (array != before[key]).any()
        np.testing.assert_allclose(other.params[key], array, rtol=1e-4, atol=1e-6)


def test_an_id_of_no_row_gives_zeros_and_moves_nothing(backend):
    layer = nn.Embedding(V, WIDTH)
    layer.params["E"] = backend.asarray(layer.params["E"])
    for x in (np.array([[0, -1, V]]), np.array([[0.2, np.nan, V]])):
        y, cache = layer.forward(backend.asarray(x))
        y, row = to_host(y), to_host(layer.params["E"])[0]
        assert not y[0, 1:].any() and (y[0, 0] == row).all()
        g = layer.param_grads(backend.asarray(np.ones((1, T, WIDTH))), cache)["E"].materialise()
        assert to_host(g).sum() == WIDTH


def test_fit_trains_a_network_on_ids():
    x, _ = data(200)
    layers = [nn.Embedding(V, WIDTH), nn.LSTM(WIDTH, WIDTH, states="last"), nn.Dense(WIDTH, 2)]
    model = fit(
        x,
        x[:, -1] > 1,
        epsilon=8,
        delta=1e-3,
        network=nn.Sequential(layers, (T,)),
        dataset_size=200,
        classes=(False, True),
        seed=0,
        quiet=True,
    )
    assert model.epsilon.upper <= 8 and set(model.predict(x)) <= {False, True}


def test_a_table_of_a_million_rows_is_clipped_and_summed_by_the_rows_that_are_met(rng):
    x, d = rng.integers(0, 10**6, (300, 6)), rng.standard_normal((300, 6, 2)).astype("float32")
    x[:, 3:] = x[:, :3]
    grad, small = (RowsGrad(ids, d, size) for ids, size in ((x, 10**6), (x % 50, 50)))
    tracemalloc.start()
    norms, total = grad.sq_norms_upper(), grad.weighted_sum(np.ones(300))
    assert tracemalloc.get_traced_memory()[1] < 4 * total.nbytes
    tracemalloc.stop()
    np.testing.assert_allclose(total.sum(axis=0), d.sum(axis=(0, 1), dtype=float), rtol=1e-9)
    assert (norms > 0).all() and np.count_nonzero(total) <= 2 * 900
    exact = (small.materialise().astype(float) ** 2).sum(axis=(1, 2))
    np.testing.assert_allclose(small.sq_norms(), exact, rtol=1e-5)
