"""Every library is given the same network."""

import numpy as np

from minidp.backend import Backend
from tools.bench import ours
from tools.bench.workloads import WORKLOADS


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
