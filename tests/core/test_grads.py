"""Upper ends of the norms of sums of outer products, whose terms may cancel."""

from fractions import Fraction

import numpy as np
import pytest

from minidp.grads import OuterSum, forms

SUMS = [(2, 6, 1.0, 0.1), (2, 6, 0.0, 0.1), (2, 6, 0.0, 1e-4), (7, 40, 1e-3, 0), (20, 3, 1e-6, 0)]


def fractions(x):
    """An array of the same numbers as fractions."""
    return np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(x)


def cancelling_sum(rng, positions, inner, noise, left):
    """(a, d, exact squared norms): rows of a differ by `noise`, those of d are nearly opposite."""
    a = rng.standard_normal((8, 1, inner)) + noise * rng.standard_normal((8, positions, inner))
    d = rng.standard_normal((8, positions, 5))
    a, d = a.astype("float32"), (d - (1 - left) * d.mean(axis=1, keepdims=True)).astype("float32")
    exact = (fractions(a)[:, :, :, None] * fractions(d)[:, :, None, :]).sum(axis=1)
    return a, d, (exact**2).sum(axis=(1, 2))


@pytest.mark.parametrize("case", SUMS)
def test_norms_of_sums_that_cancel_round_up(case, rng):
    a, d, exact = cancelling_sum(rng, *case)
    for upper, truth in zip(OuterSum(a, d).sq_norms_upper(), exact):
        assert Fraction(float(upper)) >= truth


@pytest.mark.parametrize("rows, products", [(2**18, [512]), (2**22 + 2, [2048, 1])])
def test_chains_of_sums_over_positions_stay_within_what_is_charged(rows, products, monkeypatch):
    found = {}

    def counted(part, a, d, _):
        assert len(a) <= forms.MOST_ROWS
        found.setdefault(id(part), [part, 0])[1] += 1

    monkeypatch.setattr(forms, "add_products", counted)
    one = np.ones((2, rows // 2, 1), "float32")
    OuterSum(one, one).weighted_sum(np.ones(2))
    assert [count for _, count in found.values()] == products
