"""The checkers are checked: check_layer and check_loss find each mistake; every layer shows that
right ones pass.
"""

import re

import numpy as np
import pytest

from minidp import nn
from minidp.audit import check_layer, check_loss
from tests.support.wrong import LAYERS, LOSSES, Scaled


class Stored(nn.Tanh):
    """Keeps what backward needs in the layer."""

    def compute_y(self, x, rng):
        self.kept = super().compute_y(x, rng)
        return self.kept

    def compute_dx(self, dy, kept):
        return super().compute_dx(
            dy, self.kept[1][: len(dy)] if len(self.kept[1]) >= len(dy) else dy
        )


class Shapeless(nn.Dense):
    """Says nothing of its output's shape, and checks nothing."""

    def forward(self, x, *, rng=None):
        return super().forward(x.astype("float64"))

    def shape_of_y(self, input_shape):
        return input_shape


class Inferring(nn.Flatten):
    """reshape with -1 on an array with a batch axis."""

    def compute_dx(self, dy, shape):
        return dy.reshape(-1, *shape[1:]) if len(dy) else dy.reshape(0, -1)


SHAPELESS = Shapeless(3, 2, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    "layer, words",
    [
        *LAYERS,
        (Stored(), "late and twice: .* keep what it needs in the cache"),
        (Scaled(lambda x: x.astype("float32")), "the output of float64 is float32"),
        (SHAPELESS, r"dense: the output: expected shape \(1, 3\), got \(1, 2\)"),
        (SHAPELESS, "integers: expected a DtypeError that names dense, nothing was raised"),
        (Inferring(), "FAIL  shapes, .*: ValueError: cannot reshape"),
    ],
)
def test_each_mistake_fails(layer, words):
    report = check_layer(layer, 3)
    assert not report and re.search(words, repr(report)), report


@pytest.mark.parametrize(
    "loss, words",
    [
        *LOSSES,
        (lambda z, t: (np.zeros(len(z), "float32"), 0 * z), "the loss of float64 is float32"),
    ],
)
def test_each_mistake_of_a_loss_fails(loss, words):
    report = check_loss(loss, 3, np.zeros((1, 3)))
    assert not report and re.search(words, repr(report)), report


def test_a_layer_is_left_as_it_is(rng):
    layer = nn.Dense(4, 2, rng=rng)
    before = layer.params["W"].copy()
    report = check_layer(layer, (4,))
    assert report and repr(report).count("\n") == len(report.rows) - 1 and layer.name is None
    np.testing.assert_array_equal(layer.params["W"], before)
