import math

import numpy as np
import pytest
from features.random_features import RandomFeatures

from minidp.backend import to_host
from minidp.errors import DtypeError, ParameterError, ShapeError


def test_equals_the_definition(rng):
    features, x = RandomFeatures(3, 5, 2.0, seed=4), rng.standard_normal((2, 3))
    again = np.random.default_rng(4)
    w = again.standard_normal((3, 5), dtype=np.float32) / np.float32(2)
    p = again.uniform(0, 2 * math.pi, 5)
    for b, z in enumerate(features(x)):
        for d in range(5):
            angle = sum(x[b, i] * float(w[i, d]) for i in range(3)) + p[d]
            assert z[d] == pytest.approx(math.sqrt(2 / 5) * math.cos(angle), rel=1e-12)


@pytest.mark.parametrize("width", [0.5, 3.0])
def test_inner_products_are_those_of_the_gaussian_kernel(width, rng):
    x, count = rng.standard_normal((12, 4)), 100_000
    z = RandomFeatures(4, count, width)(x)
    distances = ((x[:, None] - x) ** 2).sum(axis=2)
    assert np.abs(z @ z.T - np.exp(-distances / (2 * width**2))).max() < 4.5 / math.sqrt(count)
    assert ((z**2).sum(axis=1) <= 2).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_backend_and_dtype(dtype, backend, rng):
    features, x = RandomFeatures(6, 8, 1.5), rng.standard_normal((5, 6))
    z = features(backend.asarray(x, dtype=dtype))
    assert z.dtype == dtype
    np.testing.assert_allclose(to_host(z), features(x), atol=1e-5)


def test_examples_do_not_meet_and_none_is_fine(rng):
    features, x = RandomFeatures(6, 8, 1.0), rng.standard_normal((5, 6))
    z = features(x)
    x[0] += 1
    np.testing.assert_array_equal(features(x)[1:], z[1:])
    assert features(x[:0]).shape == (0, 8)


@pytest.mark.parametrize("arguments, message", [
    ((0, 1, 1.0), "inputs=0"), ((1, 0, 1.0), "features=0"), ((1, 1, 0.0), "width=0.0"),
    ((1, 1, math.inf), "width=inf"), ((1, 1, 1e-39), "width=1e-39")])
def test_settings_out_of_range_are_refused(arguments, message):
    with pytest.raises(ParameterError) as caught:
        RandomFeatures(*arguments)
    assert message in str(caught.value)


def test_wrong_inputs_are_refused():
    features = RandomFeatures(6, 8, 1.0)
    with pytest.raises(ShapeError, match=r"random features: expected x of shape \(B, 6\), got \(2, 7\)"):
        features(np.zeros((2, 7)))
    with pytest.raises(DtypeError, match="random features"):
        features(np.zeros((2, 6), int))
