"""Alternatives to the last weights: a moving average over the run, or the best on public data."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from ..backend import namespace_of
from ..grads.forms import Arrays
from ..mechanism.setting import Setting
from ..util.validate import in_range

WARM_UP = 9  # the first averages reach back over about a tenth of the steps so far


@dataclass
class _Beside:
    """An optimizer with one more array for each parameter, in a slot named `slot`."""

    optimizer: Any
    slot: ClassVar[str]

    @property
    def slots(self) -> dict[str, Arrays]:
        """The optimizer's slots and this one."""
        return self.optimizer.slots

    def allocate(self, params: Arrays) -> None:
        """Give every parameter its slots."""
        self.optimizer.allocate(params)
        kept = self.slots.setdefault(self.slot, {})
        for key, theta in params.items():
            if key not in kept:
                kept[key] = self._first(theta)

    def _first(self, theta):
        return namespace_of(theta).zeros_like(theta)

    def update(self, params: Arrays, grads: Arrays, step: int) -> None:
        """Descend as the optimizer does."""
        self.allocate(params)
        self.optimizer.update(params, grads, step)

    @contextmanager
    def weights(self, params: Arrays) -> Iterator[None]:
        """Context in which the parameters have these arrays' values; nothing
        changes before the first step.
        """
        others = self.slots.get(self.slot, {})
        last = {key: params[key].copy() for key in others}
        _write(others, params)
        try:
            yield
        finally:
            _write(last, params)


@dataclass
class Averaged(_Beside):
    r"""An optimizer with a moving average of the weights, in which much of the noise averages out.

    The parameters after each step are released already, so their average is post-processing and
    costs no privacy.

    Forward
        [F1]  a <- d a + (1 - d) theta, d = min(decay, t / (t + 9))    t = 0 at the first step

    Source
        [F1]  Polyak and Juditsky 1992, in the exponential form; for private training De et al.
              2022, arXiv:2204.13650, section 3

    Guarantees
        The descent itself is that of the optimizer alone, bit for bit.

    Raises
        ParameterError   decay is not in [0, 1)
    """

    decay: float
    slot = "average"

    def __post_init__(self):
        in_range(0, 1, open_high=True, decay=self.decay)

    @property
    def learning_rate(self) -> Setting:
        """The optimizer's."""
        return self.optimizer.learning_rate

    def update(self, params: Arrays, grads: Arrays, step: int) -> None:
        """Descend as the optimizer does, then average."""
        super().update(params, grads, step)
        d = min(self.decay, step / (step + WARM_UP))
        for key, a in self.slots[self.slot].items():
            a *= d
            a += (1 - d) * params[key]  # [F1]

    averaged_weights = _Beside.weights


class KeptBest(_Beside):
    """An optimizer with the weights that were best so far on public data. Choosing among released
    weights costs nothing.

    Before the first measurement, the best weights are the initial ones.
    """

    slot = "best"

    def _first(self, theta):
        return theta.copy()

    def keep(self, params: Arrays) -> None:
        """Keep the weights in `params` as the best so far."""
        _write(params, self.slots[self.slot])

    best_weights = _Beside.weights


def _write(values, arrays):
    """Copy the values into the arrays of the same keys."""
    for key, value in values.items():
        arrays[key][...] = value
