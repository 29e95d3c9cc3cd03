"""Training data in the form that a fit needs, and the training itself."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..backend import Backend
from ..data.arrays import Inputs, as_weights, one_axis
from ..data.examples import LabelledExamples
from ..data.labels import as_target_bounds, targets_of
from ..data.persons import Persons, persons_of
from ..data.schema import Schema
from ..data.tables import numbers_of, table_of
from ..errors import DivergedError, DtypeError, ParameterError, ShapeError
from ..privacy import Ledger
from ..run import Model
from ..run.shared_ledger import spent_of
from ..util.notices import say
from ..util.program import program
from ..util.text import listed
from ..util.validate import count, same_batch
from .outputs import scaled

SPARSE = 1 / 32  # lots below this share of the rows touch few pages of a memory map
FAR = 10  # times the rows, or persons, or a tenth: a public N that is probably a mistake


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
    person: str | None  # the column of persons

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


def data_of(x, y, test, settings):
    """(Data, settings) of what `fit` is given. Raises, before any charge, unless rows, targets,
    persons, weights and public rows fit each other and the settings.
    """
    _refuse_training_rows(test, x)
    table, person = table_of(x), settings.person
    named = person if isinstance(person, str) else None
    if named is not None:
        if table is None or named not in table:
            raise ParameterError(
                f"person={named!r}: expected the name of a column of x, or an array with the "
                "person of each row"
            )
        person = table.pop(named)
    if settings.schema is not None:
        settings = _of_schema(settings, named)
        if table is not None:
            settings.schema.check_names(table)
    columns, schema = None if table is None else list(table), settings.schema
    x, y = _arrays(x if table is None else table, y, schema, columns)
    bounds, weight = settings.target_bounds, settings.example_weight
    if bounds is not None:
        bounds = as_target_bounds(bounds)
    backend = Backend.pick(settings.device)
    inputs = Inputs(x, backend, dtype=settings.dtype)
    if not inputs.shape[0] and settings.dataset_size is None:
        raise ShapeError(f"fit: expected rows to train on, got x of shape {inputs.shape}: no rows")
    targets, labels = targets_of(y, settings.classes, bounds)
    persons = persons_of(person, settings.rows_per_person, inputs.shape[0])
    weight = None if weight is None else as_weights(weight)
    units = len(LabelledExamples(inputs, targets, 1, weight, persons))  # which fit each other
    public = None
    if test is not None:
        public_x, public_y = _arrays(*test, schema, columns)
        public_x = Inputs(public_x, backend, dtype=settings.dtype)
        public_y = targets_of(public_y, labels, bounds)[0]
        if public_x.shape[1:] != inputs.shape[1:]:
            raise ShapeError(
                f"fit: expected public x of rows {inputs.shape[1:]} as the training data's, got "
                f"{public_x.shape[1:]}"
            )
        same_batch("public data", x=public_x, y=public_y)
        public = public_x, backend.asarray(public_y)
    size = units if settings.dataset_size is None else settings.dataset_size
    count(1, dataset_size=size)
    _remark_size(size, units)
    data = Data(
        inputs,
        backend.asarray(targets),
        labels,
        bounds,
        None if weight is None else backend.asarray(weight),
        persons,
        public,
        size,
        _disclosed(settings, labels, persons, units, columns),
        columns,
        named,
    )
    return data, settings


def _refuse_training_rows(test, x):
    """Raise ParameterError if the public rows `test` are the training rows x."""
    if test is not None and _same_rows(test[0], x):
        raise ParameterError(
            "expected public rows for test, got the training rows: what is measured on them would "
            "not be private"
        )


def _same_rows(public, x):
    """Whether both are the same object, arrays with the same numbers, or tables in which all
    columns that both have hold the same.
    """
    if public is x:
        return True
    tables = table_of(public), table_of(x)
    if None not in tables:
        shared = tables[0].keys() & tables[1].keys()
        return bool(shared) and all(
            _same_rows(*(table[name] for table in tables)) for name in shared
        )
    arrays = isinstance(public, np.ndarray) and isinstance(x, np.ndarray)
    if not arrays or public.shape != x.shape:
        return False
    if "O" in public.dtype.kind + x.dtype.kind:
        return [*map(str, public.flat)] == [*map(str, x.flat)]
    return bool(np.all((public == x) | (public != public) & (x != x)))


def _of_schema(settings, person):
    """The settings with the schema as a Schema, and what it says of the label."""
    schema = Schema.of(settings.schema)
    given = [name for name in ("scale", "bounds") if getattr(settings, name) not in (None, "auto")]
    if given:
        raise ParameterError(f"expected schema= or {given[0]}=, got both: a schema has the bounds")
    if person in [each.name for each in schema.inputs]:
        raise ParameterError(
            f"schema: the column {person} says whose row each is, and is no input: call it "
            '{"type": "ignore"}, or leave it out'
        )
    settings, label = replace(settings, schema=schema), schema.label
    if label is None:
        return settings
    if settings.classes is not None or settings.target_bounds is not None:
        raise ParameterError(
            f"expected classes= and target_bounds= only if the schema has no label, got them "
            f"beside {label.name}"
        )
    if label.type == "category":
        return replace(settings, classes=np.array(label.values))
    return replace(settings, target_bounds=(label.low, label.high))


def _arrays(x, y, schema, names):
    """(x, y) as arrays; y None: the schema's label column of x. names: the columns of the table."""
    table = table_of(x)
    if schema is None and table is None:
        return x, y
    if schema is None:
        try:
            return numbers_of(table, names), y
        except DtypeError as error:
            raise DtypeError(
                f"x: {error}; drop them, or describe the table in a public schema, schema=FILE: "
                f"`{program()} schema TABLE.csv --label COLUMN --out schema.json` writes a draft"
            ) from None
    label = schema.label
    if y is None:
        if table is None or label is None or label.name not in table:
            raise ParameterError(
                'expected y, or a table with the column that the schema marks by "role": "label"'
            )
        y = table[label.name]
    return schema.encode(x), y if label is None else label.labels(one_axis(y))


def _remark_size(size, units):
    """Tell the data's owner, on the screen alone, that the public N is far from the truth."""
    wrong, then = "large", "lots are smaller than planned, and the noise is too much for so few"
    if size < units:
        wrong, then = "small", "lots are larger than planned, and delta is too large for so many"
    if not size / FAR <= units <= size * FAR:
        say(
            f"NOTICE: dataset_size={size} is more than {FAR} times too {wrong} for the data here: "
            f"{then}. This line is for the owner of the data, and is in no file"
        )


def _disclosed(settings, labels, persons, units, columns):
    """Lines for the statement on what was read from the data and is not protected."""
    disclosed = []
    if settings.schema is not None and (names := settings.schema.from_data):
        disclosed.append(
            f"the types, and the categories if there are any, of the columns {listed(names)}"
        )
    if labels is not None and settings.classes is None:
        disclosed.append(f"which classes there are: {listed(labels)}")
    if settings.dataset_size is None:
        disclosed.append(f"the number of {'rows' if persons is None else 'persons'}, {units}")
    if columns and settings.schema is None:
        disclosed.append("the names of the columns")
    return disclosed


def train(run, data, head, ledger):
    """Release the scaling, then train; returns the result, None if interrupted."""
    layers = head.layers(run)
    inputs = scaled(data.inputs, layers)
    if run.plan.expected_lot_size < SPARSE * data.size and isinstance(inputs, Inputs):
        inputs.read_at_random()
    measured = ()
    if data.measured is not None:
        x, y = data.measured
        measured = scaled(x, layers), y
    about = {"scale": head.scale, "columns": data.columns}
    if head.schema is not None:
        about["schema"] = head.schema
    try:
        return run.train(
            inputs,
            data.targets,
            *measured,
            example_weight=data.weight,
            person=data.persons,
            model=data.model([*layers, *run.network.layers], **about),
            about=lambda: sum_of(ledger, run),
        )
    except DivergedError as error:
        if ledger is None:
            raise
        raise DivergedError(
            f"{error}; {ledger} holds the charge of all {run.plan.steps} lots"
        ) from None


def sum_of(ledger, run):
    """{"shared_ledger": epsilon of all fits in it so far}; {} without one."""
    if ledger is None:
        return {}
    return {"shared_ledger": spent_of(Ledger.load(ledger), run.budget)}
