"""A moving average of the parameters along a run, to be evaluated and released in place of the last ones."""
from contextlib import contextmanager
from dataclasses import dataclass

from ..backend import namespace_of
from ..validate import in_range

SLOT = "average"
WARM_UP = 9  # the first averages reach back over about a tenth of the steps so far


@dataclass
class Averaged:
    r"""An optimizer and the average of what it goes through; noise that differs between steps averages out.

    Parameters after a step are released already, so their average is post-processing and costs no privacy.

    Forward
        [F1]  a <- d a + (1 - d) theta, d = min(decay, t / (t + 9)), t = 0 at the first step

    Source
        [F1]  Polyak and Juditsky 1992, in the exponential form; for private training De et al. 2022,
              arXiv:2204.13650, section 3

    Guarantees
        The descent itself is that of the optimizer alone, bit for bit.

    Raises
        ParameterError   decay is not in [0, 1)
    """

    optimizer: object
    decay: float

    def __post_init__(self):
        in_range(0, 1, open_high=True, decay=self.decay)

    @property
    def learning_rate(self):
        """The optimizer's."""
        return self.optimizer.learning_rate

    @property
    def slots(self):
        """The optimizer's slots, and the averages beside them."""
        return self.optimizer.slots

    def allocate(self, params):
        """Give every parameter its slots."""
        self.optimizer.allocate(params)
        averages = self.slots.setdefault(SLOT, {})
        for key, theta in params.items():
            if key not in averages:
                averages[key] = namespace_of(theta).zeros_like(theta)

    def update(self, params, grads, step):
        """Descend as the optimizer does, then average."""
        self.allocate(params)
        self.optimizer.update(params, grads, step)
        d = min(self.decay, step / (step + WARM_UP))
        for key, a in self.slots[SLOT].items():
            a *= d
            a += (1 - d) * params[key]  # [F1]

    @contextmanager
    def averaged_weights(self, params):
        """The averages stand in the parameters' arrays while the block runs; nothing changes before the first step."""
        averages = self.slots.get(SLOT, {})
        last = {key: params[key].copy() for key in averages}
        for key, a in averages.items():
            params[key][...] = a
        try:
            yield
        finally:
            for key, theta in last.items():
                params[key][...] = theta
