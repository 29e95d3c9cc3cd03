"""The compiled twins against the plain functions of `backend`, and the way gradients take through them."""
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp.host import memory
from minidp.backend import outer_products
from minidp.grads import Explicit, Outer
from minidp.host.kernels import RUN
from minidp.mechanism import Sanitizer, flat_group
from minidp.audit import reference

KEYS = [("wide", "W"), ("tall", "W"), ("wide", "b")]


def draw(rng, *shape):
    return rng.standard_normal(shape).astype("float32")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_example_that_is_not_finite_has_a_norm_that_is_not(bad, rng):
    a, d = draw(rng, 3, 4), draw(rng, 3, 6)
    a[1, 2] = bad
    sq = outer_products(a, d)[1]
    assert np.isfinite(sq[[0, 2]]).all() and not np.isfinite(sq[1])


@settings(max_examples=20)
@given(o=st.sampled_from([1, 9, RUN + 3]), i=st.integers(1, 6), spread=st.floats(0, 12), seed=st.integers(0, 999))
def test_upper_norms_of_formed_gradients_are_never_below_the_true_ones(o, i, spread, seed):
    """Numbers of very different sizes, so that small squares vanish beside large ones."""
    rng = np.random.default_rng(seed)
    a, d = (draw(rng, 2, n) * np.exp2(-spread * rng.random((2, n))).astype("float32") for n in (i, o))
    formed = Outer(a, d).form("explicit")
    for g, upper in zip(formed.materialise(), formed.sq_norms_upper()):
        true = sum(Fraction(float(value)) ** 2 for value in g.ravel())
        assert true <= Fraction(float(upper)) <= true * Fraction(1001, 1000)


def _grads(rng, examples):
    factors = {("wide", "W"): (3, 600), ("tall", "W"): (600, 2)}
    grads = {key: Outer(draw(rng, examples, i), draw(rng, examples, o)) for key, (i, o) in factors.items()}
    grads["wide", "b"] = Explicit(draw(rng, examples, 600))
    return grads


@pytest.mark.parametrize("budget", [1, 20_000, 10**9])
def test_explicit_clipped_sum_in_float32_equals_a_loop(budget, rng, monkeypatch):
    """Both shapes of layer, several batches, parts of two examples, of a few, and of all."""
    monkeypatch.setattr(memory, "EXPLICIT_BYTES", budget)
    groups, batches, raw_sum = flat_group(KEYS, 20.0, 0.0), [_grads(rng, n) for n in (7, 1, 6)], None
    expected = {key: 0 for key in KEYS}
    for grads in batches:
        raw_sum = Sanitizer(groups, "explicit").add_clipped(grads, raw_sum)
        exact = {key: grad.materialise().astype("float64") for key, grad in grads.items()}
        for key, part in reference.clipped_sum(exact, groups).items():
            expected[key] = expected[key] + part
    for key in KEYS:
        np.testing.assert_allclose(raw_sum[key], expected[key], rtol=1e-4, atol=1e-5)
        assert raw_sum[key].dtype == np.float64
