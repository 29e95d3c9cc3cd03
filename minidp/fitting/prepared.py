"""Training data in the form that a fit needs, parts of them, and the training itself."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..data.arrays import Inputs
from ..data.persons import Persons
from ..errors import DivergedError
from ..privacy import Ledger
from ..run import Model, Run
from ..run.shared import spent_of
from ..util.atomic import StrPath
from .heads import scaled
from .subgroups import figures_of

SPARSE = 1 / 32  # lots below this share of the rows touch few pages of a memory map


@dataclass
class Data:
    """The training data, and what the run discloses about them."""

    inputs: Inputs
    targets: NDArray
    labels: Any  # the classes, None of a regression
    target_bounds: tuple[float, float] | None
    weight: NDArray | None
    persons: Persons | None
    measured: tuple[Inputs, NDArray] | None  # public (x, y)
    size: int  # N, public
    disclosed: list[str]
    columns: list[str] | None
    subgroups: dict[str, NDArray]
    person: str | None = None  # the column of persons

    @property
    def shape(self):
        """The shape of one row."""
        return self.inputs.shape[1:]

    @property
    def outputs(self):
        """The network's number of outputs."""
        return 1 if self.labels is None else len(self.labels)

    @property
    def units(self):
        """How many rows there are, or persons; not public."""
        return self.inputs.shape[0] if self.persons is None else len(self.persons)

    def model(self, layers, **about):
        """The model of these layers."""
        network = nn.Sequential(layers, self.shape)
        return Model(network, self.labels, self.target_bounds, about)

    def part(self, chosen: NDArray, size: int) -> "Data":
        """The data of some rows, or persons: chosen (units,) bool; size: their public number."""
        inputs, weight, persons = self.inputs, self.weight, self.persons
        rows = np.flatnonzero(chosen if persons is None else chosen[persons.number])
        if persons is not None:
            persons = Persons(persons.number[rows], persons.rows_per_person)
        asarray = inputs.backend.asarray
        return replace(
            self,
            inputs=Inputs(_Rows(inputs.source, rows), inputs.backend),
            targets=self.targets[asarray(rows)],
            weight=None if weight is None else weight[asarray(np.flatnonzero(chosen))],
            persons=persons,
            size=size,
        )


def train(run, data, head, ledger, layers=None):
    """Release the scaling, unless the fixed layers are given, then train; returns the result, None
    if interrupted.
    """
    if layers is None:
        layers = head.layers(run, data.inputs, data.size, data.persons)
    inputs = scaled(data.inputs, layers, head.arithmetic)
    if run.plan.expected_lot_size < SPARSE * data.size and isinstance(inputs, Inputs):
        inputs.read_at_random()
    measured = ()
    if data.measured is not None:
        x, y = data.measured
        measured = scaled(x, layers, head.arithmetic), y
    about = {"scale": head.scale, "columns": data.columns}
    if head.schema is not None:
        about["schema"] = head.schema
    model = data.model([*layers, *run.network.layers], **about)
    try:
        return run.train(
            inputs,
            data.targets,
            *measured,
            example_weight=data.weight,
            person=data.persons,
            model=model,
            about=lambda: {**figures_of(run, data.subgroups, *measured), **sum_of(ledger, run)},
        )
    except DivergedError as error:
        if ledger is None:
            raise
        raise DivergedError(
            f"{error}; {ledger} holds the charge of all {run.plan.steps} lots"
        ) from None


def sum_of(ledger: StrPath | None, run: Run) -> dict[str, float]:
    """{"shared_ledger": epsilon of all fits in it so far}; {} without one."""
    if ledger is None:
        return {}
    return {"shared_ledger": spent_of(Ledger.load(ledger), run.budget)}


class _Rows:
    """Some rows of a source, by their numbers; not copied."""

    def __init__(self, source, rows):
        self.source, self.rows = source, rows
        self.shape, self.dtype = (len(rows), *source.shape[1:]), source.dtype

    def __getitem__(self, places):
        rows = self.rows[places]
        return self.source.take(rows, axis=0) if hasattr(self.source, "take") else self.source[rows]
