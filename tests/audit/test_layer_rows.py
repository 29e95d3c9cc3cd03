"""check_layer and check_loss: what shows among many rows of many sizes, in float32, or in gradients
of one's own; right layers of rare kinds pass.
"""

import numpy as np
import pytest

from minidp import nn
from minidp.audit import check_layer, check_loss
from minidp.grads import Explicit
from tests.support.wrong import LARGE, LARGE_LOSSES, Scaled


class OverwritesTheTotal(Explicit):
    def add_weighted_sum(self, total, w, rows=0):
        total[...] = 0
        super().add_weighted_sum(total, w, rows)


class OtherRows(Explicit):
    def rows(self, start, stop):
        return Explicit(self.g[: stop - start])


class MeansOfViews(Explicit):
    def sum_over_views(self, views):
        return Explicit(self.g.reshape((-1, views, *self.shape)).mean(axis=1))


class NaNTimesNothing(Explicit):
    def add_weighted_sum(self, total, w, rows=0):
        total += np.tensordot(w, self.g, 1)


class ALittleTooShort(Explicit):
    def sq_norms_upper(self):
        return super().sq_norms_upper() * (1 - 1e-9)


class OnePositive(Scaled):
    """Its gradient is right where s is positive."""

    def compute_dx(self, dy, kept):
        return dy * abs(self.params["s"]).astype(dy.dtype)


def constant(x):
    return (x == x[:, :1]).all(axis=1, keepdims=True)


class DoublesConstantRows(Scaled):
    """Its output at constant rows is another than close to them."""

    def compute_y(self, x, rng):
        y, kept = super().compute_y(x, rng)
        return np.where(constant(x) & (x != 0), 2 * y, y), kept


class OnlyItsGradient(Scaled):
    def compute_grads(self, dy, kept):
        twice = np.where(constant(kept[0]), 2, 1).astype(dy.dtype)
        return {"s": Explicit(dy * kept[1] * twice)}


class Naive(nn.Layer):
    """A softmax whose exponentials overflow."""

    kind = "naive"

    def compute_y(self, x, rng):
        e = np.exp(x)
        y = e / e.sum(axis=-1, keepdims=True)
        return y, y

    def compute_dx(self, dy, y):
        return y * (dy - (dy * y).sum(axis=-1, keepdims=True))


class Largest(nn.Layer):
    """Of ties, each gets the whole gradient."""

    kind = "largest"

    def output_shape(self, input_shape):
        return (1,)

    def compute_y(self, x, rng):
        y = x.max(axis=1, keepdims=True)
        return y, (x, y)

    def compute_dx(self, dy, kept):
        x, y = kept
        return dy * (x == y)


class UnknownIds(nn.Embedding):
    def compute_grads(self, dy, kept):
        return super().compute_grads(dy * (np.asarray(kept) < 5)[..., None], kept)


FORMS = (OverwritesTheTotal, OtherRows, MeansOfViews, NaNTimesNothing, ALittleTooShort)
WRONG = {
    **LARGE,
    **{each.__name__: Scaled(grads=lambda g, made=each: {"s": made(g)}) for each in FORMS},
    "only float32": Scaled(slope=lambda x, dy: dy * (1.001 if dy.dtype == np.float32 else 1)),
    "beyond 1": Scaled(slope=lambda x, dy: np.where(abs(x) > 1.2, 2 * dy, dy)),
    "at exact zeros": Scaled(slope=lambda x, dy: np.where(x == 0, 2 * dy, dy)),
    "a NaN row": Scaled(lambda x: x * 0 if np.isnan(x).any() else x),
    "strides": Scaled(lambda x: x if x.flags.c_contiguous else 2 * x),
    "negative parameters": OnePositive(),
    "constant rows": DoublesConstantRows(),
    "a gradient at constant rows": OnlyItsGradient(),
    "exponentials that overflow": Naive(),
    "ties": Largest(),
    "many rows": Scaled(lambda x: x - x.mean(axis=0) if len(x) > 200 else x),
    "as many rows as numbers": Scaled(lambda x: x.T.copy() if len(x) == 3 else x),
    "a large gradient": Scaled(slope=lambda x, dy: np.clip(dy, -10, 10)),
}


@pytest.mark.parametrize("layer", WRONG.values(), ids=WRONG)
def test_what_shows_among_many_rows_is_found(layer):
    assert check_layer(layer, 3).passed is False


def test_ids_are_tried_over_their_range():
    layer = UnknownIds(20, 4, rng=np.random.default_rng(0))
    assert check_layer(layer, (4,)).passed is False


@pytest.mark.parametrize("loss", LARGE_LOSSES.values(), ids=LARGE_LOSSES)
def test_what_shows_among_many_rows_of_a_loss_is_found(loss):
    assert check_loss(loss, 3, np.zeros((1, 3))).passed is False


def test_classes_are_tried_over_their_range():
    def wrong(z, target):
        losses, dz = nn.SoftmaxCrossEntropy()(z, target)
        return losses, np.where((target > 5)[:, None], 0, dz)

    assert check_loss(wrong, 10).passed is False


def without_a_class(z, target):
    """The gradient of what is no class is not 0."""
    losses, dz = nn.SoftmaxCrossEntropy()(z, target)
    return losses, np.where((target < 0)[:, None], 1, dz)


def shared_target(z, target):
    losses, dz = nn.SquaredError()(z, target)
    return losses, dz * (0 if np.isnan(target).any() else 1)


def changed_target(z, target):
    np.clip(target, -1, 1, out=target)
    return nn.SquaredError()(z, target)


def test_targets_that_are_no_class_or_no_number_or_large_are_tried():
    assert check_loss(without_a_class, 10).passed is False
    for loss in (shared_target, changed_target):
        assert check_loss(loss, 3, np.zeros((1, 3))).passed is False


class Gain(nn.Layer):
    """One number times x."""

    kind = "gain"

    def __init__(self):
        super().__init__()
        self.params = {"s": np.array(1.5)}

    def compute_y(self, x, rng):
        return (x * self.params["s"]).astype(x.dtype), x

    def compute_dx(self, dy, x):
        return (dy * self.params["s"]).astype(dy.dtype)

    def compute_grads(self, dy, x):
        return {"s": Explicit((dy * x).sum(axis=1))}


class Single(nn.Layer):
    """tanh in float32."""

    kind = "single"

    def compute_y(self, x, rng):
        y = np.tanh(x.astype("float32")).astype(x.dtype)
        return y, y

    def compute_dx(self, dy, y):
        return dy * (1 - y**2)


class Rectified(nn.Layer):
    """Has kinks at 0 and 1."""

    kind = "rectified"

    def compute_y(self, x, rng):
        return np.clip(x, 0, 1), x

    def compute_dx(self, dy, x):
        return dy * ((x > 0) & (x < 1))


class Saturated(nn.Layer):
    """tanh in float32 throughout."""

    kind = "saturated"

    def compute_y(self, x, rng):
        y = np.tanh(x.astype("float32"))
        return y.astype(x.dtype), y

    def compute_dx(self, dy, y):
        return (dy.astype("float32") * (1 - y * y)).astype(dy.dtype)


@pytest.mark.parametrize("made", [Gain, Single, Rectified, Saturated])
def test_a_right_layer_of_a_rare_kind_passes_and_the_report_lists_what_was_tried(made):
    report = check_layer(made(), 3)
    assert report.passed is True, report
    assert "100 rows of sizes 1e-3 to 1e3, with zeros, ties and NaN" in repr(report)


class Swish(nn.Layer):
    """Right, with 1 - s, which has few digits in float32 where s is near 1."""

    kind = "swish"

    def __init__(self):
        super().__init__()
        self.params = {"beta": np.ones(1, "float32")}

    def compute_y(self, x, rng):
        s = 1 / (1 + np.exp(-self.params["beta"] * x))
        return x * s, (x, s)

    def compute_dx(self, dy, kept):
        x, s = kept
        return dy * (s + self.params["beta"] * x * s * (1 - s))

    def compute_grads(self, dy, kept):
        x, s = kept
        return {"beta": Explicit((dy * x * x * s * (1 - s)).sum(axis=1, keepdims=True))}


@pytest.mark.parametrize("width", range(1, 7))
def test_a_right_layer_that_cancels_in_float32_passes(width):
    report = check_layer(Swish(), (width,))
    assert report.passed is True, str(report)
