"""Clipping weights and groups."""

import pytest

from minidp.errors import ParameterError
from minidp.mechanism import ClipGroup, flat_group, per_layer_groups

KEYS = [("dense1", "W"), ("dense1", "b"), ("dense2", "W")]


def test_groups_flat_and_per_layer():
    assert [g.keys for g in flat_group(KEYS, 1.0, 2.0)] == [tuple(KEYS)]
    groups = per_layer_groups(KEYS, {"dense1": 1.0, "dense2": 2.0}, 4.0)
    assert [(g.name, len(g.keys), g.clip_norm, g.noise_std) for g in groups] == [
        ("dense1", 2, 1.0, 4.0), ("dense2", 1, 2.0, 8.0)]
    with pytest.raises(ParameterError, match="each of the layers"):
        per_layer_groups(KEYS, {"dense1": 1.0}, 4.0)


@pytest.mark.parametrize("clip_norm, noise, message", [
    (-1.0, 1.0, "clip_norm=-1.0"), (0.0, 1.0, "clip_norm=0.0"), (float("nan"), 1.0, "clip_norm=nan"),
    (1.0, -1.0, "noise_multiplier=-1.0"), (1.0, float("nan"), "noise_multiplier=nan"),
    (1.0, float("inf"), "noise_multiplier=inf"), (float("inf"), 1.0, "finite clip_norm")])
def test_bad_settings_are_refused(clip_norm, noise, message):
    with pytest.raises(ParameterError, match=message):
        ClipGroup("all", KEYS, clip_norm, noise)
    with pytest.raises(ParameterError, match="at least one parameter"):
        ClipGroup("all", (), 1.0, 1.0)
