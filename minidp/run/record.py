"""A record: the content of result.json. Each of its keys is a field here, once."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from ..errors import DataError
from ..privacy.accountants import row_to_quote
from ..util.files import jsonable

LATER: Any = None  # fields that are known only when the run ends
# fields that model.npz holds, too
MODEL_FACTS = ("experiment", "dataset", "steps", "arithmetic", "statement_sha256")


def optional() -> Any:
    """A field whose key is left out of the JSON if the value is None."""
    return field(default=None, metadata={"optional": True})


@dataclass(frozen=True, kw_only=True)
class Part:
    """An object of JSON whose keys are the fields; `more` holds all other keys."""

    more: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The dictionary for JSON."""
        found = dict(self.more)
        for each in fields(self):
            value = getattr(self, each.name)
            absent = value is None and "optional" in each.metadata
            if each.name != "more" and not absent:
                found[each.name] = value
        return jsonable(found)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Any:
        """The part from a dictionary of JSON. Raises DataError for a missing key."""
        kinds, more = get_type_hints(cls), dict(data)
        given = {name: _read(kinds[name], more.pop(name)) for name in kinds if name in more}
        for each in fields(cls):
            needed = each.default is MISSING and each.default_factory is MISSING
            if needed and each.name not in given:
                raise DataError(f"expected a key {each.name!r} in the {cls.__name__} of a run")
        return cls(**given, more=more)


def _read(kind, value):
    """A value of JSON in the type of its field: parts become objects, "inf" becomes infinity."""
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if value == "inf" and float in kinds:
        return math.inf
    kind = kinds[0]
    part = get_args(kind)[-1] if get_args(kind) else kind
    if value is None or not hasattr(part, "from_json"):
        return value
    if get_origin(kind) is list:
        return [part.from_json(each) for each in value]
    if get_origin(kind) is dict:
        return {name: part.from_json(each) for name, each in value.items()}
    return part.from_json(value)


@dataclass(frozen=True, kw_only=True)
class ClippedGroup(Part):
    """Parameters that are clipped together. Fields of the noise are None if it depends on the
    step.
    """

    name: str
    clip_norm: float | dict  # or the JSON of a schedule
    noise_multiplier: float | dict
    noise_std_on_sum: float | None = None
    noise_std_on_mean: float | None = None
    sensitivity: float | None = None
    sensitivity_factor: float
    grid: float | None = None
    parameters: list[str]


@dataclass(frozen=True, kw_only=True)
class Release(Part):
    """A release before the first step, and the event that was charged for it."""

    name: str
    what: str
    event: dict
    noise_multiplier: float | None


@dataclass(frozen=True, kw_only=True)
class Setting(Part):
    """The settings of a run, requested or derived from its plan; more: {NAME_noise_multiplier} of
    the releases.
    """

    dataset_size: float
    planned_steps: int
    accountant: str
    target_epsilon: float
    delta: float
    augmentation_multiplicity: int
    optimizer: str
    average: float
    learning_rate: float | dict
    expected_lot_size: float
    sampling_probability: float
    sampler: str
    period: int
    clip_groups: list[ClippedGroup]
    setup: list[Release] | None = optional()  # not known yet in config.json


@dataclass(frozen=True, kw_only=True)
class Epsilon(Part):
    """Epsilon by one accountant: a bound, or an approximation."""

    lower: float | None
    estimate: float | None
    upper: float | None
    fallback: str | None = optional()
    kind: str | None = optional()
    note: str | None = optional()


@dataclass(frozen=True, kw_only=True)
class GroupEpsilon(Part):
    """Epsilon for `size` examples together."""

    size: int
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class Tested(Part):
    """Log loss on the public test rows, and for comparison a constant answer: the log loss of the
    classes' shares in these rows, and the accuracy of the most frequent class.
    """

    loss: float
    constant_loss: float
    majority_accuracy: float
    shares: list[float] | None = optional()

    @classmethod
    def of_shares(cls, loss: float, shares: list[float]) -> Any:
        """The figures of a constant answer from the shares of the classes, which sum to at most
        1.
        """
        constant = -math.fsum(share * math.log(share) for share in shares if share > 0)
        return cls(loss=loss, constant_loss=constant, majority_accuracy=max(shares), shares=shares)


@dataclass(frozen=True, kw_only=True)
class Memory(Part):
    """Bytes that the explicit gradients of a lot need, and the most bytes that they may take at
    once.
    """

    lot: int
    budget: int


@dataclass(frozen=True, kw_only=True)
class RowBits(Part):
    """The result of the trial of float64 (`run.row_bits`) before the first step."""

    dtype: str | None = optional()
    rows: int | None = optional()
    kernels: str | None = optional()
    differ: list[str] | None = optional()


@dataclass(frozen=True, kw_only=True)
class Config(Part):
    """The content of config.json: facts that are known before the first charge, and must not change
    when the run is resumed.
    """

    seed: int | None
    generator: str
    arithmetic: str
    unit: str
    rows_per_person: int | None
    device: str
    dataset_sha256: str | None
    settings: Setting
    trained: dict[str, Any] | None = optional()  # names of the loss and the layers
    facts: dict[str, list[str]] | None = optional()  # `public` and `disclosed` of the Record


@dataclass(frozen=True, kw_only=True)
class Record(Config):
    """The content of result.json. Fields that are known only at the end of the run are None until
    then.
    """

    experiment: str
    dataset: str
    notice: str
    ranks: int
    gradients: str
    command: str
    config: dict[str, Any]
    public: list[str]
    disclosed: list[str]
    choices: dict[str, str]
    reproducible: bool
    statement_format: int
    commit: str | None

    sampler: str = LATER
    relation: str = LATER
    steps_charged: int = LATER
    setup_charged: int = LATER
    earlier_lots_charged: int = LATER
    epochs: float = LATER
    epsilon: dict[str, Epsilon] = LATER
    epsilon_without_amplification: Epsilon = LATER
    group: GroupEpsilon | None = LATER
    meaning: dict[str, Any] | None = LATER  # as run.attacker gives it
    accountant: str = LATER
    delta: float = LATER
    target_epsilon: float | None = LATER
    ledger_sha256: str = LATER

    gradients_ran: dict[str, list[str]] = LATER
    gradients_bytes: Memory | None = optional()
    row_bits: RowBits | None = LATER
    rows_checked: bool = LATER
    weighted: bool = LATER
    shared_ledger: float | None = optional()
    day: str = LATER
    steps: int = LATER
    stopped: str = LATER
    test_accuracy: float | None = LATER
    train_accuracy: float | None = LATER
    test_r2: float | None = LATER
    test: Tested | None = optional()
    train_r2: float | None = LATER
    not_private: list[str] = LATER
    not_for_release: list[str] = LATER
    seconds_total: float = LATER
    seconds_per_step: float | None = LATER
    versions: dict[str, Any] = LATER
    statement_sha256: str = LATER

    def to_json(self) -> dict[str, Any]:
        """The dictionary that JSON holds; how the run ended comes first."""
        found = super().to_json()
        return {name: found[name] for name in ("stopped", "steps") if name in found} | found

    @property
    def began(self) -> Config:
        """The dictionary for config.json."""
        known = {each.name: getattr(self, each.name) for each in fields(Config)}
        asked = replace(self.settings, setup=None, more={})
        return Config(**known | {"settings": asked, "more": self.config})

    @property
    def quoted(self) -> str | None:
        """The name of the accountant whose bound is to be quoted; None without a finite bound."""
        return row_to_quote({name: row.to_json() for name, row in self.epsilon.items()})

    @property
    def parameters(self) -> list[str]:
        """Names of all parameters that are trained."""
        return [name for group in self.settings.clip_groups for name in group.parameters]
