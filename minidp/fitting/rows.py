"""The rows for `fit`, checked and converted to the form that training needs."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import Backend
from ..data.arrays import ASIDE, OWNER, Inputs, one_axis
from ..data.cells import text_in
from ..data.files import labels_of
from ..data.labels import as_target_bounds, class_labels, numbers_to_predict
from ..data.persons import as_one, remark_names
from ..data.schema import Schema
from ..data.tables import numbers_of, table_of
from ..errors import DtypeError, ParameterError, ShapeError
from ..examples import check_weights
from ..run.program import program
from ..units import Units, units_of
from ..util.notices import say
from ..util.text import listed
from ..util.validate import count, same_batch

SOME = 0.05  # share of a column's cells that do not fit, from which on its owner is told
FAR = 10  # times the rows, or persons, or a tenth: a public N that is probably a mistake

FACTS = {  # in words: keys of a column's entry
    "the types": ("type",),
    "the limits": ("low", "high"),
    "the categories": ("values",),
    "which are gaps": ("gaps",),
    "the formats": ("format",),
    "which one is the label": ("role",),
}


@dataclass
class Data:
    """The training data, and the facts that the run discloses about them."""

    inputs: Inputs
    targets: NDArray
    labels: Any  # the classes, None of a regression
    target_bounds: tuple[float, float] | None
    weight: NDArray | None
    units: Units  # their number is not public
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


def data_of(x, y, test, settings):
    """(Data, settings) from the arguments of `fit`. Raises, before any charge, unless rows,
    targets, persons, weights and public rows fit each other and the settings.
    """
    _check_indices(x, y=y, person=settings.person)
    _check_weight_index(x, settings.person, settings.example_weight)
    if isinstance(x, (str, os.PathLike)) and settings.source is None:
        settings = replace(settings, source=Path(x).name)
    table, y = _tabled(x, y, settings)
    person, column = settings.person, None
    if isinstance(person, str):
        column = person
        if table is None or column not in table:
            raise ParameterError(
                f"person={column!r}: expected the name of a column of x, or an array with the "
                "person of each row"
            )
        person = table.pop(column)
        _check_apart(column, person, test)
    if table is not None and person is None:
        remark_names(table)
    if settings.schema is not None:
        settings = _of_schema(settings, column, table)
    door = _Door(settings, None if table is None else list(table))
    inputs, targets = door.rows(x if table is None else table, y)
    if not inputs.shape[0] and settings.dataset_size is None:
        raise ShapeError(f"fit: expected rows to train on, got x of shape {inputs.shape}: no rows")
    units = units_of(person, settings.rows_per_person, inputs.shape[0])
    weight = settings.example_weight
    if weight is not None:
        weight = one_axis(weight, "example_weight")
        if weight.dtype.kind not in "iubf":
            raise DtypeError(
                f"example_weight: expected numbers in [0, 1], got dtype {weight.dtype}"
            )
        weight = weight.astype(np.float32)
    same_batch("fit", x=inputs, y=targets)
    check_weights(weight, units)
    public = None if test is None else _public_rows(door, test, inputs, settings)
    size = len(units) if settings.dataset_size is None else settings.dataset_size
    count(1, dataset_size=size)
    _remark_size(size, len(units))
    data = Data(
        inputs,
        door.backend.asarray(targets),
        door.classes,
        door.target_bounds,
        None if weight is None else door.backend.asarray(weight),
        units,
        public,
        size,
        _disclosed(settings, door, units),
        door.columns,
        column,
    )
    return data, settings


def _check_indices(x, **named):
    """Raise ParameterError if x and another object are of pandas and their indexes differ."""
    index = getattr(x, "index", None)
    for name, given in named.items():
        other = getattr(given, "index", None)
        if hasattr(index, "equals") and hasattr(other, "equals") and not index.equals(other):
            raise ParameterError(
                f"{name}: its index is not that of x, and rows are taken by their places: give "
                f"{name}.loc[x.index], or {name}.to_numpy() if the order is right"
            )


def _check_weight_index(x, person, weight):
    """Raise ParameterError for weights of pandas whose order may differ from that of the units."""
    if person is None:
        _check_indices(x, example_weight=weight)
    elif hasattr(getattr(weight, "index", None), "equals"):
        raise ParameterError(
            "example_weight: with persons, weights are taken in the order of the persons' sorted "
            "names, and not by an index: give example_weight.sort_index().to_numpy() if its index "
            "holds every name once"
        )


def _check_apart(column, person, test):
    """Raise ParameterError if a person is both in the table and in the table of the test."""
    others = None if test is None else table_of(test[0])
    if others is None or column not in others:
        return
    names = {as_one(text_in(name)) for name in others[column].tolist()}
    if both := names.intersection(as_one(text_in(name)) for name in person.tolist()):
        raise ParameterError(
            f"test: {len(both)} of its {len(names)} persons are also trained on, so that epsilon "
            "does not cover what is measured on them; split the table by the column "
            f"{column}, not by rows. {OWNER}"
        )


def _tabled(x, y, settings):
    """(columns of a table, or None for other x; y). By default y is the column that `label` names,
    which is then not an input.
    """
    table, label = table_of(x), settings.label
    marked = None if settings.schema is None else Schema.of(settings.schema).label
    if label is None or marked is not None and marked.name == label:
        return table, y
    if y is not None or marked is not None or label not in (table or {}):
        raise ParameterError(
            f"label={label!r}: expected the name of a column of x, without y, and the one that the "
            "schema marks, if it marks one"
        )
    cells = table.pop(label)
    if isinstance(x, (str, os.PathLike)):
        cells = labels_of(cells.tolist(), np.asarray(settings.classes).dtype.kind == "U")
    return table, cells


class _Door:
    """Converts arrays, memory maps, tables and indexable objects to `Inputs` and targets: first the
    training rows, then public rows in the same way.
    """

    def __init__(self, settings, columns):
        self.schema, self.columns, self.classes = settings.schema, columns, settings.classes
        bounds = settings.target_bounds
        self.target_bounds = None if bounds is None else as_target_bounds(bounds, unknown=True)
        self.backend, self.dtype = Backend.pick(settings.device), settings.dtype
        self.told: set[str] = set()

    def rows(self, x, y):
        """(Inputs, targets) of rows with their labels or targets; also keeps the list of
        classes.
        """
        if self.schema is not None:
            for line in self.schema.fell_out(table_of(x) or {}, SOME):
                name = line.partition(":")[0]
                if name not in self.told:  # of the training rows
                    say(f"NOTICE: {line}. {ASIDE}")
                self.told.add(name)
            x, y = self.schema.read(x, y)
            if refused := self.schema.refused(x):
                say(
                    f"NOTICE: the columns {listed(refused)} hold text in place of a number or "
                    f'date that "gaps" does not list, or what gaps=false rules out. {ASIDE}'
                )
        else:
            x = self._numbers(x)
        inputs = Inputs(x, self.backend, dtype=self.dtype)
        if self.target_bounds is None:
            targets, self.classes = class_labels(y, self.classes)
        elif self.classes is not None:
            raise ParameterError("expected classes= or target_bounds=, got both")
        else:
            targets = numbers_to_predict(y)
            self._remark_target(targets)
        return inputs, targets

    def _remark_target(self, y):
        """Print a NOTICE if targets are beyond their bounds."""
        low, high = self.target_bounds
        beyond = ((y < low) | (y > high)).sum()
        if beyond > SOME * len(y):
            say(
                f"NOTICE: {beyond} of {len(y)} targets are beyond target_bounds=({low:g}, "
                f"{high:g}), and are taken for the nearer one. {ASIDE}"
            )

    def _numbers(self, x):
        try:
            return numbers_of(x, self.columns)
        except DtypeError as error:
            raise DtypeError(
                f"x: {error}; drop them, or describe the table in a public schema, schema=FILE: "
                f"`{program()} schema TABLE.csv --label COLUMN --out schema.json` writes a draft"
            ) from None


def _public_rows(door, test, training, settings):
    """(Inputs, targets) of public rows. Raises ShapeError unless they are like the training inputs,
    ParameterError if they are the same.
    """
    table, y = _tabled(*test, settings)
    inputs, targets = door.rows(test[0] if table is None else table, y)
    if inputs.shape[1:] != training.shape[1:]:
        raise ShapeError(
            f"fit: expected public x of rows {training.shape[1:]} as the training data's, got "
            f"{inputs.shape[1:]}"
        )
    same_batch("public data", x=inputs, y=targets)
    if not len(targets):
        raise ParameterError("expected public rows for test, got none: leave test out")
    given, private = inputs.source, training.source
    arrays = isinstance(given, np.ndarray) and isinstance(private, np.ndarray)
    if given is private or arrays and np.array_equal(given, private, equal_nan=True):
        raise ParameterError(
            "expected public rows for test, got the training rows: what is measured on them would "
            "not be private"
        )
    return inputs, door.backend.asarray(targets)


def _of_schema(settings, person, table):
    """The settings with the schema as a Schema, and with its facts on the label. Raises
    ParameterError unless it fits the other settings and the columns of the table.
    """
    schema = Schema.of(settings.schema)
    if settings.bounds is not None:
        raise ParameterError("expected schema= or bounds=, got both: a schema has the bounds")
    if person in [each.name for each in schema.inputs]:
        raise ParameterError(
            f"schema: the column {person} says whose row each is, and is no input: call it "
            '{"type": "ignore"}, or leave it out'
        )
    if table is not None:
        schema.check_names(table)
    settings, label = replace(settings, schema=schema), schema.label
    if label is None:
        return settings
    if settings.classes is not None or settings.target_bounds is not None:
        raise ParameterError(
            f"expected classes= and target_bounds= only if the schema has no label, got them "
            f"beside {label.name}"
        )
    if label.values:
        return replace(settings, classes=np.array(label.values))
    return replace(settings, target_bounds=(label.low, label.high))


def _remark_size(size, units):
    """Print a NOTICE if the public N is far from the true number."""
    wrong, then = "large", "lots are smaller than planned, and the noise is too much for so few"
    if size < units:
        wrong, then = "small", "lots are larger than planned, and delta is too large for so many"
    if not size / FAR <= units <= size * FAR:
        say(
            f"NOTICE: dataset_size={size} is more than {FAR} times too {wrong} for the data here: "
            f"{then}. This line is for the owner of the data, and is in no file"
        )


def _disclosed(settings, door, units):
    """Lines for the statement on facts that were read from the data and are not protected."""
    disclosed = []
    if settings.schema is not None and (names := settings.schema.from_data):
        entries = [each.entry for each in settings.schema.columns if each.from_data]
        keys = {key for entry in entries for key, value in entry.items() if value is not None}
        facts = listed([words for words, found in FACTS.items() if keys.intersection(found)])
        disclosed.append(f"as the schema has them: {facts} of the columns {listed(names)}")
    if door.classes is not None and settings.classes is None:
        disclosed.append(f"which classes there are: {listed(door.classes)}")
    if settings.dataset_size is None:
        disclosed.append(f"the number of {units.name}s, {len(units)}")
    if door.columns and settings.schema is None:
        disclosed.append("the names of the columns")
    return disclosed
