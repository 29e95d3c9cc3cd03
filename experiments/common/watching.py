"""Norms of unclipped gradients, taken down in passing; what is seen so is not private."""

from dataclasses import dataclass, field

import numpy as np

from minidp.backend import to_host
from minidp.mechanism import Sanitizer
from minidp.mechanism.rounding import DOUBLE
from minidp.ranks import current

EVERY = 10  # every tenth lot is looked at, whole


@dataclass(frozen=True)
class Watching(Sanitizer):
    """A sanitizer that takes down the median norm of each clip group in every tenth lot. What it
    saw is not private.

    raw_medians   {group: [median of each watched lot, in their order]}; None where it is not finite
    raw_norms     of one lot: its threads hand them in in any order, and `release`, after them,
                  takes the medians
    """

    raw_medians: dict = field(default_factory=dict, compare=False)
    raw_norms: list = field(default_factory=list, compare=False)

    def for_step(self, step):
        groups = tuple(group.for_step(step) for group in self.groups)
        watched = (self.raw_medians,) if step % EVERY == 0 else ()
        return (Watching if watched else Sanitizer)(
            groups, self.strategy, self.arithmetic, *watched, ran=self.ran
        )

    def add_clipped(self, grads, into=None, example_weight=None, products=DOUBLE):
        self.raw_norms.append(
            {
                group.name: to_host(sum(grads[key].sq_norms() for key in group.keys)) ** 0.5
                for group in self.groups
            }
        )
        return super().add_clipped(grads, into, example_weight, products)

    def release(self, raw_sum, draws, *others):
        for group in self.groups:
            seen = np.concatenate(
                [norms[group.name] for part in current().collect(self.raw_norms) for norms in part]
            )
            if seen.size:
                with np.errstate(invalid="ignore"):  # where training diverged
                    median = float(np.median(seen))
                self.raw_medians.setdefault(group.name, []).append(
                    median if np.isfinite(median) else None
                )
        return super().release(raw_sum, draws, *others)
