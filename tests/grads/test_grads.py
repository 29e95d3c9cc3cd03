"""Upper ends of the norms of sums of outer products, whose terms may cancel."""

from fractions import Fraction

import pytest

from minidp.grads import OuterSum
from tests.support.cancelling import SUMS, cancelling_sum


@pytest.mark.parametrize("case", SUMS)
def test_norms_of_sums_that_cancel_round_up(case, rng):
    a, d, exact = cancelling_sum(rng, *case)
    for upper, truth in zip(OuterSum(a, d).sq_norms_upper(), exact):
        assert Fraction(float(upper)) >= truth
