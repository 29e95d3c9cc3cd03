"""The sanitizer: clip each example's gradient, sum over the lot, add noise (Section 4 of the
paper).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from numpy.typing import DTypeLike, NDArray

from ..arrays import namespace_of
from ..backend import explicit_budget
from ..compiled import kernel
from ..errors import ParameterError, ShapeError
from ..grads.forms import STRATEGIES, Arrays, Key, PerExampleGrad
from ..grads.sums import add_weighted_sums
from ..privacy.events import Gaussian, JointGaussian
from ..streams import Draws
from ..util.lazy import ring
from ..util.validate import one_of, shape
from ..util.words import Named
from .clip import ClipGroup, clip_weights
from .noise import released
from .rounding import DOUBLE, Products

MIN_CHUNK = 2  # examples materialised at once: a product with a single row is slow in BLAS


class Watcher:
    """Receives norms before clipping; this base class keeps nothing."""

    def take_norms(self, group: str, sq_norms: NDArray, example_weight: NDArray | None) -> None:
        """Take the squared norms (B,) of a part of a lot; several threads may call this at once.

        example_weight: (B,) in [0, 1], and examples of weight 0 do not count; None for 1.
        """

    def end_lot(self) -> None:
        """Note that the lot is complete; called before its release."""


@dataclass(frozen=True)
class Sanitizer(Named):
    r"""Turn the per-example gradients of a lot into a noisy sum that may be released.

    Shapes
        gradients PerExampleGrad of (B, *shape) each   example weights v (B,), 1 if there are none
        raw sum and release {key: array of shape}

    Forward
        [F1]  raw_lk = sum_b w_bl g_blk, w_bl = 1 / max(1, norm_bl (1 + 2^-20) / C_l)    for the
              parameters k of group l
        [F3]  raw_lk = sum_b w_bl u_b g_blk, u_b = v_b where v_b in 0 .. 1, else 0    with example
              weights
        [F2]  released_lk = q_l rint((raw_lk + sigma_l C_l z_lk) / q_l)    z_lk ~ N(0, I), once per
              lot, rounded to the group's grid q_l
        [N1]  norm_bl^2 = sum_k |g_blk|^2    over the parameters k of group l

    Sensitivity
        [S1]  S_l = C_l    of group l, if one example is added, removed or set to zero

    Event
        [S2]  m_l = sigma_l C_l / S_l, s = (sum_l m_l^-2)^(-1/2)    one joint Gaussian with noise
              multipliers m_l, since all groups are released from the same lot; it dominates like
              one Gaussian of s

    Source
        [F1]  Abadi et al. 2016, Algorithm 1 and "Per-layer and time-dependent parameters", Section
              3.1
        [F2]  Abadi et al. 2016, Algorithm 1, "Add noise"
        [F3]  own derivation: |v_b w_b g_b| <= |w_b g_b| <= C_l, so that the sensitivity holds for
              any weights in [0, 1]
        [S2]  own derivation: divide the coordinates of group l by sigma_l C_l. The noise becomes
              standard and the two neighbours' means differ by a vector of squared norm at most
              sum_l m_l^-2.

    Guarantees
        There is no mean here, and no division by the size of the lot. An empty lot releases noise
        alone. A gradient that is not finite contributes zero to its group. The sum over several
        batches equals the sum over one, to rounding. A watcher sees norms before clipping, so its
        records are not private.

    Raises
        ParameterError   a parameter is in no group or in two; gradients come without their group
        ShapeError       the gradients of a batch differ in their number of examples; or a batch
                         that is a whole lot has another number than the lot

    >>> import numpy as np
    >>> from minidp.grads import Explicit
    >>> from minidp.mechanism import flat_group
    >>> grads = {("dense1", "W"): Explicit(np.array([[3.0, 4.0], [0.3, 0.4]]))}  # norms 5, 0.5
    >>> sanitizer = Sanitizer(flat_group(grads, clip_norm=1.0, noise_multiplier=2.0))
    >>> sanitizer.add_clipped(grads)["dense1", "W"].round(5).tolist()  # 1 + 0.5 in that direction
    [0.9, 1.2]
    >>> sanitizer.event()
    Gaussian(noise_multiplier=2.0)
    """

    groups: Sequence[ClipGroup]
    strategy: str = "auto"
    watcher: Any = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self):
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "watcher", self.watcher or Watcher())
        one_of(STRATEGIES, strategy=self.strategy)
        if not self.groups or not all(isinstance(group, ClipGroup) for group in self.groups):
            raise ParameterError("expected groups to be one or more ClipGroup")
        keys = self.keys
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ParameterError(
                f"expected each parameter in one clip group, got {twice} in several"
            )

    @property
    def keys(self) -> list[Key]:
        """The parameters of all groups, in order."""
        return [key for group in self.groups for key in group.keys]

    @property
    def constant(self) -> bool:
        """True if no group follows a schedule."""
        return all(group.constant for group in self.groups)

    def for_step(self, step: int) -> Sanitizer:
        """The sanitizer with the numbers of one step (0 is the first)."""
        if self.constant:
            return self
        return replace(self, groups=tuple(group.for_step(step) for group in self.groups))

    def sensitivity(self, *, rounding: float = 1.0) -> dict[str, float]:
        """{group name: L2 sensitivity of the group's clipped sum}, in gradient units.

        rounding: the factor by which rounding of sums may raise it (`rounding.products`).
        """
        return {group.name: rounding * group.clip_norm for group in self.groups}  # [S1]

    def event(self, *, rounding: float = 1.0) -> Gaussian | JointGaussian:
        """The event of one release, before sampling: a Gaussian, or a joint one for several groups.
        rounding: as in `sensitivity`.
        """
        multipliers = tuple(group.noise_multiplier / rounding for group in self.groups)  # [S2]
        return Gaussian(multipliers[0]) if len(multipliers) == 1 else JointGaussian(multipliers)

    def forms(self, grads: Mapping[Key, PerExampleGrad], products: Products) -> dict[Key, str]:
        """{key: "explicit" or "factored"}: the form in which each gradient is clipped and summed.

        It follows from public numbers, not from the size of the lot.
        """
        self._check(grads)
        return {key: g.form(self.strategy, products.most) for key, g in grads.items()}

    def add_clipped(
        self,
        grads: Mapping[Key, PerExampleGrad],
        into: Arrays | None = None,
        example_weight: NDArray | None = None,
        products: Products = DOUBLE,
    ) -> Arrays:
        """Clip the gradients of one batch and add them to the raw sum of the batches before it.

        grads    {key: PerExampleGrad}, every parameter of every group
        example_weight  (B,) in [0, 1], which may depend on the example itself only; None for 1
        into     {key: array}, changed in place; empty before the first batch, None if it is the
                 only one
        products how outer products are summed: in float64, or as `rounding.products` says, which
        also gives the charge
        returns  {key: array, float64, or float32 for a sum of few float32 products}; private until
                 `release` adds noise
        """
        size = self._check(grads)
        if into is None and products.lot not in (None, size):
            raise ShapeError(
                f"expected gradients of the {products.lot} examples of the lot, got {size} (the "
                "first axis); a mean or a sum over examples cannot be clipped per example, and "
                "batches of a lot share one into={}"
            )
        total = {} if into is None else into
        if example_weight is not None:
            shape("add_clipped", "example_weight", example_weight, (size,))
            xp = namespace_of(example_weight)
            allowed = (example_weight >= 0) & (example_weight <= 1)
            example_weight = xp.where(allowed, example_weight, 0).astype("float64")
        arrays = [array for grad in grads.values() for array in grad.arrays]
        add_at_once = kernel("add_at_once", *arrays) if size else None
        if add_at_once and add_at_once(self, grads, total, example_weight, products):
            return total
        for group in self.groups:
            part = {key: grads[key] for key in group.keys}
            self._add_group(group, part, size, total, example_weight, products)
        return total

    def materialised(
        self, grads: Mapping[Key, PerExampleGrad], products: Products
    ) -> dict[Key, PerExampleGrad]:
        """The gradients that are factored, and become explicit before they are clipped."""
        return {
            key: g
            for key, g in grads.items()
            if g.factored and g.form(self.strategy, products.most) == "explicit"
        }

    def _add_group(self, group, grads, size, total, example_weight, products):
        """Norms, weights, sum. Materialised gradients are processed in chunks that fit the cache;
        factored ones in one matrix product.
        """
        chunked = self.materialised(grads, products)
        whole = {key: g for key, g in grads.items() if key not in chunked}
        raw_sq_norms_of_whole = self._sq_norms(group, whole)
        add = partial(add_weighted_sums, total=total, rows=products.rows)
        weights = []
        for start, stop in self._chunks(chunked, size):
            chunk = {key: g.rows(start, stop).explicit() for key, g in chunked.items()}
            raw_sq_norms = self._sq_norms(group, chunk)
            if whole:
                raw_sq_norms = raw_sq_norms + raw_sq_norms_of_whole[start:stop]  # [N1]
            here = None if example_weight is None else example_weight[start:stop]
            weights.append(self._weights(group, raw_sq_norms, here))
            add(chunk, weights[-1])  # [F1]
            del chunk  # so that the next one takes its place in the cache
        if whole:
            if len(weights) > 1:
                weights = [namespace_of(*weights).concatenate(weights)]
            add(whole, weights[0])  # [F1]

    def _weights(self, group, raw_sq_norms, example_weight):
        """(B,) weight of each example in the sum: its clip weight times its own weight."""
        self.watcher.take_norms(group.name, raw_sq_norms, example_weight)
        weights = clip_weights(raw_sq_norms, group.clip_norm)
        return weights if example_weight is None else weights * example_weight  # [F3]

    def _sq_norms(self, group, grads):
        if math.isinf(group.clip_norm):
            return sum(g.sq_norms() for g in grads.values())
        return sum(g.sq_norms_upper() for g in grads.values())  # [N1]

    def release(
        self,
        raw_sum: Arrays,
        draws: Draws,
        others: Sequence[Arrays] = (),
        scale: float = 1.0,
        dtype: DTypeLike = "float64",
        ranks: Any = None,
    ) -> Arrays:
        """Release the lot's clipped sum: add the noise of each group. The result may be published.

        draws: random numbers for this release alone, `streams.noise(step)`. others: more raw sums
        of the same lot, which are added first. scale, dtype: factor and dtype of the result, both
        public. ranks: processes whose raw sums are added; None for this process alone.
        """
        self.watcher.end_lot()
        stds = {key: group.noise_std for group in self.groups for key in group.keys}
        if ranks is not None and ranks.size > 1:
            over_ranks = ring("ranks").release_over_ranks
            return over_ranks(ranks, [raw_sum, *others], stds, draws, scale, dtype)
        raws = [raw_sum[key] for key in stds]
        rest = [[other[key] for other in others] for key in stds]
        noisy = released(raws, [*stds.values()], draws, rest, scale, dtype)  # [F2]
        return dict(zip(stds, noisy))

    def release_flat(self, sums: Any, raw_sum: Arrays, draws: Draws, *more: Any) -> None:
        """`release` of a lot into one array on a device, by the sums of a compiled twin, with the
        same bits. more: passed on to these sums.
        """
        self.watcher.end_lot()
        stds = {key: group.noise_std for group in self.groups for key in group.keys}
        sums.release(raw_sum, stds, draws, *more)  # [F2]

    def _check(self, grads):
        missing = set(self.keys).symmetric_difference(grads)
        if missing:
            raise ParameterError(f"expected gradients of {sorted(self.keys)}, got {sorted(grads)}")
        for key, grad in grads.items():
            if not isinstance(grad, PerExampleGrad):
                raise ParameterError(
                    f"gradient of {'.'.join(key)}: expected one gradient per example "
                    f"(PerExampleGrad), got {type(grad).__name__}; a sum over examples cannot be "
                    "clipped per example"
                )
        counts = {grad.n_examples for grad in grads.values()}
        if len(counts) > 1:
            raise ShapeError(
                f"expected the same number of examples in all gradients, got {sorted(counts)}"
            )
        return counts.pop()

    def _chunks(self, chunked, size):
        """Yield (start, stop) of equal chunks of examples whose materialised gradients about fit
        into memory; a single chunk if no gradient is materialised.
        """
        each = sum(g.explicit_bytes for g in chunked.values())
        if each == 0 or size == 0:
            return [(0, size)]
        budget = explicit_budget(next(iter(chunked.values())).xp)
        most = max(MIN_CHUNK, -(-size // max(round(size * each / budget), 1)))
        return [(start, min(start + most, size)) for start in range(0, size, most)]
