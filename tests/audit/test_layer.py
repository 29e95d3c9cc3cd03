"""The checkers are checked: check_layer, check_loss and the complex step find each mistake; every
layer shows that right ones pass.
"""

import re

import numpy as np
import pytest

from minidp import nn
from minidp.audit import check_layer, check_loss
from minidp.train.trial import COMPLEX_STEP, LayerTrial
from tests.support.wrong import LAYERS, LOSSES, Scaled

TOLERANCE = COMPLEX_STEP.tolerance


class Changed(nn.Tanh):
    """Tanh whose input gradient goes through a change."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def _gradient(self, dy, y, xp):
        return self.change(super()._gradient(dy, y, xp))


class ChangedDense(nn.Dense):
    """Dense whose per-example gradient of W goes through a change."""

    change = staticmethod(lambda a: a)

    def param_grads(self, dy, cache):
        grads = super().param_grads(dy, cache)
        grads["W"].a = self.change(grads["W"].a)
        return grads


def change_one(factor):
    def change(g):
        g = g.copy()
        g.flat[0] *= factor
        return g

    return change


WRONG = {
    "factor": lambda g: (1 + 1e-9) * g,
    "one entry": change_one(1 + 1e-9),
    "examples swapped": lambda g: g[[1, 0, 2, 3]],
    "not a number": lambda g: g * np.nan,
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_the_complex_step_finds_what_is_wrong_by_a_billionth(change, rng):
    x, dense = rng.uniform(-1, 1, (4, 3)), ChangedDense(3, 2, rng=rng, dtype="float64")
    dense.change = change
    for layer, wrong in ((Changed(change), "B1"), (dense, "P1")):
        trial = LayerTrial(layer, x, rng, how=COMPLEX_STEP)
        list(trial.derivatives())
        for label, (_, error) in trial.labelled().items():
            assert error > 10 * TOLERANCE if label == wrong else error < TOLERANCE


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
