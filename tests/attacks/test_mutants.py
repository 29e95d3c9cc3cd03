"""Each promise of the arithmetic broken on purpose: an attack of this folder succeeds then, so that
it would be noticed.
"""

import os

import numpy as np
import pytest

from minidp.exact import cuts, whole
from minidp.exact.arithmetic import product
from minidp.grads import Explicit, Outer
from minidp.mechanism import Plan, Sanitizer, flat_group
from minidp.mechanism.rounding import DOUBLE
from minidp.streams import Draws, Streams, _Key
from tests.attacks import test_noise as noise
from tests.attacks import test_sums as sums

KEY = ("layer", "W")


def test_a_grid_for_the_noise_but_not_for_the_sum(monkeypatch):
    def add_normals(self, out, std, grid=0.0, place=None):
        noise = np.zeros(out.shape)
        draw(self, noise, std, grid, place)
        out += noise

    draw = Draws.add_normals
    noise.test_the_last_bits_of_every_value_have_one_law(0.001, "float64", "ordinary")
    monkeypatch.setattr(Draws, "add_normals", add_normals)
    with pytest.raises(AssertionError):
        noise.test_the_last_bits_of_every_value_have_one_law(0.001, "float64", "ordinary")


def bits_of_a_row(rng, x, W):
    """All results of a row of a product over permuted inner dimensions, which are the same sums in
    another order.
    """
    orders = [rng.permutation(x.shape[1]) for _ in range(20)]
    return {
        product(np.ascontiguousarray(x[:, order]), W[order], "exact").tobytes() for order in orders
    }


def test_one_bit_too_many_in_a_product(monkeypatch, rng):
    """Numbers that are nearly as large as a cut may leave them, odd in their last bits."""
    x, W = 1 - rng.random((1, 256)) / 999, 1 - rng.random((256, 3)) / 999
    precision = cuts.precision
    assert len(bits_of_a_row(rng, x, W)) == 1
    monkeypatch.setattr(
        cuts, "precision", lambda inner: (precision(inner)[0] + 1, precision(inner)[1])
    )
    assert len(bits_of_a_row(rng, x, W)) > 1


def longest(kind, sizes):
    """The longest contribution, over C, of gradients of as many equal numbers; of rows, how far one
    number is too large.
    """
    sanitizer, found = Sanitizer(flat_group([KEY], 1.0, 1.0), "factored", "exact"), [0.0]
    for size in sizes:
        if kind is Outer:
            total = sanitizer.add_clipped({KEY: Outer(*np.ones((2, 1, size)))})[KEY]
            found.append(np.linalg.norm(total) / 2.0**32)
        else:
            row, w = np.arange(1.0, size + 1), 0.7 * 2.0**20
            found.append((whole.WholeRows(row[None]).weighted_sum(np.full(1, w)) - w * row).max())
    return max(found)


@pytest.mark.parametrize("kind, most", [(Outer, 1), (Explicit, 0)])
def test_truncation_to_the_nearest_number(kind, most, monkeypatch):
    def contributions(X, scale):
        return np.rint(scale[:, None] * X)

    def add_whole(total, scale, G):
        return np.add(total, np.rint(scale @ G), out=total)

    assert longest(kind, range(2, 60)) <= most
    monkeypatch.setattr(whole, "contributions", contributions)
    monkeypatch.setattr(whole, "add_whole", add_whole)
    assert longest(kind, range(2, 60)) > most


def test_float32_between_batches(monkeypatch):
    def add(grads, weights, total, rows):
        for key, grad in grads.items():
            total[key] = np.float32(total.get(key, 0) + grad.weighted_sum(weights, rows))

    monkeypatch.setattr("minidp.mechanism.sanitizer.add_weighted_sums", add)
    with pytest.raises(AssertionError):
        sums.test_one_example_moves_the_sum_of_a_lot_by_at_most_what_is_charged(
            "factored", 8192, "ordinary"
        )


def test_sums_in_float32_that_are_not_charged(monkeypatch):
    plan = Plan(sums.PoissonSampler(0.1), Sanitizer(flat_group([KEY], 1.0, 1.0)), 1, 1900)
    assert 1 < sums.search_roundings(1900, 40)[0] <= plan.products.factor
    monkeypatch.setattr(Plan, "products", DOUBLE)
    assert sums.search_roundings(1900, 40)[0] > plan.products.factor


@pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning"
)  # Python 3.12 warns of any fork beside threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_key_that_is_kept_after_a_fork(monkeypatch):
    def child_draws_the_same():
        streams = Streams()
        receive, send = os.pipe()
        if not (child := os.fork()):
            os.write(send, streams.noise(0).words(4).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        return os.read(receive, 32) == streams.noise(0).words(4).tobytes()

    assert not child_draws_the_same()
    monkeypatch.setattr(_Key, "words", lambda self: self._words)
    assert child_draws_the_same()
