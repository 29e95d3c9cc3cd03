"""Events as JSON and back."""

import math
from typing import Any

from ..errors import DataError, ParameterError
from . import events
from .events import Event

EVENTS = {
    name: value
    for name, value in vars(events).items()
    if isinstance(value, type) and issubclass(value, Event) and value is not Event
}


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
        # "event" is the class's name
        **{
            "inner" if name == "event" else name: _to_json(value)
            for name, value in vars(event).items()
        },
    }


def event_from_json(data: Any) -> Event:
    """The event that `event_to_json` wrote. Raises DataError for anything else."""
    name = data.get("event") if isinstance(data, dict) else data
    if not isinstance(name, str) or name not in EVENTS:
        raise DataError(
            f"expected an event of {', '.join(EVENTS)}, got {name!r}; refused, since its cost is "
            "unknown"
        )
    values = {
        "event" if key == "inner" else key: _from_json(value)
        for key, value in data.items()
        if key != "event"
    }
    try:
        return EVENTS[name](**values)
    except (ParameterError, TypeError, OverflowError) as error:
        raise DataError(f"{name}: {error}") from error
