"""Windows: where they lie, and what they cut out of a view; the loops of convolutions and pools prove the rest."""
import numpy as np
import pytest

from minidp.nn.window import Window


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
