"""Norms of gradients before they are clipped."""

import numpy as np

from minidp.backend import to_host
from minidp.ranks import current

EVERY = 10  # norms are recorded for every tenth lot


class MedianNorms:
    """A sanitizer's watcher that keeps each clip group's median norm in every tenth lot. The
    medians are not private.

    medians   {group: [median of each watched lot, in their order]}; None for one that is not finite
    """

    def __init__(self):
        self.medians = {}
        self._norms = []  # (group, norms) of parts of one lot: its threads append them in any order
        self._lots = 0

    def take_norms(self, group, sq_norms, example_weight):
        """Keep the norms of one part of a watched lot, without examples of weight 0."""
        if self._lots % EVERY == 0:
            if example_weight is not None:
                sq_norms = sq_norms[example_weight > 0]
            sq_norms = to_host(sq_norms)
            self._norms.append((group, sq_norms**0.5))

    def end_lot(self):
        """Add the medians of a watched lot, over the parts of all threads and ranks."""
        if self._lots % EVERY == 0:
            parts = [part for rank in current().collect(self._norms) for part in rank]
            for group in dict.fromkeys(group for group, _ in parts):
                norms = np.concatenate([norms for name, norms in parts if name == group])
                if norms.size:
                    with np.errstate(invalid="ignore"):  # where training diverged
                        median = float(np.median(norms))
                    found = median if np.isfinite(median) else None
                    self.medians.setdefault(group, []).append(found)
            self._norms.clear()
        self._lots += 1
