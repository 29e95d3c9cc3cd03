"""Events as JSON and back."""

import math
from dataclasses import fields
from typing import Any

from .. import given
from ..errors import DataError, ParameterError
from . import events
from .events import Event

EVENTS = {
    name: value
    for name, value in vars(events).items()
    if isinstance(value, type) and issubclass(value, Event) and value is not Event
}
_KEYS = {"event": "inner"}  # of fields in JSON, where "event" is the class's name


def number_to_json(value: float) -> float | str:
    """A number for JSON: infinity becomes the string "inf"."""
    return "inf" if value == math.inf else value


def _to_json(value):
    if isinstance(value, tuple):
        return [_to_json(each) for each in value]
    return event_to_json(value) if isinstance(value, Event) else number_to_json(value)


def _from_json(value):
    if isinstance(value, list):
        return tuple(_from_json(each) for each in value)
    return (
        event_from_json(value) if isinstance(value, dict) else math.inf if value == "inf" else value
    )


def event_to_json(event: Event) -> dict[str, Any]:
    """The event as plain dictionaries, lists, numbers and strings."""
    return {
        "event": type(event).__name__,
        **{_KEYS.get(name, name): _to_json(value) for name, value in vars(event).items()},
    }


def event_from_json(data: Any) -> Event:
    """The event that `event_to_json` wrote; DataError for anything else."""
    name = data.get("event") if isinstance(data, dict) else data
    known = EVENTS | given.SEARCHES
    if not isinstance(name, str) or name not in known:
        raise DataError(
            f"expected an event of {', '.join(known)}, got {name!r}; refused, since its cost is "
            "unknown"
        )
    cls = known[name]
    keys = {_KEYS.get(field.name, field.name): field.name for field in fields(cls)}
    stated = [key for key in data if key != "event"]
    if sorted(keys) != sorted(stated):
        raise DataError(
            f"{name}: expected the fields {', '.join(keys) or 'none'}, got "
            f"{', '.join(stated) or 'none'}"
        )
    values = {field: _from_json(data[key]) for key, field in keys.items()}
    try:
        return cls(**values)
    except (ParameterError, TypeError, OverflowError) as error:
        raise DataError(f"{cls.__name__}: {error}") from error
