"""What a run knows, one value for each phase: what was asked for, what its folder holds, the rows
that it trains on, and how training ended.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ..backend import namespace_of
from ..mechanism import Plan
from ..privacy import Filter
from ..privacy.ledger import STEP, Ledger
from ..streams import Streams
from ..train import TrainRecord
from .asked import About, Privacy, Training
from .model import Model


@dataclass(frozen=True)
class Asked:
    """What was asked for: the three parts of a run's description, and what follows from them.

    plan   of `privacy`, with the numbers that were derived when the folder's run began
    ranks  the processes that share each lot
    """

    training: Training
    privacy: Privacy
    about: About
    plan: Plan
    streams: Streams
    ranks: Any

    @cached_property
    def dataset_size(self) -> Any:
        """The public number of training examples."""
        return self.privacy.public_size(self.about.data)

    @property
    def steps_per_epoch(self) -> float:
        """Of the public size, never of examples in memory."""
        return self.dataset_size / self.plan.expected_lot_size

    @property
    def like(self) -> Any:
        """One of the network's arrays, which stands for the device and dtype of all."""
        return next(iter(self.training.network.params.values()))

    @property
    def device(self) -> str:
        """Where the network's arrays are: "cpu" or "gpu"."""
        return "gpu" if namespace_of(self.like).__name__ == "cupy" else "cpu"


class Opened(NamedTuple):
    """What the locked folder holds.

    budget  the target, and the ledger of all charges, those of earlier attempts among them
    saved   the checkpoint, (arrays, header), of a run that goes on; None of a new one
    """

    budget: Filter
    saved: Any

    @property
    def ledger(self) -> Ledger:
        """All charges."""
        return self.budget.ledger

    @property
    def spent(self) -> float:
        """Epsilon of all charges, by the accountant of the budget."""
        return self.budget.accountant.epsilon(self.ledger, self.budget.delta).upper

    def lots_charged(self, plan: Plan) -> int:
        """How many lots of a plan were charged."""
        return self.ledger.count_of(STEP) * plan.sampler.period


class Rows(NamedTuple):
    """What `Run.train` was given, checked.

    x, y    inputs and targets
    weight  (N,) in [0, 1], or None
    units   rows, or persons
    tested  public inputs and targets to measure on, or None
    model   what will be saved
    """

    x: Any
    y: Any
    weight: Any
    units: Any
    tested: tuple[Any, Any] | None
    model: Model

    def unvouched(self, about: About) -> tuple[Any, ...]:
        """The caller's own arrays, which no hash of a data set identifies."""
        if about.data is not None:
            return ()
        return (self.x, self.y, self.weight, getattr(self.units, "number", None))


class Ended(NamedTuple):
    """How training ended.

    history  rows of metrics
    seconds  in all, and in steps
    """

    trained: TrainRecord
    history: list[Any]
    seconds: tuple[float, float]
