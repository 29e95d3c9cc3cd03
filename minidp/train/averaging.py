"""A moving average of the weights over the run, used instead of the last weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..backend import namespace_of
from ..grads.forms import Arrays
from ..mechanism.schedule import Setting
from ..util.validate import in_range

WARM_UP = 9  # the first averages reach back over about a tenth of the steps so far
SLOT = "average"


@dataclass
class Averaged:
    r"""An optimizer that also keeps a moving average of the weights, in which much of the noise
    cancels.

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

    optimizer: Any
    decay: float

    def __post_init__(self):
        in_range(0, 1, open_high=True, decay=self.decay)

    @property
    def learning_rate(self) -> Setting:
        """The learning rate of the optimizer inside."""
        return self.optimizer.learning_rate

    @property
    def slots(self) -> dict[str, Arrays]:
        """The optimizer's slots and the averages."""
        return self.optimizer.slots

    def allocate(self, params: Arrays) -> None:
        """Give every parameter its slots."""
        self.optimizer.allocate(params)
        averages = self.slots.setdefault(SLOT, {})
        for key, theta in params.items():
            if key not in averages:
                averages[key] = namespace_of(theta).zeros_like(theta)

    def update(self, params: Arrays, grads: Arrays, step: int) -> None:
        """Descend as the optimizer does, then average."""
        self.allocate(params)
        self.optimizer.update(params, grads, step)
        d = min(self.decay, step / (step + WARM_UP))
        for key, a in self.slots[SLOT].items():
            a *= d
            a += (1 - d) * params[key]  # [F1]

    @contextmanager
    def averaged_weights(self, params: Arrays) -> Iterator[None]:
        """Context in which the parameters have the averages' values; nothing changes before the
        first step.
        """
        averages = self.slots.get(SLOT, {})
        last = {key: params[key].copy() for key in averages}
        _write(averages, params)
        try:
            yield
        finally:
            _write(last, params)


def _write(values, arrays):
    """Copy the values into the arrays of the same keys."""
    for key, value in values.items():
        arrays[key][...] = value
