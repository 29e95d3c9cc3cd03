"""Weights to release in place of the last ones: a moving average along the run, or the best on
public data.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from numpy.typing import NDArray

from ..backend import namespace_of
from ..grads import Key
from ..mechanism.schedule import Setting
from ..validate import in_range
from .optimizer import Optimizer

SLOT, BEST = "average", "best"
WARM_UP = 9  # the first averages reach back over about a tenth of the steps so far


@dataclass
class Averaged:
    r"""An optimizer and the average of what it goes through; noise that differs between steps
    averages out.

    Parameters after a step are released already, so their average is post-processing and costs no
    privacy.

    Forward
        [F1]  a <- d a + (1 - d) theta, d = min(decay, t / (t + 9)), t = 0 at the first step

    Source
        [F1]  Polyak and Juditsky 1992, in the exponential form; for private training De et al.
              2022, arXiv:2204.13650, section 3

    Guarantees
        The descent itself is that of the optimizer alone, bit for bit.

    Raises
        ParameterError   decay is not in [0, 1)
    """

    optimizer: Optimizer
    decay: float

    def __post_init__(self):
        in_range(0, 1, open_high=True, decay=self.decay)

    @property
    def learning_rate(self) -> Setting:
        """The optimizer's."""
        return self.optimizer.learning_rate

    @property
    def slots(self) -> dict[str, dict[Key, NDArray]]:
        """The optimizer's slots, and the averages beside them."""
        return self.optimizer.slots

    def allocate(self, params: Mapping[Key, NDArray]) -> None:
        """Give every parameter its slots."""
        self.optimizer.allocate(params)
        averages = self.slots.setdefault(SLOT, {})
        for key, theta in params.items():
            if key not in averages:
                averages[key] = namespace_of(theta).zeros_like(theta)

    def update(
        self,
        params: Mapping[Key, NDArray],
        grads: Mapping[Key, NDArray],
        step: int,
        noise_std: Mapping[Key, float] = {},
    ) -> None:
        """Descend as the optimizer does, then average."""
        self.allocate(params)
        self.optimizer.update(params, grads, step, noise_std)
        d = min(self.decay, step / (step + WARM_UP))
        for key, a in self.slots[SLOT].items():
            a *= d
            a += (1 - d) * params[key]  # [F1]

    @contextmanager
    def averaged_weights(self, params: Mapping[Key, NDArray]) -> Iterator[None]:
        """The averages stand in the parameters' arrays while the block runs; nothing changes before
        the first step.
        """
        with _in_place(params, self.slots.get(SLOT, {})):
            yield


@dataclass
class KeptBest:
    """An optimizer, and the weights that were best so far on public data; choosing among released
    weights costs nothing.
    """

    optimizer: Optimizer | Averaged

    @property
    def slots(self) -> dict[str, dict[Key, NDArray]]:
        """The optimizer's slots, and the best weights beside them."""
        return self.optimizer.slots

    def allocate(self, params: Mapping[Key, NDArray]) -> None:
        """Give every parameter its slots; before anything was measured the best weights are those
        that stand.
        """
        self.optimizer.allocate(params)
        best = self.slots.setdefault(BEST, {})
        for key, theta in params.items():
            if key not in best:
                best[key] = theta.copy()

    def update(
        self,
        params: Mapping[Key, NDArray],
        grads: Mapping[Key, NDArray],
        step: int,
        noise_std: Mapping[Key, float] = {},
    ) -> None:
        """Descend as the optimizer does."""
        self.allocate(params)
        self.optimizer.update(params, grads, step, noise_std)

    def keep(self, params: Mapping[Key, NDArray]) -> None:
        """The weights that stand in `params` are the best so far."""
        for key, theta in params.items():
            self.slots[BEST][key][...] = theta

    @contextmanager
    def best_weights(self, params: Mapping[Key, NDArray]) -> Iterator[None]:
        """The best weights stand in the parameters' arrays while the block runs."""
        with _in_place(params, self.slots.get(BEST, {})):
            yield


@contextmanager
def _in_place(params, others):
    """Other values stand in the parameters' arrays while the block runs."""
    last = {key: params[key].copy() for key in others}
    for key, value in others.items():
        params[key][...] = value
    try:
        yield
    finally:
        for key, theta in last.items():
            params[key][...] = theta
