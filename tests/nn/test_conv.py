"""What is special to the convolution: every geometry, patches in parts, its gradients in private training."""
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from minidp.host import memory
from minidp import nn
from minidp.audit import reference
from minidp.errors import ShapeError


@settings(max_examples=40)
@given(kernel=st.tuples(st.integers(1, 8), st.integers(1, 8)), stride=st.tuples(*2 * [st.integers(1, 3)]),
       batch=st.integers(0, 2), padding=st.sampled_from(["same", "valid", 0, 1, 4]),
       height=st.integers(1, 8), width=st.integers(1, 8), channels=st.integers(1, 2), seed=st.integers(0, 999))
def test_every_geometry_equals_the_loop(kernel, stride, batch, padding, height, width, channels, seed):
    """Forward by the slow loop; the gradients too, since the map is linear in x and in W."""
    rng = np.random.default_rng(seed)
    layer = nn.Conv2D(channels, 2, kernel, rng=rng, stride=stride, padding=padding, bias=False, dtype="float64")
    x, v = rng.standard_normal((2, batch, height, width, channels))
    margin = padding if isinstance(padding, int) else 0
    if padding != "same" and min(height + 2 * margin - kernel[0], width + 2 * margin - kernel[1]) < 0:
        with pytest.raises(ShapeError, match="conv: expected images of at least the window"):
            layer.forward(x)
        assume(False)
    slow = reference.conv2d(stride, padding)
    y, cache = layer.forward(x)
    np.testing.assert_allclose(y, slow(x, layer.params), rtol=1e-12, atol=1e-12)
    dy = rng.standard_normal(y.shape)
    np.testing.assert_allclose((layer.backward(dy, cache) * v).sum(), (dy * slow(v, layer.params)).sum(),
                               rtol=1e-10, atol=1e-10)
    V = rng.standard_normal(layer.params["W"].shape)
    per_example = layer.param_grads(dy, cache)["W"].materialise()
    assert per_example.shape == (batch, *V.shape)
    expected = (dy * slow(x, {"W": V})).sum(axis=(1, 2, 3))
    np.testing.assert_allclose((per_example * V).sum(axis=(1, 2, 3, 4)), expected, rtol=1e-10, atol=1e-10)


def test_patches_of_the_whole_batch_never_exist(rng):
    layer = nn.Conv2D(8, 8, 5, rng=rng)
    x = rng.standard_normal((256, 16, 16, 8)).astype("float32")
    y, cache = layer.forward(x)
    patches = x.nbytes * 25
    assert patches > 10 * memory.PATCH_BYTES
    grad = layer.param_grads(y, cache)["W"]
    w = np.ones(256, "float32")
    for work in (lambda: layer.forward(x), lambda: layer.backward(y, cache), lambda: grad.weighted_sum(w)):
        tracemalloc.start()
        work()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2 * y.nbytes + 3 * memory.PATCH_BYTES
