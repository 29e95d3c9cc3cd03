"""Clipping: which parameters are clipped together, and the weight of each example.

Algorithm 1 of Abadi et al. 2016 clips all parameters together; its experiments clip each layer by
itself. Both are a list of groups: `flat_group` makes a single one, `per_layer_groups` one per
layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from ..arrays import namespace_of
from ..errors import ParameterError
from ..grads.forms import Key
from ..util.validate import in_range, non_negative_finite, positive
from ..util.words import names_checked
from .schedule import Setting, value_at

# clip norms whose squares, and those of gradients near them, float32 holds
LEAST_NORM, MOST_NORM = 1e-12, 1e12
MOST_CLIPPED = 2.0**120  # a gradient longer than this many clip norms gets weight 0
MARGIN = 2.0**-20  # norms are enlarged by this factor, so that rounding cannot exceed the clip norm


def clip_weights(sq_norms: NDArray, clip_norm: float) -> NDArray:
    r"""The factor min(1, C / norm) that brings each example's gradient to norm C or below.

    Shapes
        sq_norms (B,) squared norms, rounded up   returns (B,) float64, in [0, 1]

    Forward
        [N1]  norm_b = sqrt(sq_b) (1 + 2^-20)
        [N2]  w_b = 1 / max(1, norm_b / C)
        [N3]  w_b = 0 where not finite(norm_b)
        [N4]  w_b = 0 where norm_b >= 2^120 C    a float32 would not hold w to all its digits

    Source
        [N2]  Abadi et al. 2016, Algorithm 1, "Clip gradient"
        [N4]  own derivation: so that sums in float32 and in float64 leave out the same examples
        [N1]  own derivation: rounding changes w and the product w g by about 3 times 2^-24 even in
              float32, which is less than 2^-21

    Guarantees
        The norm of w_b g_b does not exceed C (1 - 2^-21), roundings included. No value of an
        example raises.

        ================  =====================================================
        norm 0            weight 1 (nothing is added to a denominator)
        norm not finite   weight 0
        norm over 2^120 C weight 0
        clip norm inf     weight 1: plain SGD
        ================  =====================================================
    """
    xp = namespace_of(sq_norms)
    finite = xp.isfinite(sq_norms)
    norms = xp.sqrt(xp.where(finite, sq_norms, 0).astype(xp.float64)) * (1 + MARGIN)  # [N1]
    weights = 1 / xp.maximum(norms / clip_norm, 1)  # [N2]
    weights = xp.where(norms >= MOST_CLIPPED * clip_norm, 0, weights)  # [N4]
    return xp.where(finite, weights, 0)  # [N3]


@dataclass(frozen=True)
class ClipGroup:
    r"""Parameters that are clipped together and have one noise level.

    name              of the group, in messages and in the privacy statement
    keys              the parameters' keys, (layer, parameter)
    clip_norm         C > 0, in units of the gradient's L2 norm; infinity with noise 0 only
    noise_multiplier  sigma >= 0: the noise's standard deviation is sigma C; 0 means no noise

    Both numbers may be schedules over steps (`mechanism.schedule`).

    Forward
        [F1]  noise_std = sigma C where sigma > 0, else 0    the standard deviation of the noise on
              each coordinate of the group's sum

    Source
        [F1]  Abadi et al. 2016, Algorithm 1, "Add noise"

    Guarantees
        Noise without a finite clip norm is refused; sigma = 0 with C infinite is plain SGD.

    Raises
        ParameterError   no keys, C neither infinite nor in [1e-12, 1e12], sigma negative, NaN or
                         infinite, sigma > 0 with C infinite
    """

    name: str
    keys: Sequence[Key]
    clip_norm: Any  # a Setting
    noise_multiplier: Any
    # {step: (C, sigma)}: each schedule is called once per step, so that charge and noise agree
    _asked: dict[int, tuple[float, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self):
        object.__setattr__(self, "keys", tuple(map(tuple, self.keys)))
        if not self.keys:
            raise ParameterError(f"clip group {self.name}: expected at least one parameter")
        if not callable(self.clip_norm):
            positive(clip_norm=self.clip_norm)
            if self.clip_norm < math.inf:
                in_range(LEAST_NORM, MOST_NORM, clip_norm=self.clip_norm)
        if not callable(self.noise_multiplier):
            non_negative_finite(noise_multiplier=self.noise_multiplier)
        if self.constant and self.noise_multiplier > 0 and math.isinf(self.clip_norm):
            raise ParameterError(
                f"clip group {self.name}: noise_multiplier={self.noise_multiplier} needs a finite "
                "clip_norm; set one, or set noise_multiplier to 0"
            )

    @property
    def constant(self) -> bool:
        """True if neither number is a schedule."""
        return not callable(self.clip_norm) and not callable(self.noise_multiplier)

    def for_step(self, step: int) -> ClipGroup:
        """The group with the numbers of one step (0 is the first)."""
        if self.constant:
            return self
        if step not in self._asked:
            noise_multiplier = value_at(self.noise_multiplier, step)
            self._asked[step] = value_at(self.clip_norm, step), noise_multiplier
        clip_norm, noise_multiplier = self._asked[step]
        return replace(self, clip_norm=clip_norm, noise_multiplier=noise_multiplier)

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on each coordinate of the group's sum, in gradient
        units.
        """
        return 0.0 if self.noise_multiplier == 0 else self.noise_multiplier * self.clip_norm  # [F1]


@names_checked
def flat_group(
    keys: Iterable[Key] | Mapping[Key, Any], clip_norm: Setting, noise_multiplier: Setting
) -> list[ClipGroup]:
    """All parameters in one group, clipped together (Algorithm 1). keys: network.params, or its
    keys.
    """
    return [ClipGroup("all", tuple(keys), clip_norm, noise_multiplier)]


@names_checked
def per_layer_groups(
    keys: Iterable[Key] | Mapping[Key, Any],
    clip_norm: Setting | Mapping[str, Setting],
    noise_multiplier: Setting | Mapping[str, Setting],
) -> list[ClipGroup]:
    """One group per layer, as in Section 5.2. keys: network.params, or its keys. Clip norm and
    noise multiplier may be dictionaries by layer name.

    >>> keys = [("dense1", "W"), ("dense1", "b"), ("dense2", "W")]
    >>> groups = per_layer_groups(keys, {"dense1": 4.0, "dense2": 1.0}, 2.0)
    >>> [(group.name, group.clip_norm) for group in groups]
    [('dense1', 4.0), ('dense2', 1.0)]
    """
    layers = list(dict.fromkeys(layer for layer, _ in keys))
    clip_norms, noises = (
        setting if isinstance(setting, dict) else dict.fromkeys(layers, setting)
        for setting in (clip_norm, noise_multiplier)
    )
    for each in (clip_norms, noises):
        if set(each) != set(layers):
            raise ParameterError(
                f"expected a setting for each of the layers {layers}, got {sorted(each)}"
            )
    groups = {layer: tuple(key for key in keys if key[0] == layer) for layer in layers}
    return [ClipGroup(layer, groups[layer], clip_norms[layer], noises[layer]) for layer in layers]
