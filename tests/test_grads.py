"""Upper ends of the norms of sums of outer products, whose terms may cancel."""

from fractions import Fraction

import pytest

from minidp.audit.checks.gradients import fractions
from minidp.grads import OuterSum


@pytest.mark.parametrize(
    "positions, inner, noise, left",
    [(2, 6, 1.0, 0.1), (2, 6, 0.0, 0.1), (2, 6, 0.0, 1e-4), (7, 40, 1e-3, 0), (20, 3, 1e-6, 0)],
)
def test_norms_of_sums_that_cancel_round_up(positions, inner, noise, left, rng):
    """Rows of a are alike but for `noise`, those of d nearly opposite: rounding may be all that is
    left.
    """
    a = rng.standard_normal((8, 1, inner)) + noise * rng.standard_normal((8, positions, inner))
    d = rng.standard_normal((8, positions, 5))
    a, d = a.astype("float32"), (d - (1 - left) * d.mean(axis=1, keepdims=True)).astype("float32")
    exact = (fractions(a)[:, :, :, None] * fractions(d)[:, :, None, :]).sum(axis=1)
    for upper, truth in zip(OuterSum(a, d).sq_norms_upper(), (exact**2).sum(axis=(1, 2))):
        assert Fraction(float(upper)) >= truth
