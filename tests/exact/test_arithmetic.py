"""Exact arithmetic and functions of our own: an example's results have bits of their own, wherever
it lies.
"""

import numpy as np
import pytest

from datasets.augment import distort, draw_distortions, standardise_images
from minidp import nn
from minidp.audit.cases import LAYERS, LOSSES
from minidp.backend import to_host
from minidp.exact import elementwise
from minidp.host.blas import thread_functions
from minidp.mechanism.before.pca import unit_rows
from minidp.streams import Streams

SIZES = (1, 2, 3, 64, 4096)


@pytest.fixture(params=(1, 4))
def threads(request):
    """Threads of BLAS."""
    get, set_ = thread_functions() or pytest.skip("no OpenBLAS")
    before = get()
    set_(request.param)
    yield request.param
    set_(before)


def wide(rng, dtype):
    """Layers whose products BLAS splits among its threads and rounds by the number of rows, with
    their shapes.
    """
    return (
        (nn.Dense(300, 200, rng=rng, dtype=dtype), (300,)),
        (nn.Conv2D(8, 40, 5, rng=rng, dtype=dtype), (9, 9, 8)),
        (nn.Conv2D(8, 40, 4, stride=2, rng=rng, dtype=dtype), (9, 9, 8)),
    )


def results(layer, x, dy):
    """The output, dx and the factors of all gradients."""
    y, cache = layer.forward(x)
    factors = [
        each for grad in layer.param_grads(dy, cache).values() for each in vars(grad).values()
    ]
    return [
        y,
        layer.backward(dy, cache),
        *(each for each in factors if getattr(each, "shape", ())[:1] == x.shape[:1]),
    ]


def assert_own_bits(function, rng, *arrays):
    """Rows of each result are the same alone, in smaller batches, in another order and beside other
    rows.
    """
    whole, order = function(*arrays), rng.permutation(len(arrays[0]))
    batches = [order[: size // 2 + 1] for size in SIZES if size < len(order)] + [order]
    for rows in batches:
        for expected, found in zip(whole, function(*(each[rows] for each in arrays)), strict=True):
            assert expected[rows].tobytes() == found.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_every_layer_gives_an_example_its_own_bits(case, dtype, rng):
    layer = case.make(rng, dtype)
    layer.arithmetic = "exact"
    x = case.input(rng, 4096, dtype)
    dy = rng.uniform(-1, 1, (4096, *layer.output_shape(case.shape))).astype(dtype)
    assert_own_bits(lambda x, dy: results(layer, x, dy), rng, x, dy)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", LOSSES, ids=lambda case: case.name)
def test_every_loss_gives_an_example_its_own_bits(case, dtype, rng):
    z, target = rng.uniform(-3, 3, (4096, *case.shape)), case.target(rng, 4096, case.shape)
    target = target.astype(dtype) if target.dtype.kind == "f" else target
    assert_own_bits(case.loss, rng, z.astype(dtype), target)


def test_wide_layers_give_an_example_its_own_bits_on_any_number_of_threads(threads, rng):
    alone = np.random.default_rng(5)
    for dtype in ("float32", "float64"):
        for layer, shape in wide(alone, dtype):
            layer.arithmetic = "exact"
            x = alone.standard_normal((70, *shape)).astype(dtype)
            dy = alone.standard_normal((70, *layer.output_shape(shape))).astype(dtype)
            assert_own_bits(lambda x, dy: results(layer, x, dy), rng, x, dy)


def test_what_is_computed_before_the_first_layer_gives_an_example_its_own_bits(rng):
    images, views = (
        rng.integers(0, 256, (300, 32, 32, 3)).astype("uint8"),
        draw_distortions(300, Streams(1).views(0)),
    )
    assert_own_bits(
        lambda x, at: [standardise_images(distort(x, views.take(at)))], rng, images, np.arange(300)
    )
    assert_own_bits(lambda x: [unit_rows(x)], rng, images.reshape(300, 3072) / np.float32(255))


@pytest.mark.parametrize("name", ["exp", "log", "tanh"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_ends_are_those_of_the_library(name, dtype, backend):
    x = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, -1e9, 1e9, 88.8, 709.8], dtype)
    with np.errstate(all="ignore"):
        expected, got = getattr(np, name)(x), getattr(elementwise, name)(backend.asarray(x))
    assert got.dtype == dtype
    np.testing.assert_allclose(to_host(got), expected, rtol=3e-7 if dtype == "float32" else 1e-15)
