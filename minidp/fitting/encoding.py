"""Tables as the arrays and settings that training needs."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..data.arrays import one_axis
from ..data.schema import Schema
from ..data.tables import numbers_of, table_of
from ..errors import DtypeError, ParameterError
from ..util.program import program
from .settings import Settings


def public_rows(x: Any, test: Any, settings: Settings) -> Any:
    """The public (x, y) of `test` or `settings.validation`, None without. Raises ParameterError for
    both, for what is no pair, and for the training rows.
    """
    public = settings.validation if test is None else test
    if settings.validation is not None and test is not None:
        raise ParameterError(
            "expected validation= or test=, got both: evaluate the test set afterwards, by score"
        )
    if public is not None and not (isinstance(public, (tuple, list)) and len(public) == 2):
        raise ParameterError("expected validation or test to be a pair (x, y)")
    if public is not None and public[0] is x:
        raise ParameterError(
            "expected public rows for validation or test, got the training rows: what is measured "
            "or chosen on them would not be private"
        )
    return public


def encoded(
    x: Any, y: Any, public: Any, settings: Settings
) -> tuple[Any, Any, Any, Settings, list[str] | None]:
    """(x, y, public (x, y), settings, names of the table's columns or None): tables become arrays,
    without the column of persons, which `settings.person` then is.

    Raises ParameterError for settings that a schema replaces, for columns that schema and table do
    not share, and for a y that is nowhere; DtypeError for texts without a schema.
    """
    table, person = table_of(x), settings.person
    if isinstance(person, str):
        if table is None or person not in table:
            raise ParameterError(
                f"person={person!r}: expected the name of a column of x, or an array with the "
                "person of each row"
            )
        settings = replace(settings, person=table.pop(person))
    if settings.schema is not None:
        settings = _of_schema(settings)
        if isinstance(person, str) and person in [each.name for each in settings.schema.inputs]:
            raise ParameterError(
                f"schema: the column {person} says whose row each is, and is no input: call it "
                '{"type": "ignore"}, or leave it out'
            )
        if table is not None:
            settings.schema.check_names(table)
    names = None if table is None else list(table)
    x, y = _arrays(x if table is None else table, y, settings.schema, names)
    if public is not None:
        public = _arrays(public[0], public[1], settings.schema, names)
    return x, y, public, settings, names


def _of_schema(settings):
    """The settings with the schema as a Schema, and what it says of the label."""
    schema = Schema.of(settings.schema)
    given = [name for name in ("scale", "bounds") if getattr(settings, name) not in (None, "auto")]
    if given:
        raise ParameterError(f"expected schema= or {given[0]}=, got both: a schema has the bounds")
    label = schema.label
    if label is None:
        return replace(settings, schema=schema)
    if settings.classes is not None or settings.target_bounds is not None:
        raise ParameterError(
            f"expected classes= and target_bounds= only if the schema has no label, got them "
            f"beside {label.name}"
        )
    if label.type == "category":
        return replace(settings, schema=schema, classes=np.array(label.values))
    return replace(settings, schema=schema, target_bounds=(label.low, label.high))


def _arrays(x, y, schema, names):
    """(x, y) as arrays; y None: the schema's label column of x."""
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
