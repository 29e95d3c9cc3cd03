"""Clip, sum, noise: the contract of one release."""

import numpy as np
import pytest

from minidp.backend import Backend, to_host
from minidp.grads import Explicit, Outer, OuterSum
from minidp.mechanism import Sanitizer, add_gaussian, flat_group, per_layer_groups
from minidp.mechanism.rounding import DOUBLE
from minidp.streams import Streams
from tests.support.guarded import guarded_backend

KEYS = [("conv", "W"), ("dense", "W"), ("dense", "b")]


def make_grads(rng, backend, batch):
    def draw(*shape):
        return backend.asarray(rng.standard_normal(shape))

    d = draw(batch, 3)
    return {
        KEYS[0]: OuterSum(draw(batch, 4, 2), draw(batch, 4, 5)),
        KEYS[1]: Outer(draw(batch, 4), d),
        KEYS[2]: Explicit(d),
    }


@pytest.mark.parametrize(
    "place, budget, strategy, factored, parts",
    [
        (guarded_backend(), 10**4, "explicit", set(), [9]),
        (guarded_backend(), 800, "auto", {KEYS[1]}, [9]),
        (guarded_backend(), 100, "auto", {KEYS[1]}, [2, 2, 2, 2, 1]),
        (Backend.numpy(), 10**4, "auto", {KEYS[1]}, [9]),
        (Backend.numpy(), 400, "explicit", set(), [3, 3, 3]),
    ],
)
def test_auto_forms_no_outer_product_and_what_does_not_fit_is_formed_in_parts(
    place, budget, strategy, factored, parts, rng, monkeypatch
):
    # 720 bytes of explicit gradients of the convolution, 864 of the dense layer
    grads = make_grads(rng, place, 9)
    expected, formed, materialise = (
        Sanitizer(flat_group(KEYS, 1.0, 0.0), "factored").add_clipped(grads),
        [],
        OuterSum.materialise,
    )
    monkeypatch.setattr("minidp.backend._budget", lambda xp, on_host: budget)
    monkeypatch.setattr(
        OuterSum, "materialise", lambda self: formed.append(self.n_examples) or materialise(self)
    )
    sanitizer = Sanitizer(flat_group(KEYS, 1.0, 0.0), strategy)
    found = sanitizer.add_clipped(grads)
    assert formed == parts
    forms = sanitizer.forms(grads, DOUBLE)
    assert {key for key in KEYS if forms[key] == "factored"} == factored
    for key in KEYS:
        np.testing.assert_allclose(
            to_host(found[key]), to_host(expected[key]), rtol=1e-12, atol=1e-13
        )


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("strategy", ["explicit", "factored"])
def test_an_example_that_is_not_finite_contributes_zero(bad, strategy, backend):
    sanitizer = Sanitizer(per_layer_groups(KEYS, 1.0, 0.0), strategy)

    def clipped(value):
        """The sums where the second example's gradients are products with this value."""
        grads = make_grads(np.random.default_rng(1), backend, 4)
        grads[KEYS[0]].a[1] = grads[KEYS[1]].a[1] = grads[KEYS[2]].g[1] = value
        with np.errstate(invalid="ignore", over="ignore"):
            return sanitizer.add_clipped(grads)

    found, expected = clipped(bad), clipped(0.0)
    for key in KEYS:
        np.testing.assert_allclose(to_host(found[key]), to_host(expected[key]), rtol=1e-12)


def test_no_noise_draws_nothing():
    raw, draws = np.ones(3), Streams(1).noise(0)
    np.testing.assert_array_equal(add_gaussian(raw, 0, draws), np.ones(3))
    assert draws.random() == Streams(1).noise(0).random()
