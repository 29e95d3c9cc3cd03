"""What is special to windows and pooling: every geometry, ties, padding."""
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from minidp import nn
from minidp.audit import reference
from minidp.backend import to_host
from minidp.errors import ShapeError
from minidp.nn.window import Window

def _mean(values):
    return sum(values) / len(values)


@pytest.mark.parametrize("cls, function", [(nn.MaxPool2D, max), (nn.AvgPool2D, _mean)], ids=["max", "average"])
@settings(max_examples=40)
@given(window=st.integers(1, 5), stride=st.sampled_from([None, 1, 2, 3]),
       padding=st.sampled_from(["valid", "same"]), height=st.integers(1, 8), width=st.integers(1, 8),
       batch=st.integers(0, 2), seed=st.integers(0, 999))
def test_every_geometry_equals_the_loop(cls, function, window, stride, padding, height, width, batch, seed):
    """Forward by the slow loop; the gradient by the loop at a nearby point: both maps are piecewise linear."""
    rng = np.random.default_rng(seed)
    layer = cls(window, stride, padding)
    x = rng.permutation(batch * height * width * 2).reshape((batch, height, width, 2)).astype(float)
    if padding == "valid" and min(height, width) < window:
        with pytest.raises(ShapeError, match="pool: expected images of at least the window"):
            layer.forward(x)
        assume(False)
    slow = reference.pool2d(function, window, stride or window, padding)
    y, cache = layer.forward(x)
    np.testing.assert_allclose(y, slow(x, {}), rtol=1e-13)
    dy, v = rng.standard_normal(y.shape), rng.uniform(-0.25, 0.25, x.shape)  # which keeps the integers' order
    moved = ((slow(x + v, {}) - slow(x, {})) * dy).sum()
    np.testing.assert_allclose((layer.backward(dy, cache) * v).sum(), moved, rtol=1e-9, atol=1e-9)


def test_ties_give_the_gradient_to_the_first_maximum(backend):
    layer = nn.MaxPool2D(2, 1)
    y, cache = layer.forward(backend.asarray(np.ones((1, 3, 3, 1))))
    dx = layer.backward(backend.asarray(np.arange(1.0, 5.0).reshape((1, 2, 2, 1))), cache)
    np.testing.assert_array_equal(to_host(dx)[0, :, :, 0], [[1, 2, 0], [3, 4, 0], [0, 0, 0]])


@pytest.mark.parametrize("n, size, stride, expected", [
    (28, 8, 2, (14, 3, 3)), (13, 2, 1, (13, 0, 1)), (24, 5, 1, (24, 2, 2)), (5, 2, 2, (3, 0, 1)),
    (4, 1, 3, (2, 0, 0)),
], ids=str)
def test_same_is_tensorflows_rule(n, size, stride, expected):
    """Worked by hand from ceil(n / stride) windows and the smaller half of the padding before."""
    assert Window((size, size), (stride, stride), "same").axis(n, 0) == expected


def test_patches_of_an_array_that_is_not_contiguous(rng):
    x = rng.standard_normal((2, 4, 5, 6))
    window = Window((2, 3), (1, 1), "valid")
    for view in (x[..., ::2], x.transpose(0, 2, 1, 3), x[:, ::-1, 1:4]):
        np.testing.assert_array_equal(window.patches(view), window.patches(np.ascontiguousarray(view)))
