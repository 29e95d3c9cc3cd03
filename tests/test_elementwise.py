"""exp, log and tanh: a number's result is a function of the number alone. test_equations measures their errors."""
import numpy as np
import pytest

from minidp import elementwise, nn
from minidp.backend import to_host

functions = pytest.mark.parametrize("name", ["exp", "log", "tanh"])
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


@functions
@dtypes
def test_bits_depend_neither_on_the_size_nor_on_the_place(name, dtype, rng):
    function, x = getattr(elementwise, name), np.abs(rng.standard_normal(1500) * 3).astype(dtype)
    y = function(x)
    for part in (slice(1), slice(7, 8), slice(3, 700), slice(255, 258), slice(None, None, 7), rng.permutation(x.size)):
        np.testing.assert_array_equal(function(x[part]), y[part])
    np.testing.assert_array_equal(function(x.reshape((30, 50)).T), y.reshape((30, 50)).T)


@functions
@dtypes
def test_the_ends_are_those_of_the_library(name, dtype, backend):
    x = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, -1e9, 1e9, 88.8, 709.8], dtype)
    with np.errstate(all="ignore"):
        expected, got = getattr(np, name)(x), getattr(elementwise, name)(backend.asarray(x))
    assert got.dtype == dtype
    np.testing.assert_allclose(to_host(got), expected, rtol=3e-7 if dtype == "float32" else 1e-15)


@functions
def test_float32_is_the_nearest_to_the_exact_number(name, rng):
    x = np.exp2(rng.uniform(-30, 6, 100_000)).astype("float32")
    exact = getattr(np, name)(x.astype(np.longdouble))
    np.testing.assert_array_equal(getattr(elementwise, name)(x), exact.astype("float32"))


def test_arrays_without_examples_or_classes():
    for layer in (nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.Softmax()):
        y, cache = layer.forward(np.zeros((0, 3), np.float32))
        assert y.shape == layer.backward(y, cache).shape == (0, 3)
    with pytest.raises(ValueError):
        nn.SoftmaxCrossEntropy()(np.zeros((2, 0), np.float32), np.zeros(2, int))
