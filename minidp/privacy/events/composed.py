"""Several events: in sequence, and the same one repeated."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from .base import Event, check_event, check_releases, number, releases


class Several(Event):
    """Base of events that consist of a sequence of events."""

    events: Sequence[Event]

    def __post_init__(self):
        object.__setattr__(self, "events", tuple(self.events))
        for event in self.events:
            check_event(type(self).__name__, event)


@dataclass(frozen=True)
class Composed(Several):
    """All of the events, over the same data set; later ones may depend on earlier outputs."""

    events: Sequence[Event]

    def primitives(self, count=1):
        for event in self.events:
            yield from event.primitives(count)


@dataclass(frozen=True)
class Repeated(Event):
    """`event`, count times in sequence."""

    event: Event
    count: int = field(metadata=number(releases, int))

    def primitives(self, count=1):
        check_releases(self.event, count * self.count)
        yield from self.event.primitives(count * self.count)
