"""Windows: where they lie, what they cut out, and that putting back is the adjoint of cutting out."""
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from minidp.errors import ParameterError, ShapeError
from minidp.nn.window import Window, pair

windows = st.builds(Window, st.tuples(*[st.integers(1, 8)] * 2), st.tuples(*[st.integers(1, 3)] * 2),
                    st.sampled_from(["same", "valid", 0, 1, 3]))
images = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 2))


def output(window, shape):
    """The counts of windows, of an image that has any."""
    try:
        return window.output("test", shape)
    except ShapeError:
        assume(False)


@pytest.mark.parametrize("n, size, stride, expected", [
    (28, 8, 2, (14, 3, 3)), (13, 2, 1, (13, 0, 1)), (24, 5, 1, (24, 2, 2)), (5, 2, 2, (3, 0, 1)),
    (4, 1, 3, (2, 0, 0)),
], ids=str)
def test_same_is_tensorflows_rule(n, size, stride, expected):
    """Worked by hand from ceil(n / stride) windows and the smaller half of the padding before."""
    assert Window((size, size), (stride, stride), "same").axis(n, 0) == expected


@settings(max_examples=60)
@given(windows, images, st.integers(0, 99))
def test_patches_hold_what_a_loop_sees(window, shape, seed):
    output(window, shape)
    x = np.random.default_rng(seed).standard_normal((2, *shape))
    got = window.patches(x)
    (rows, top, _), (columns, left, _) = window.axis(shape[0], 0), window.axis(shape[1], 1)
    kh, kw = window.size
    seen = got.reshape((2, rows, columns, kh, kw, shape[2]))
    for i, j, k, l in np.ndindex(rows, columns, kh, kw):
        r, c = i * window.stride[0] - top + k, j * window.stride[1] - left + l
        inside = 0 <= r < shape[0] and 0 <= c < shape[1]
        np.testing.assert_array_equal(seen[:, i, j, k, l], x[:, r, c] if inside else np.zeros((2, shape[2])))


@settings(max_examples=60)
@given(windows, images, st.integers(0, 99))
def test_fold_is_the_adjoint_of_patches(window, shape, seed):
    counts = output(window, shape)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, *shape))
    patches = window.patches(x)
    p = rng.standard_normal(patches.shape)
    back = window.fold(p.reshape((2, *counts, *window.size, shape[2])), x.shape)
    assert back.shape == x.shape
    assert math.isclose((patches * p).sum(), (x * back).sum(), rel_tol=1e-10, abs_tol=1e-10)


def test_patches_of_an_array_that_is_not_contiguous(rng):
    x = rng.standard_normal((2, 4, 5, 6))
    window = Window((2, 3), (1, 1), "valid")
    for view in (x[..., ::2], x.transpose(0, 2, 1, 3), x[:, ::-1, 1:4]):
        np.testing.assert_array_equal(window.patches(view), window.patches(np.ascontiguousarray(view)))


def test_wrong_sizes_are_refused():
    assert pair(stride=2) == pair(stride=(2, 2)) == (2, 2)
    for wrong in (0, -1, 1.5, True, (1, 2, 3), "3", (2, 0)):
        with pytest.raises(ParameterError, match="kernel"):
            pair(kernel=wrong)
    for wrong in ("full", -1, 1.5, None):
        with pytest.raises(ParameterError, match="padding"):
            Window((2, 2), (1, 1), wrong)
    with pytest.raises(ShapeError, match=r"conv1: expected images of at least the window \(3, 3\)"):
        Window((3, 3), (1, 1), "valid").output("conv1", (2, 5, 1))
