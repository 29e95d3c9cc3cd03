"""Upper norms of per-example gradients hold where terms cancel or vanish, and are tight."""
from fractions import Fraction

import numpy as np
from hypothesis import given, settings, strategies as st

from minidp.backend import to_host
from minidp.grads import CANCELLING, Explicit, OuterSum


def _exact_sq_norms(a, d):
    """The squared norms of factors that are multiples of 2^-20, in integers."""
    a, d = (np.ldexp(f.astype("float64"), 20) for f in (a, d))
    a, d = (np.vectorize(int, otypes=[object])(f) for f in (a, d))
    return [Fraction(int(((a[b].T @ d[b]) ** 2).sum()), 2**80) for b in range(len(a))]


@settings(max_examples=30)
@given(t=st.integers(2, 20), i=st.sampled_from([1, 3, 40, 300]), o=st.integers(1, 6),
       noise=st.sampled_from([0.0, 1e-6, 1e-3, 1.0]), seed=st.integers(0, 999))
def test_upper_norms_hold_where_terms_cancel(backend, t, i, o, noise, seed):
    """Rows of a that are nearly alike while those of d sum to nearly zero: what is left may be rounding alone."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((2, 1, i)) + noise * rng.standard_normal((2, t, i))
    d = rng.standard_normal((2, t, o))
    d -= d.mean(axis=1, keepdims=True)
    a, d = (np.round(f * 2**20).astype("float32") / np.float32(2**20) for f in (a, d))  # multiples of 2^-20
    upper = to_host(OuterSum(backend.asarray(a), backend.asarray(d)).sq_norms_upper())
    sizes = (np.sqrt((a.astype("float64") ** 2).sum(axis=2) * (d.astype("float64") ** 2).sum(axis=2))).sum(axis=1)
    for got, true, most in zip(upper, _exact_sq_norms(a, d), sizes**2):
        assert Fraction(float(got)) >= true
        assert float(got) <= max(float(true) + 2 * (i + o + 50) * 2**-52 * most, most / CANCELLING**2 * (1 + 1e-9))  # no looser


def test_upper_norms_of_random_factors_are_tight(rng):
    """As many positions as the experiments have: within 1e-10 of the norm."""
    a, d = rng.standard_normal((2, 400, 75)), rng.standard_normal((2, 400, 64))
    for dtype, room in (("float64", 1e-10), ("float32", 1e-10)):
        grad = OuterSum(a.astype(dtype), d.astype(dtype))
        assert np.sqrt(grad.sq_norms_upper() / grad.sq_norms()).max() < 1 + room


def test_a_long_float32_sum_still_rounds_up(rng):
    """One large term and many that vanish beside it: a plain float32 sum may lose them all."""
    g = np.full((1, 4096), 2.0**-13, dtype=np.float32)
    g[0, 0] = 1.0
    exact = 1 + 4095 * 2.0**-26
    assert float(Explicit(g).sq_norms_upper()[0]) >= exact
