"""What is asked of a run, in three parts: what is trained, what it may cost, what is said of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..mechanism import Plan
from ..nn import Sequential
from ..privacy import Filter
from ..privacy.ledger import unit_text
from ..streams import Streams
from ..train.optimizer import check_parts
from ..util.validate import instance


@dataclass(frozen=True)
class Training:
    """What is trained, and how.

    network        whose weights are released
    loss           what is descended on
    optimizer      one of `train`, or an `Averaged` one
    streams        `Streams`, or a seed
    batch_size     rows that are differentiated at once; by default what fits into memory
    augmentation_multiplicity  K: each row of a lot is taken K times, as K views that `take_views`
                   of x makes, or as K copies. Rows that are views of each other already are no
                   views here: give them one person
    measure_every  steps between two measurements, with a checkpoint each; default an epoch
    """

    network: Sequential
    loss: Any
    optimizer: Any
    streams: Streams | int | None = None
    batch_size: int | None = None
    augmentation_multiplicity: int = 1
    measure_every: int | None = None

    def __post_init__(self):
        instance(Sequential, network=self.network)
        check_parts(self.loss, self.optimizer)


@dataclass(frozen=True)
class Privacy:
    """What training does to the data, and what it may cost.

    plan           sampler, sanitizer, steps
    budget         privacy.Filter with the target (or infinity) and delta; its ledger is empty, the
                   folder's takes its place
    dataset_size   public number of training examples; by default what the data set or the sampler
                   says, else L / q of the plan
    group_size     k: the statement also says what the run costs k rows of one person (or persons)
    check          stop before the first step, with a message for the data's owner, if rows are not
                   finite or labels belong to no class; default: on for your own arrays, where no
                   data set vouches for them
    train_metrics  evaluate on training data too: such figures are not private, and are named so
    rows_per_person  protect persons instead of rows, and use at most so many rows of each;
                   `Run.train` then needs `person`, and all sizes here count persons
    """

    plan: Plan
    budget: Filter
    dataset_size: int | None = None
    group_size: int = 1
    check: bool | None = None
    train_metrics: bool = True
    rows_per_person: int | None = None

    def __post_init__(self):
        instance(Plan, plan=self.plan)
        instance(Filter, budget=self.budget)

    @property
    def unit(self) -> str:
        """Whom the run protects, in the words of its ledger."""
        return unit_text(self.rows_per_person)

    def public_size(self, data: Any) -> Any:
        """The public number of training examples."""
        sampler: Any = self.plan.sampler
        for known in (
            self.dataset_size,
            getattr(data, "nominal_size", None),
            getattr(sampler, "dataset_size", None),
        ):
            if known is not None:
                return known
        size = self.plan.expected_lot_size / sampler.sampling_probability
        return round(size) if math.isclose(size, round(size)) else size


@dataclass(frozen=True)
class About:
    """What is said of a run, in its files and on the screen.

    name       of the experiment
    data       an object with name, nominal_size, sha256, published and notice; None for your own
               arrays, of which the folder keeps a keyed hash only
    source     what your own arrays are called
    flags      what else decides about the run, {name: JSON value}; a resumed run must have the same
    inputs     the same for what is found while the run is prepared, such as hashes of other files
    command    that made the run
    public     lines for the statement on what costs nothing (public data, fixed features)
    disclosed  lines for the statement on facts about the data that it publishes unprotected
    choices    {setting: how it was chosen} for the statement
    commit     of the code that made the run, for result.json; None: unknown
    quiet      no bar
    """

    name: str = "run"
    data: Any = None
    source: str = "arrays"
    flags: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    public: Sequence[str] = ()
    disclosed: Sequence[str] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    quiet: bool = False
