"""Upper ends of the norms of sums of outer products, whose terms may cancel."""

from fractions import Fraction

import numpy as np
import pytest

from minidp.grads import OuterSum, forms
from tests.support.cancelling import SUMS, cancelling_sum


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
