"""The checkers are checked: check_layer and check_loss find each mistake; every layer shows that
right ones pass.
"""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from minidp import nn
from minidp.audit import check_layer, check_loss
from minidp.audit import layer_tests as module
from minidp.grads import Explicit
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


class AtOne(Scaled):
    """Its gradient is right where s is 1 alone."""

    def __init__(self):
        super().__init__()
        self.params["s"] = np.ones(3)

    def compute_dx(self, dy, kept):
        return dy


class Shapeless(nn.Dense):
    """Says nothing of its output's shape, and checks nothing."""

    input_shape = (3,)

    def output_shape(self, input_shape):
        return input_shape


class Inferring(nn.Flatten):
    """reshape with -1 on an array with a batch axis."""

    kind = "inferring"

    def compute_dx(self, dy, shape):
        return dy.reshape(-1, *shape[1:]) if len(dy) else dy.reshape(0, -1)


class Misshapen(Scaled):
    """NumPy refuses its gradients."""

    kind = "misshapen"

    def compute_grads(self, dy, kept):
        return {"s": dy @ np.ones((7, 7))}


class Slope(nn.Layer):
    """A slope below 0 that is one trained number.

    Forward
        [F1]  y_bi = x_bi where x_bi > 0, else w x_bi

    Backward
        [B1]  dx_bi = dy_bi where x_bi > 0, else w dy_bi
        [P1]  dw_b = sum_i [x_bi <= 0] x_bi dy_bi
    """

    kind = "slope"

    def __init__(self):
        super().__init__()
        self.params = {"w": np.full((), 0.25)}

    def compute_y(self, x, rng):
        return np.where(x > 0, x, self.params["w"] * x), x

    def compute_dx(self, dy, x):
        return np.where(x > 0, dy, self.params["w"] * dy)

    def compute_grads(self, dy, x):
        return {"w": Explicit((np.minimum(x, 0) * dy).sum(axis=1))}


SHAPELESS = Shapeless(3, 2, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    "layer, words",
    [
        *LAYERS,
        (AtOne(), "FAIL  gradients are the derivatives: scaled: dx is not"),
        (Stored(), "late and twice: .* keep what it needs in the cache"),
        (Scaled(lambda x: x.astype("float32")), "the output of float64 is float32"),
        (SHAPELESS, r"dense: the output: expected shape \(1, 3\), got \(1, 2\)"),
        (SHAPELESS, "an axis too many: expected a ShapeError that names dense, got ValueError"),
        (Inferring(), r"inferring: compute_dx raised ValueError: .*\(0, 3\).*write reshape\(\(len"),
        (Misshapen(), r"misshapen: compute_grads raised ValueError: .* for dy of shape \(1, 3\);"),
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


def test_a_parameter_may_be_one_number_in_the_layer_and_in_its_card():
    report = check_layer(Slope(), 3)
    assert report and "ok    the card's gradients are derivatives of its output" in repr(report)


def test_a_loss_that_raises_is_named():
    def off(z, target):
        return z @ np.ones((9, 1)), z

    report = check_loss(off, 3)
    assert re.search(
        r"loss off raised ValueError: .* for z of shape \(5, 3\); expected", repr(report)
    )


def test_a_layer_is_left_as_it_is(rng):
    layer = nn.Dense(4, 2, rng=rng)
    before = layer.params["W"].copy()
    report = check_layer(layer, (4,))
    assert report and repr(report).count("\n") == len(report.rows) - 1 and layer.name is None
    np.testing.assert_array_equal(layer.params["W"], before)


RIGHT = {"F1": "y_bto = sum_i x_bti W_io + b_o", "B1": "dx_bti = sum_o dy_bto W_io"}


@pytest.mark.parametrize(
    "label, text, said",
    [
        ("B1", "gx_bti = -dy_bti", "compared with nothing; the code gives y, dx, dW, db"),
        ("B1", "dx_bti = dy_bto * W_io", r'cannot be read from "\* W_io" on: products are written'),
        ("B1", "dx_bti = dy_bto W_io", "the index o is not on the left and not summed"),
        ("F1", "y_bto = sum_i x_bti V_io", "V_io is neither given nor defined; given: W, b"),
        ("F1", "y_bto = relu(x_bt) W_0o", "relu is no function; there are exp"),
        ("F1", "y_bto = x_bt W_0o", "an axis has an index on one side only"),
        (
            "B1",
            "dx_bti = 2 sum_o dy_bto W_io",
            r"\[B1\] .* differs .*\[B1\] .* is not the derivative",
        ),
    ],
)
def test_an_equation_of_a_card_that_is_wrong_or_measures_nothing_fails(
    label, text, said, monkeypatch, rng
):
    card = SimpleNamespace(labels={**RIGHT, label: text})
    monkeypatch.setattr(module, "card_of_class", lambda cls: (card, []))
    report = check_layer(nn.Dense(3, 2, rng=rng), 3)
    assert not report and re.search(said, repr(report).replace("\n", " ")), report


def test_what_an_equation_uses_and_what_is_in_words_pass(monkeypatch, rng):
    texts = {
        "F1": "y_bto = m_bto + b_o",
        "F2": "m_bto = sum_i x_bti W_io",
        "B1": "in words: as above",
    }
    monkeypatch.setattr(module, "card_of_class", lambda cls: (SimpleNamespace(labels=texts), []))
    report = check_layer(nn.Dense(3, 2, rng=rng), 3)
    fewer = "the card has fewer gradients [P1], [P2], ... than there are parameters"
    assert report and report.note == f"{fewer}; [B1] is in words: not evaluated"


def test_what_a_model_file_would_lack_is_a_note(rng):
    class Forgetful(nn.Dense):
        def __init__(self, rng, width):
            super().__init__(3, 2, rng=rng)
            self.V = rng.standard_normal((2, 2))

    note = check_layer(Forgetful(rng, 4), 3).note
    assert "the array V is neither in params" in note and "cannot hold this layer" in note
