"""The three representations agree: this is where "explicit equals factored" is proved."""
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp.backend import keep_rows, to_host
from minidp.errors import BackendMismatchError, ParameterError, ShapeError
from minidp.grads import Explicit, Outer, OuterSum
from tests.support.guarded import guarded_backend


def make(kind, batch, t, i, o, rng, backend, dtype="float64"):
    def draw(*shape):
        return backend.asarray(rng.standard_normal(shape).astype(dtype))

    if kind is Explicit:
        return Explicit(draw(batch, i, o))
    if kind is Outer:
        return Outer(draw(batch, i), draw(batch, o))
    return OuterSum(draw(batch, t, i), draw(batch, t, o))


kinds = pytest.mark.parametrize("kind", [Explicit, Outer, OuterSum])
sizes = given(batch=st.integers(0, 4), t=st.integers(1, 4), i=st.integers(1, 5), o=st.integers(1, 5),
              seed=st.integers(0, 999))


@pytest.mark.parametrize("kind", [Outer, OuterSum])
def test_materialise_equals_a_loop(kind, backend, rng):
    grad = make(kind, 3, 4, 2, 5, rng, backend)
    a, d = to_host(grad.a), to_host(grad.d)
    if kind is Outer:
        a, d = a[:, None], d[:, None]
    expected = np.zeros((3, 2, 5))
    for b, t, i, o in np.ndindex(3, a.shape[1], 2, 5):
        expected[b, i, o] += a[b, t, i] * d[b, t, o]
    np.testing.assert_allclose(to_host(grad.materialise()), expected, rtol=1e-13)


@kinds
@settings(max_examples=25)
@sizes
def test_norms_and_sums_equal_the_materialised_ones(kind, backend, batch, t, i, o, seed):
    rng = np.random.default_rng(seed)
    grad = make(kind, batch, t, i, o, rng, backend)
    host = to_host(grad.materialise())
    w = rng.uniform(0, 1, batch)
    assert grad.n_examples == batch and grad.shape == (i, o)
    norms = (host**2).sum(axis=(1, 2))
    np.testing.assert_allclose(to_host(grad.sq_norms()), norms, rtol=1e-11, atol=1e-13)
    total = np.einsum("b,bio->io", w, host)
    for strategy in ("auto", "explicit", "factored"):
        got = to_host(grad.choose(strategy).weighted_sum(backend.asarray(w)))
        np.testing.assert_allclose(got, total, rtol=1e-12, atol=1e-13)


@kinds
@settings(max_examples=25)
@sizes
def test_upper_norms_are_never_below_the_true_ones(kind, backend, batch, t, i, o, seed):
    rng = np.random.default_rng(seed)
    grad = make(kind, batch, t, i, o, rng, backend, "float32")
    upper = to_host(grad.sq_norms_upper())
    for b in range(batch):
        exact = np.zeros((i, o), dtype=object)
        if kind is Explicit:
            exact = np.vectorize(Fraction, otypes=[object])(to_host(grad.g)[b].astype(float))
        else:
            a, d = (np.vectorize(Fraction, otypes=[object])(np.atleast_2d(to_host(f)[b]).astype(float))
                    for f in (grad.a, grad.d))
            exact = a.T @ d
        true = sum(value * value for value in exact.ravel())
        assert Fraction(float(upper[b])) >= true
        assert float(upper[b]) <= float(true) * 1.001 + 1e-3


def test_a_long_float32_sum_still_rounds_up(rng):
    """One large term and many that vanish beside it: a plain float32 sum may lose them all."""
    g = np.full((1, 4096), 2.0**-13, dtype=np.float32)
    g[0, 0] = 1.0
    exact = 1 + 4095 * 2.0**-26
    assert float(Explicit(g).sq_norms_upper()[0]) >= exact


@kinds
def test_rows_are_the_same_examples(kind, backend, rng):
    grad = make(kind, 5, 3, 2, 4, rng, backend)
    np.testing.assert_array_equal(to_host(grad.rows(1, 4).materialise()), to_host(grad.materialise())[1:4])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@kinds
def test_weight_zero_keeps_bad_numbers_out(kind, bad, backend, rng):
    grad = make(kind, 3, 2, 2, 4, rng, backend)
    good = to_host(grad.rows(1, 3).weighted_sum(backend.asarray(np.ones(2))))
    for name in ("g", "a", "d"):
        if hasattr(grad, name):
            host = to_host(getattr(grad, name)).copy()
            host[0] = bad
            setattr(grad, name, backend.asarray(host))
            got = grad.weighted_sum(backend.asarray(np.array([0.0, 1.0, 1.0])))
            np.testing.assert_allclose(to_host(got), good, rtol=1e-13)


def test_keep_rows_equals_where(backend, rng):
    x = rng.standard_normal((4, 3))
    for keep in (np.array([True] * 4), np.array([True, False, False, True])):
        got = keep_rows(backend.asarray(keep), backend.asarray(x))
        np.testing.assert_array_equal(to_host(got), np.where(keep[:, None], x, 0))


def test_auto_takes_the_cheaper_form_of_a_convolution(rng):
    """5x5, 64 to 64 at 196 positions: explicit is cheaper; few positions and a wide output: Gram."""
    wide = OuterSum(np.zeros((2, 196, 1600)), np.zeros((2, 196, 64)))
    short = OuterSum(np.zeros((2, 9, 400)), np.zeros((2, 9, 400)))
    assert wide.resolve("auto") == "explicit" and short.resolve("auto") == "factored"


def test_bad_factors_are_refused(rng):
    with pytest.raises(ShapeError, match="2 axes"):
        Outer(np.zeros((2, 3, 4)), np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="same number of examples"):
        Outer(np.zeros((2, 3)), np.zeros((3, 3)))
    with pytest.raises(ShapeError, match="same positions"):
        OuterSum(np.zeros((2, 3, 4)), np.zeros((2, 5, 4)))
    with pytest.raises(BackendMismatchError, match="one library"):
        Outer(np.zeros((2, 3)), guarded_backend().asarray(np.zeros((2, 3))))
    with pytest.raises(ParameterError, match="auto, explicit, factored"):
        Outer(np.zeros((2, 3)), np.zeros((2, 3))).choose("ghost")
