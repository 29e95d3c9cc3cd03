import math

import numpy as np
import pytest
from features.random_features import RandomFeatures, cosines

from minidp.backend import to_host
from minidp.errors import DtypeError, ParameterError, ShapeError


@pytest.mark.parametrize("dtype, rtol, atol", [("float64", 1e-12, 0), ("float32", 0, 1e-5)])
def test_equals_the_definition(dtype, rtol, atol, backend, rng):
    features, x = RandomFeatures(3, 5, 2.0, seed=4), rng.standard_normal((2, 3))
    again = np.random.default_rng(4)
    w = again.standard_normal((3, 5), dtype=np.float32) / np.float32(2)
    p = again.uniform(0, 2 * math.pi, 5)
    got = features(backend.asarray(x, dtype=dtype))
    np.testing.assert_allclose(to_host(got), math.sqrt(2 / 5) * np.cos(x @ w + p), rtol=rtol, atol=atol)
    assert got.dtype == dtype


def test_cosines_are_close_whatever_the_angle(rng):
    for scale in (1, 100, 1e6):
        x = rng.uniform(-scale, scale, 10_000)
        assert np.abs(cosines(x) - np.cos(x)).max() <= 2.0**-51 * (1 + scale)
        assert np.abs(cosines(x.astype("float32")) - np.cos(x.astype("float32").astype(float))).max() <= 2.0**-24


def test_exact_features_of_an_example_are_its_own(rng):
    features, x = RandomFeatures(100, 333, 2.0, arithmetic="exact"), rng.standard_normal((300, 100)).astype("float32")
    whole, order = features(x), rng.permutation(300)
    for rows in (order[:1], order[:7], order):
        assert features(x[rows]).tobytes() == whole[rows].tobytes()
    np.testing.assert_allclose(whole, RandomFeatures(100, 333, 2.0)(x), atol=2e-5)


def test_wrong_settings_and_inputs_are_refused():
    for width in (0.0, math.inf, 1e-39):
        with pytest.raises(ParameterError, match=f"width={width}"):
            RandomFeatures(1, 1, width)
    with pytest.raises(ShapeError, match=r"random features: expected x of shape \(B, 6\), got \(2, 7\)"):
        RandomFeatures(6, 8, 1.0)(np.zeros((2, 7)))
    with pytest.raises(DtypeError, match="random features"):
        RandomFeatures(6, 8, 1.0)(np.zeros((2, 6), int))
