"""Every library is given the same network."""
import itertools

import numpy as np
import pytest

from minidp.backend import Backend
from tools.bench import ours
from tools.bench.workloads import WORKLOADS, data, same_padding, slices


def test_the_floor_multiplies_the_matrices_of_every_layer():
    """Positions, inputs and outputs, worked out by hand from the networks' shapes."""
    assert {name: ours.products(WORKLOADS[name]) for name in ("W1", "W4", "W5")} == {
        "W1": [(1, 60, 1000), (1, 1000, 10)],
        "W4": [(576, 75, 64), (144, 1600, 64), (1, 2304, 384), (1, 384, 384), (1, 384, 10)],
        "W5": [(196, 64, 16), (25, 256, 32), (1, 512, 32), (1, 32, 10)]}


def test_a_large_lot_is_multiplied_in_the_trainers_batches(monkeypatch):
    """Numbers multiplied: of W1 both layers forward and to the weights, and the second layer to its input."""
    done, matmul, lot = [], np.matmul, 2 * 700 + 10
    monkeypatch.setattr(ours, "cache_examples", lambda network: 700)

    def counted(a, b, out):
        done.append(len(a) * a.shape[1] * b.shape[1])
        return matmul(a, b, out=out)

    monkeypatch.setattr(np, "matmul", counted)
    ours.make_floor(WORKLOADS["W1"].of_lot(lot), Backend.numpy())()
    assert sum(done) == lot * (2 * 60 * 1000 + 3 * 1000 * 10) and len(done) == 3 * 5


@pytest.mark.parametrize("size, kernel, stride, expected",
                         [(28, 8, 2, (3, 3)), (24, 5, 1, (2, 2)), (5, 2, 1, (0, 1)), (4, 2, 2, (0, 0))])
def test_padding_keeps_every_window(size, kernel, stride, expected):
    before, after = same_padding(size, kernel, stride)
    assert (before, after) == expected
    assert (size + before + after - kernel) // stride + 1 == -(-size // stride)


def test_data_are_of_the_asked_size_and_repeatable():
    workload = WORKLOADS["W1"].of_lot(100_000)
    x, y = data(workload)
    assert x.shape == (100_000, 60) and x.dtype == np.float32
    assert y.shape == (100_000,) and set(y) == set(range(10))
    assert np.isfinite(x).all() and x.std() == pytest.approx(1, abs=0.01)
    np.testing.assert_array_equal(x[:2000], data(WORKLOADS["W1"])[0][:2000])


def test_lots_of_peers_have_one_size_and_cover_the_data_set():
    workload = WORKLOADS["W1"].small()
    lots = list(itertools.islice(slices(workload), 4))
    assert {len(lot) for lot in lots} == {16}
    assert sorted(np.concatenate(lots)) == list(range(64))
