"""The compiled twins against the plain functions of `backend`, and the way gradients take through them."""
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp.grads import Outer
from minidp.host.kernels import RUN


def draw(rng, *shape):
    return rng.standard_normal(shape).astype("float32")


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
