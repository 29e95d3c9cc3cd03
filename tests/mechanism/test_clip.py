"""Clipping weights and groups."""
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidp.backend import to_host
from minidp.errors import ParameterError
from minidp.grads import Explicit
from minidp.mechanism import ClipGroup, LinearDecay, clip_weights, flat_group, per_layer_groups

KEYS = [("dense1", "W"), ("dense1", "b"), ("dense2", "W")]


def test_weights_equal_the_definition(backend):
    norms = np.array([0.0, 1.0, 3.9, 4.1, 8.0, 1e6])
    got = to_host(clip_weights(backend.asarray(norms**2), 4.0))
    expected = [1.0, 1.0, 1.0, 4 / 4.1, 0.5, 4e-6]
    np.testing.assert_allclose(got, expected, rtol=1e-14)
    np.testing.assert_array_equal(to_host(clip_weights(backend.asarray(norms**2), np.inf)), np.ones(6))


def test_not_finite_norms_weigh_nothing(backend):
    bad = backend.asarray(np.array([np.nan, np.inf, 1.0], dtype=np.float32))
    for clip_norm in (4.0, np.inf):
        got = clip_weights(bad, clip_norm)
        np.testing.assert_array_equal(to_host(got), np.array([0, 0, 1], dtype=np.float32))
        assert got.dtype == np.float32


@settings(max_examples=200)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 40), clip_norm=st.floats(1e-3, 1e3),
       scale=st.floats(1e-3, 1e3))
def test_clipped_norm_never_exceeds_the_bound_in_float32(seed, size, clip_norm, scale):
    g = (np.random.default_rng(seed).standard_normal((1, size)) * scale).astype(np.float32)
    w = clip_weights(Explicit(g).sq_norms_upper(), clip_norm)
    clipped = (w[:, None] * g)[0].astype(float)
    assert sum(Fraction(v) ** 2 for v in clipped) <= Fraction(float(np.float32(clip_norm)) * (1 + 1e-7)) ** 2
    assert sum(Fraction(v) ** 2 for v in clipped) <= Fraction(clip_norm) ** 2
    if float(np.linalg.norm(g.astype(float))) > clip_norm:
        assert np.linalg.norm(clipped) > clip_norm * (1 - 1e-4)


def test_groups_flat_and_per_layer():
    assert [g.keys for g in flat_group(KEYS, 1.0, 2.0)] == [tuple(KEYS)]
    groups = per_layer_groups(KEYS, {"dense1": 1.0, "dense2": 2.0}, 4.0)
    assert [(g.name, len(g.keys), g.clip_norm, g.noise_std) for g in groups] == [
        ("dense1", 2, 1.0, 4.0), ("dense2", 1, 2.0, 8.0)]
    with pytest.raises(ParameterError, match="each of the layers"):
        per_layer_groups(KEYS, {"dense1": 1.0}, 4.0)


def test_a_group_follows_its_schedules():
    group = ClipGroup("all", KEYS, LinearDecay(4, 2, 10), LinearDecay(8, 4, 10))
    assert (group.for_step(5).clip_norm, group.for_step(5).noise_multiplier) == (3, 6)
    assert group.for_step(99).noise_std == 8 and not group.constant


@pytest.mark.parametrize("clip_norm, noise, message", [
    (-1.0, 1.0, "clip_norm=-1.0"), (0.0, 1.0, "clip_norm=0.0"), (float("nan"), 1.0, "clip_norm=nan"),
    (1.0, -1.0, "noise_multiplier=-1.0"), (1.0, float("nan"), "noise_multiplier=nan"),
    (1.0, float("inf"), "noise_multiplier=inf"), (float("inf"), 1.0, "finite clip_norm")])
def test_bad_settings_are_refused(clip_norm, noise, message):
    with pytest.raises(ParameterError, match=message):
        ClipGroup("all", KEYS, clip_norm, noise)


def test_an_empty_group_is_refused():
    with pytest.raises(ParameterError, match="at least one parameter"):
        ClipGroup("all", (), 1.0, 1.0)
