"""The three parts of a run's description: what is trained, what it may cost, and what its files
say.
"""

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
from ..util.words import Named


@dataclass(frozen=True)
class Training(Named):
    """The network to train, and how to train it.

    network        nn.Sequential, whose weights are released
    loss           loss of each example, such as nn.SoftmaxCrossEntropy()
    optimizer      one of `minidp.train`, or `Averaged(optimizer, decay)`
    streams        `Streams`, or a seed
    batch_size     examples computed at once; default: as many as fit into memory
    augmentation_multiplicity  K: each row of a lot is taken K times, as K views made by
                   `take_views` of x, or as K copies. If rows of x already are views of each other,
                   give all of them the same person instead
    measure_every  steps between two measurements, each with a checkpoint; default: an epoch
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
class Privacy(Named):
    """The plan of the training, and the budget that it may spend.

    plan           sampler, sanitizer, steps
    budget         privacy.Filter with the target (or infinity) and delta, and an empty ledger,
                   which the folder's replaces
    dataset_size   public number of training examples; default: that of the data set or the sampler,
                   otherwise L / q of the plan
    group_size     k: the statement also gives epsilon for k rows of one person (or for k persons)
    check          refuse rows that are not finite and labels of no class before the first step,
                   with a message for the data's owner; default: on for your own arrays, off for
                   checked data sets
    train_metrics  also measure accuracy on training data, which is not private; default: no
    rows_per_person  protect persons instead of rows, and use at most this many rows of each;
                   `Run.train` then needs `person`, and all sizes here count persons
    stop_early     allow a plan with more steps than the budget pays for, and stop when the budget
                   is used up. By default such a plan is refused before the first charge
    """

    plan: Plan
    budget: Filter
    dataset_size: int | None = None
    group_size: int = 1
    check: bool | None = None
    train_metrics: bool = False
    rows_per_person: int | None = None
    stop_early: bool = False

    def __post_init__(self):
        instance(Plan, plan=self.plan)
        instance(Filter, budget=self.budget)

    @property
    def unit(self) -> str:
        """The unit that the run protects, in the words of its ledger."""
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
class About(Named):
    """Descriptions for a run's files and for the screen.

    name       of the experiment
    data       an object with name, nominal_size, sha256, published and notice; None for your own
               arrays, of which the folder keeps only a keyed hash
    source     name of your own arrays
    flags      {name: JSON value} of other settings that the run depends on; a resumed run must have
               the same
    inputs     the same for values found while the run is prepared, such as hashes of other files
    command    that made the run
    public     lines for the statement on parts that cost nothing (public data, fixed features)
    disclosed  lines for the statement on facts about the data that are published without protection
    choices    {setting: how it was chosen} for the statement
    commit     of the code that made the run, for result.json; None if unknown
    quiet      no progress bar
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
