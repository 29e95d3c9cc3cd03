"""What is special to windows, convolution and pooling: every geometry, ties, patches in parts."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from minidp import kernels, nn
from minidp.audit.stated import windows
from minidp.backend import to_host
from minidp.errors import ShapeError
from minidp.host import memory
from minidp.nn.window import Window


@pytest.mark.parametrize("kind", ["conv", "max", "average"])
@settings(max_examples=40)
@given(
    window=st.tuples(*2 * [st.integers(1, 8)]),
    stride=st.tuples(*2 * [st.integers(1, 3)]),
    padding=st.sampled_from(["same", "valid", 0, 1, 4]),
    batch=st.integers(0, 2),
    height=st.integers(1, 8),
    width=st.integers(1, 8),
    channels=st.integers(1, 2),
    seed=st.integers(0, 999),
)
def test_every_geometry_equals_the_loop(
    kind, window, stride, padding, batch, height, width, channels, seed
):
    """Forward by the slow loop, the gradients by its differences, since all maps are piecewise
    linear in x and in W.
    """
    rng, margin = np.random.default_rng(seed), padding if isinstance(padding, int) else 0
    assume(kind == "conv" or margin < min(window))
    if kind == "conv":
        layer = nn.Conv2D(
            channels,
            2,
            window,
            rng=rng,
            stride=stride,
            padding=padding,
            bias=False,
            dtype="float64",
        )
    else:
        layer = (nn.MaxPool2D if kind == "max" else nn.AvgPool2D)(window, stride, padding)

    places = windows(window, stride, padding, (height, width))

    def slow(x, arrays):
        """Window by window, of what each place sees: NaN outside the image."""
        outside = np.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=np.nan)
        seen = np.array(
            [
                [outside[:, r, c] if min(r, c) >= 0 else outside[:, -1, -1] for r, c in w]
                for w in places
            ]
        )
        if kind == "conv":
            W = arrays["W"].reshape((-1, channels, 2))
            y = np.einsum("tpbc,pco->bto", np.nan_to_num(seen), W)
        else:
            y = (np.nanmax if kind == "max" else np.nanmean)(seen, axis=1).swapaxes(0, 1)
        return y.reshape((batch, *layer.output_shape(x.shape[1:])))

    x = (
        rng.permutation(batch * height * width * channels)
        .reshape((batch, height, width, channels))
        .astype(float)
    )
    if (
        padding != "same"
        and min(height + 2 * margin - window[0], width + 2 * margin - window[1]) < 0
    ):
        with pytest.raises(
            ShapeError, match=f"{layer.kind}: expected images of at least the window"
        ):
            layer.forward(x)
        assume(False)
    (y, cache), slow_y = layer.forward(x), slow(x, layer.params)
    np.testing.assert_allclose(y, slow_y, rtol=1e-12, atol=1e-12)
    # which keeps the integers' order
    dy, v = (
        rng.standard_normal(y.shape),
        rng.uniform(-0.25, 0.25, x.shape),
    )
    moved = ((slow(x + v, layer.params) - slow_y) * dy).sum()
    np.testing.assert_allclose((layer.backward(dy, cache) * v).sum(), moved, rtol=1e-9, atol=1e-9)
    for name, grad in layer.param_grads(dy, cache).items():
        V, g = rng.standard_normal(layer.params[name].shape), grad.materialise()
        assert g.shape == (batch, *V.shape)
        expected = (dy * slow(x, {name: V})).sum(axis=(1, 2, 3))
        np.testing.assert_allclose((g * V).sum(axis=(1, 2, 3, 4)), expected, rtol=1e-10, atol=1e-10)


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


def test_ties_give_the_gradient_to_the_first_maximum(backend):
    layer = nn.MaxPool2D(2, 1)
    y, cache = layer.forward(backend.asarray(np.ones((1, 3, 3, 1))))
    dx = layer.backward(backend.asarray(np.arange(1.0, 5.0).reshape((1, 2, 2, 1))), cache)
    np.testing.assert_array_equal(to_host(dx)[0, :, :, 0], [[1, 2, 0], [3, 4, 0], [0, 0, 0]])


def test_patches_of_an_array_that_is_not_contiguous(rng):
    x = rng.standard_normal((2, 4, 5, 6))
    window = Window((2, 3), (1, 1), "valid")
    for view in (x[..., ::2], x.transpose(0, 2, 1, 3), x[:, ::-1, 1:4]):
        np.testing.assert_array_equal(
            window.patches(view), window.patches(np.ascontiguousarray(view))
        )


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
    patches = rng.standard_normal((2, *counts, *size, images[3])).astype("float32")

    def computed():
        y, place = window.maxima(window.pad(x, -np.inf), counts)
        return y, place, window.spread(dy, place, images), window.fold(patches, images)

    with kernels.only(np, ()):
        expected = computed()
    for got, wanted in zip(computed(), expected):
        np.testing.assert_array_equal(got, wanted)
