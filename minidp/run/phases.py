"""The facts of a run, one value for each phase: the request, the folder's content, the training
rows, and the end of training.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ..backend import namespace_of
from ..mechanism import Plan
from ..privacy import Filter
from ..privacy.ledger import Ledger
from ..streams import Streams
from ..train import TrainRecord
from .asked import About, Privacy, Training
from .model import Model


@dataclass(frozen=True)
class Asked:
    """The request: the three parts of a run's description, and facts that follow from them.

    plan   that of `privacy`, with the numbers that were derived when the folder's run began
    ranks  processes that share each lot
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
        """Steps per epoch, from the public size and never from the examples in memory."""
        return self.dataset_size / self.plan.expected_lot_size

    @property
    def like(self) -> Any:
        """One of the network's arrays; all have its device and dtype."""
        return next(iter(self.training.network.params.values()))

    @property
    def device(self) -> str:
        """The device of the network's arrays: "cpu" or "gpu"."""
        return "gpu" if namespace_of(self.like).__name__ == "cupy" else "cpu"


class Opened(NamedTuple):
    """The content of the locked folder.

    budget  the target, and the ledger of all charges, including those of earlier attempts
    saved   the checkpoint (arrays, header) of a resumed run; None for a new one
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


class Rows(NamedTuple):
    """The checked arguments of `Run.train`.

    x, y    inputs and targets
    weight  (N,) in [0, 1], or None
    units   rows, or persons
    tested  public inputs and targets for the test figures, or None
    model   the model that will be saved
    """

    x: Any
    y: Any
    weight: Any
    units: Any
    tested: tuple[Any, Any] | None
    model: Model

    def unvouched(self, about: About) -> tuple[Any, ...]:
        """The caller's own arrays, for which there is no hash of a data set."""
        if about.data is not None:
            return ()
        return (self.x, self.y, self.weight, getattr(self.units, "number", None))


class Ended(NamedTuple):
    """The end of training.

    history  rows of metrics
    seconds  in all, and in steps
    """

    trained: TrainRecord
    history: list[Any]
    seconds: tuple[float, float]
