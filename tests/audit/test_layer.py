"""check_layer and check_loss find each mistake, and say under which test and by how much."""
import re

import numpy as np
import pytest

from minidp import nn
from minidp.audit import check_layer, check_loss
from minidp.audit.layer import Report
from minidp.grads import Explicit, Outer
from minidp.nn.layer import Layer
from tests.support.wrong import Centre, InPlace, Running, Scale, Underestimated, WrongSlope, centred, doubled, shrinking


class Stored(nn.Tanh):
    """Keeps what backward needs in the layer."""

    def compute_y(self, x, rng):
        self.kept = super().compute_y(x, rng)
        return self.kept

    def compute_dx(self, dy, kept):
        return super().compute_dx(dy, self.kept[1][: len(dy)] if len(self.kept[1]) >= len(dy) else dy)


class Float32(nn.Tanh):
    def compute_y(self, x, rng):
        return super().compute_y(x.astype("float32"), rng)


class Shapeless(nn.Dense):
    """Says nothing of its output's shape, and checks nothing."""

    def forward(self, x, *, rng=None):
        return super().forward(x.astype("float64"))

    def shape_of_y(self, input_shape):
        return input_shape


class Inferring(nn.Flatten):
    """reshape with -1 on an array with a batch axis."""

    def compute_y(self, x, rng):
        return x.reshape(-1, *self.shape_of_y(x.shape[1:])), x.shape

    def compute_dx(self, dy, shape):
        return dy.reshape(-1, shape[1], shape[2]) if len(dy) else dy.reshape(0, -1)


class HalfSum(Explicit):
    def weighted_sum(self, w):
        return 0.5 * super().weighted_sum(w)


SHAPELESS = Shapeless(3, 2, rng=np.random.default_rng(0))


def finds(report, failed, words):
    assert not report
    assert any(failed in name and re.search(words, problem) for name, problem in report.rows), str(report)


@pytest.mark.parametrize("layer, failed, words", [
    (Centre(), "examples are independent", r"centre: the output of example \d changes with .* \(by 0\.\d+, of"),
    (Running(), "examples are independent", "cubed: the output of example"),
    (InPlace(), "examples are independent, arguments unchanged", "in place"),
    (WrongSlope(), "gradients", r"cubed: dx is not the derivative .*relative error 0\.\d"),
    (Scale(lambda x, dy: {"s": Explicit(1.01 * x * dy)}), "gradients", r"scale.s: the per-example .* error 0\.0\d+\)"),
    (Scale(lambda x, dy: {"s": Underestimated(x * dy)}), "norms and sums", "scale.s: squared norms, rounded up, of"),
    (Scale(lambda x, dy: {"s": HalfSum(x * dy)}), "norms and sums", "scale.s: weighted sum .* off by"),
    (Stored(), "backward called late", "keep what it needs in the cache"),
    (Float32(), "float64 float64", "y of float64 is float32"),
    (SHAPELESS, "shapes of y", r"output_shape says \(3,\) .* forward gives \(2,\)"),
    (SHAPELESS, "wrong inputs", "integers: expected a DtypeError, nothing was raised"),
], ids=lambda value: getattr(value, "kind", ""))
def test_each_mistake_fails_its_test(layer, failed, words):
    finds(check_layer(layer, 3), failed, words)


def test_what_raises_is_reported():
    report = check_layer(Inferring(), (2, 3))
    assert re.search("FAIL  batches of 0 and 1: ValueError: cannot reshape", str(report))


def test_layers_are_left_as_they_are_and_factors_pass(rng):
    class Own(Layer):
        kind = "own"

        def __init__(self):
            super().__init__()
            self.params = {"W": rng.standard_normal((4, 2)).astype("float32")}

        def shape_of_y(self, input_shape):
            return (2,)

        def compute_y(self, x, rng):
            return x @ self.params["W"], x

        def compute_dx(self, dy, x):
            return dy @ self.params["W"].T

        def compute_grads(self, dy, x):
            return {"W": Outer(x, dy)}

    layer = Own()
    before = layer.params["W"].copy()
    report = check_layer(layer, (4,))
    assert report and str(report).count("\n") == len(report.rows) - 1 and layer.name is None
    np.testing.assert_array_equal(layer.params["W"], before)


@pytest.mark.parametrize("loss, failed, words", [
    (shrinking, "no 1/B", "dz shrinks with the batch size: .* among 5"),
    (centred, "examples are independent", "changes"), (doubled, "dz", "not the derivative"),
    (lambda z, t: (np.zeros(len(z), "float32"), 0 * z), "float64 float64", "float64 gives float32, float64"),
])
def test_each_mistake_of_a_loss_fails_its_test(loss, failed, words):
    finds(check_loss(loss, 3, np.zeros((1, 3))), failed, words)


def test_a_report_is_true_if_nothing_failed():
    assert Report((("a", ""),)) and not Report((("a", ""), ("b", "bad")))
    assert str(Report((("b", "bad"),))) == "FAIL  b: bad"
