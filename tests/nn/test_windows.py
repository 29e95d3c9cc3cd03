"""What is special to windows, convolution and pooling: every geometry, ties, patches in parts."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp import compiled, nn
from minidp.audit import check_layer
from minidp.errors import ParameterError, ShapeError
from minidp.host import memory
from minidp.nn.window import Window
from tests.host.test_kernels import cut_and_folded, pooled


@pytest.mark.parametrize("kind", [nn.Conv2D, nn.MaxPool2D, nn.AvgPool2D])
@settings(max_examples=30)
@given(
    window=st.tuples(*2 * [st.integers(1, 4)]),
    stride=st.tuples(*2 * [st.integers(1, 3)]),
    padding=st.sampled_from(["same", "valid", 0, 1, 2, (0, 2)]),
    images=st.tuples(*2 * [st.integers(1, 5)], st.integers(1, 2)),
)
def test_every_geometry_obeys_the_card(kind, window, stride, padding, images):
    channels = (images[2], 2) if kind is nn.Conv2D else ()
    try:
        layer = kind(*channels, window, stride=stride, padding=padding)
        layer.output_shape(images)
    except (ParameterError, ShapeError) as error:
        assert "would see no pixel" in str(error) or "of at least the window" in str(error)
        assert padding != "same"
        return
    report = check_layer(layer, images)
    assert report, str(report)


def test_patches_of_the_whole_batch_never_exist(rng):
    layer = nn.Conv2D(8, 8, 5, rng=rng)
    x = rng.standard_normal((256, 16, 16, 8)).astype("float32")
    y, cache = layer.forward(x)
    patches = x.nbytes * 25
    assert patches > 10 * memory.PATCH_BYTES
    grad = layer.param_grads(y, cache)["W"]
    w = np.ones(256, "float32")
    for work in (
        lambda: layer.forward(x),
        lambda: layer.backward(y, cache),
        lambda: grad.weighted_sum(w),
    ):
        work()  # loads its kernels
        tracemalloc.start()
        work()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2 * y.nbytes + 3 * memory.PATCH_BYTES


@pytest.mark.parametrize("seed", range(40))
def test_compiled_windows_give_the_bits_of_their_definitions(seed):
    rng = np.random.default_rng(seed)
    size, stride = (tuple(rng.integers(1, 4, 2).tolist()) for _ in range(2))
    window = Window(size, stride, ["valid", "same", 1][seed % 3 if min(size) > 1 else 0])
    images = (2, *rng.integers(3, 8, 2).tolist(), int(rng.integers(1, 6)))
    x = rng.integers(-2, 3, images).astype("float32")  # with ties
    x[rng.random(images) < seed % 2 * 0.05] = rng.choice([np.nan, np.inf, -np.inf])
    counts = window.output("test", images[1:])
    dy = rng.standard_normal((2, *counts, images[3])).astype("float32")
    seen = rng.standard_normal((2, *counts, *size, images[3])).astype("float32")
    with compiled.only(np, ()):
        expected = *pooled(x, dy, window), *cut_and_folded(x, seen, window)
    turned = np.asfortranarray(x)  # not contiguous
    found = *pooled(x, dy, window), *cut_and_folded(turned, seen, window)
    for got, wanted in zip(found, expected):
        np.testing.assert_array_equal(got, wanted)
