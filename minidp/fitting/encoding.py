"""Tables that a schema describes, as the arrays and settings that training needs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.persons import in_table, person_column
from ..data.tables import Schema, cells_of, names_of
from ..errors import ParameterError, ShapeError
from .settings import Settings


def encoded(x: Any, y: Any, test: Any, settings: Settings) -> tuple[Any, Any, Any, Settings]:
    """(x, y, test, settings), with tables encoded by `settings.schema`, which becomes a Schema;
    unchanged without one.

    Raises ParameterError for settings that a schema replaces, for columns that schema and table do
    not share, and for a y that is nowhere.
    """
    if settings.schema is None:
        return x, y, test, settings
    schema = Schema.of(settings.schema)
    given = [name for name in ("scale", "bounds") if getattr(settings, name) not in (None, "auto")]
    if given:
        raise ParameterError(f"expected schema= or {given[0]}=, got both: a schema has the bounds")
    schema.check_names(x)
    if schema.label is not None:
        settings = _with_label(settings, schema.label)

    def pair(table: Any, labels: Any) -> tuple[Any, Any]:
        return _pair(schema, table, labels)

    x, y = pair(x, y)
    settings = replace(settings, schema=schema, validation=_public(settings.validation, pair))
    return x, y, _public(test, pair), settings


def without_person(x: Any, test: Any, settings: Settings) -> tuple[Any, Any, Settings]:
    """(x, test, settings) where the column that `settings.person` names is in no table any more,
    and `settings.person` is the column. Raises ParameterError if x has none.
    """
    name = settings.person
    if not isinstance(name, str):
        return x, test, settings
    rest, person = person_column(x, name)

    def pair(table: Any, labels: Any) -> tuple[Any, Any]:
        if table is x:
            return rest, labels
        return (person_column(table, name)[0] if in_table(table, name) else table), labels

    public = _public(settings.validation, pair)
    return rest, _public(test, pair), replace(settings, person=person, validation=public)


def _with_label(settings: Settings, label: Any) -> Settings:
    """The settings with the classes or bounds of the schema's label."""
    if settings.classes is not None or settings.target_bounds is not None:
        raise ParameterError(
            f"expected classes= and target_bounds= only if the schema has no label, got them "
            f"beside {label.name}"
        )
    if label.type == "category":
        return replace(settings, classes=np.array(label.values))
    return replace(settings, target_bounds=(label.low, label.high))


def _pair(schema, table, labels):
    """(encoded rows, labels) of a table; labels None: those of the schema's label column."""
    label, names = schema.label, names_of(table)
    if labels is None:
        if label is None or label.name not in names:
            raise ParameterError(
                'expected y, or a table with the column that the schema marks by "role": "label"'
            )
        labels = cells_of(table, names[label.name])
    if label is not None:
        labels = label.labels(_array(labels))
    return schema.encode(table), labels


def _array(labels):
    found = labels.to_numpy() if hasattr(labels, "to_numpy") else np.asarray(labels)
    if found.ndim != 1:
        raise ShapeError(f"y: expected one label or target for each row, got {found.shape}")
    return found


def _public(rows: Any, pair: Callable[[Any, Any], tuple[Any, Any]]) -> Any:
    """A public (x, y), encoded; what is no pair is refused later."""
    if isinstance(rows, (tuple, list)) and len(rows) == 2:
        return pair(*rows)
    return rows
