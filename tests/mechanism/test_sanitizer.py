"""Clip, sum, noise: the contract of one release."""
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp.audit import reference
from minidp.backend import Backend, to_host
from minidp.errors import ParameterError, ShapeError
from minidp.grads import Explicit, Outer, OuterSum
from minidp.mechanism import ClipGroup, Sanitizer, flat_group, per_layer_groups
from minidp.privacy.events import Gaussian, JointGaussian, NeighbouringRelation
from minidp.host import memory

KEYS = [("conv", "W"), ("dense", "W"), ("dense", "b")]
LAYOUTS = {"flat": flat_group, "per-layer": per_layer_groups}


def make_grads(rng, backend, batch, scale=1.0, dtype="float64"):
    def draw(*shape):
        return backend.asarray((rng.standard_normal(shape) * scale).astype(dtype))

    d = draw(batch, 3)
    return {KEYS[0]: OuterSum(draw(batch, 4, 2), draw(batch, 4, 5)), KEYS[1]: Outer(draw(batch, 4), d),
            KEYS[2]: Explicit(d)}


def on_host(grads):
    return {key: to_host(grad.materialise()) for key, grad in grads.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("strategy", ["auto", "explicit", "factored"])
@settings(max_examples=15)
@given(batch=st.integers(0, 5), clip_norm=st.floats(0.05, 20), seed=st.integers(0, 999))
def test_clipped_sum_equals_a_loop(layout, strategy, backend, batch, clip_norm, seed):
    grads = make_grads(np.random.default_rng(seed), backend, batch)
    groups = LAYOUTS[layout](KEYS, clip_norm, 0.0)
    got = Sanitizer(groups, strategy).add_clipped(grads)
    expected = reference.clipped_sum(on_host(grads), groups)
    for key in KEYS:
        np.testing.assert_allclose(to_host(got[key]), expected[key], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("batches", [1, 2, 7])
def test_any_batches_give_the_same_sum(batches, backend, rng):
    grads = make_grads(rng, backend, 14)
    sanitizer = Sanitizer(per_layer_groups(KEYS, 1.5, 0.0))
    whole, raw_sum = sanitizer.add_clipped(grads), None
    for start in range(0, 14, 14 // batches):
        part = {key: grad.rows(start, start + 14 // batches) for key, grad in grads.items()}
        raw_sum = sanitizer.add_clipped(part, raw_sum)
    for key in KEYS:
        np.testing.assert_allclose(to_host(raw_sum[key]), to_host(whole[key]), rtol=1e-12, atol=1e-13)


def test_explicit_gradients_are_formed_in_parts_that_fit_the_cache(rng, monkeypatch):
    grads = make_grads(rng, Backend.numpy(), 9)
    sanitizer = Sanitizer(flat_group(KEYS, 1.0, 0.0), "explicit")
    whole = sanitizer.add_clipped(grads)
    formed = []
    explicit = Outer._explicit
    monkeypatch.setattr(Outer, "_explicit", lambda self: formed.append(self.n_examples) or explicit(self))
    monkeypatch.setattr(memory, "EXPLICIT_BYTES", 400)
    parts = sanitizer.add_clipped(grads)
    assert formed == [2, 2, 2, 2, 1]  # 22 numbers of 8 bytes each: two examples in 400 bytes
    for key in KEYS:
        np.testing.assert_allclose(parts[key], whole[key], rtol=1e-12, atol=1e-13)


def test_infinite_clip_and_no_noise_is_a_plain_sum(backend, rng):
    grads = make_grads(rng, backend, 6, scale=100)
    sanitizer = Sanitizer(flat_group(KEYS, math.inf, 0.0))
    released = sanitizer.release(sanitizer.add_clipped(grads), rng)
    for key, host in on_host(grads).items():
        np.testing.assert_allclose(to_host(released[key]), host.sum(axis=0), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("strategy", ["explicit", "factored"])
def test_an_example_that_is_not_finite_contributes_zero(bad, strategy, backend, rng):
    grads = make_grads(rng, backend, 4)
    d = to_host(grads[KEYS[2]].g).copy()
    d[1] = bad
    a = to_host(grads[KEYS[0]].a).copy()
    a[1] = bad
    grads = {KEYS[0]: OuterSum(backend.asarray(a), grads[KEYS[0]].d),
             KEYS[1]: Outer(grads[KEYS[1]].a, backend.asarray(d)), KEYS[2]: Explicit(backend.asarray(d))}
    sanitizer = Sanitizer(per_layer_groups(KEYS, 1.0, 0.0), strategy)
    with np.errstate(invalid="ignore", over="ignore"):
        got = sanitizer.add_clipped(grads)
    rest = [grads[key].rows(0, 1) for key in KEYS], [grads[key].rows(2, 4) for key in KEYS]
    expected = None
    for part in rest:
        expected = sanitizer.add_clipped(dict(zip(KEYS, part)), expected)
    for key in KEYS:
        np.testing.assert_allclose(to_host(got[key]), to_host(expected[key]), rtol=1e-12, atol=1e-13)


def test_release_adds_noise_of_each_group(rng):
    groups = [ClipGroup("a", [KEYS[0]], 2.0, 3.0), ClipGroup("b", KEYS[1:], 0.5, 1.0)]
    raw_sum = {key: np.zeros((300, 100)) for key in KEYS}
    released = Sanitizer(groups).release(raw_sum, rng)
    stds = [released[key].std() for key in KEYS]
    np.testing.assert_allclose(stds, [6.0, 0.5, 0.5], rtol=0.02)  # 30,000 draws: 5 standard errors
    assert abs(np.corrcoef(released[KEYS[1]].ravel(), released[KEYS[2]].ravel())[0, 1]) < 0.03


@pytest.mark.parametrize("relation, factor", [(NeighbouringRelation.ADD_REMOVE, 1),
                                              (NeighbouringRelation.ZERO_OUT, 1),
                                              (NeighbouringRelation.REPLACE_ONE, 2)])
def test_event_is_one_joint_gaussian(relation, factor):
    flat = Sanitizer(flat_group(KEYS, 3.0, 4.0))
    layers = Sanitizer(per_layer_groups(KEYS, {"conv": 1.0, "dense": 2.0}, {"conv": 4.0, "dense": 3.0}))
    assert flat.event(relation) == Gaussian(4.0 / factor)
    assert layers.event(relation) == JointGaussian((4.0 / factor, 3.0 / factor))
    for group in layers.groups:  # the multiplier is noise std over sensitivity
        place = [g.name for g in layers.groups].index(group.name)
        ratio = group.noise_std / layers.sensitivity(relation)[group.name]
        assert layers.event(relation).noise_multipliers[place] == pytest.approx(ratio)


@pytest.mark.parametrize("relation", list(NeighbouringRelation))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_worst_neighbours_reach_and_never_exceed_the_sensitivity(relation, dtype, rng):
    """Search over lots and over the example that differs: aligned and opposed large gradients are the worst."""
    groups = per_layer_groups(KEYS, {"conv": 0.7, "dense": 2.0}, 1.0)
    sanitizer = Sanitizer(groups)
    numpy_backend = Backend.numpy()
    worst = dict.fromkeys(sanitizer.sensitivity(relation), 0.0)
    for trial in range(60):
        scale = 10.0 ** rng.uniform(-2, 3)
        grads = make_grads(rng, numpy_backend, 1, scale, dtype)
        one = sanitizer.add_clipped(grads)
        if relation is NeighbouringRelation.REPLACE_ONE:
            sign = -1 if trial % 2 else 1  # -g is another example's gradient
            other = make_grads(rng, numpy_backend, 1, scale, dtype) if sign == 1 else {
                KEYS[0]: OuterSum(-grads[KEYS[0]].a, grads[KEYS[0]].d),
                KEYS[1]: Outer(grads[KEYS[1]].a, -grads[KEYS[1]].d), KEYS[2]: Explicit(-grads[KEYS[2]].g)}
            second = sanitizer.add_clipped(other)
        else:
            second = {key: np.zeros_like(value) for key, value in one.items()}
        for group in groups:
            moved = sum(((one[key].astype(float) - second[key].astype(float)) ** 2).sum() for key in group.keys)
            worst[group.name] = max(worst[group.name], math.sqrt(moved))
    for name, bound in sanitizer.sensitivity(relation).items():
        assert worst[name] <= bound
        assert worst[name] > bound * (1 - 1e-4)


def test_wrong_gradients_are_refused(rng):
    numpy_backend = Backend.numpy()
    grads = make_grads(rng, numpy_backend, 3)
    sanitizer = Sanitizer(flat_group(KEYS, 1.0, 1.0))
    with pytest.raises(ParameterError, match="expected gradients of"):
        sanitizer.add_clipped({KEYS[0]: grads[KEYS[0]]})
    with pytest.raises(ParameterError, match="cannot be clipped per example"):
        sanitizer.add_clipped({**grads, KEYS[2]: np.zeros(3)})
    with pytest.raises(ShapeError, match="same number of examples"):
        sanitizer.add_clipped({**grads, KEYS[2]: Explicit(np.zeros((4, 3)))})
    with pytest.raises(ParameterError, match="in several"):
        Sanitizer(flat_group(KEYS, 1.0, 1.0) + flat_group(KEYS[:1], 1.0, 1.0))
    with pytest.raises(ParameterError, match="one or more"):
        Sanitizer([])
