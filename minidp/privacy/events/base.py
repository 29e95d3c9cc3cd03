"""The base of all events, and when two data sets are neighbours."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import Enum
from functools import partial
from typing import Any

from ...errors import NumericalBoundError, ParameterError, UnsupportedEventError
from ...util.validate import MOST_128_BITS, count, shown

MOST_RELEASES = 10**300  # so that counts stay within float64


class NeighbouringRelation(Enum):
    """When two data sets count as neighbours.

    ADD_REMOVE  one example is added or removed (the relation of Abadi et al. 2016)
    ZERO_OUT    one example is replaced by one that contributes exactly zero
    """

    ADD_REMOVE = "add_remove"
    ZERO_OUT = "zero_out"


releases = partial(count, 0, MOST_128_BITS)


def number(check: Callable[..., None], plain: Any = float) -> dict[str, Any]:
    """Metadata of a field for a number: its check, and the plain type to which it is converted, so
    that JSON can hold it, whether it was built from 4, 4.0 or NumPy's numbers.
    """
    return {"number": (check, plain)}


@dataclass(frozen=True)
class Event:
    """Base of all events: frozen, hashable, and written to JSON under its class's name.

    The rules here are for an event about which nothing is known: a primitive that no accountant
    covers, without credit for sampling and without a rule for groups. An event with better rules
    defines them in its own file.
    """

    @property
    def noise(self) -> Any:
        """The event inside the sampling of a primitive; the primitive itself if it is not
        sampled.
        """
        return self

    @property
    def share(self) -> float:
        """An upper bound on the probability that the example has a part in the release."""
        return 1.0

    @property
    def pure_epsilon(self) -> float | None:
        """The epsilon of a primitive that is pure DP; None for any other."""
        return None

    @property
    def in_words(self) -> str:
        """The event in the message of an accountant that has no theorem for it."""
        return f"{self!r:.200}"

    def primitives(self, count: int = 1) -> "Iterator[tuple[Event, int]]":
        """(primitive, count) pairs that together equal `count` releases; each is sampled at most
        once.

        Gaussians over the same examples become one Gaussian, noise of 0 becomes NonPrivate, and
        infinite noise is left out. Raises UnsupportedEventError for a lot for which there is no
        theorem, and NumericalBoundError for more than MOST_RELEASES.
        """
        yield self, count

    def for_group(self, k: int) -> "Event":
        """The primitive whose cost for one example is the cost of this one for k examples that are
        added or removed together.

        Raises UnsupportedEventError if no such rule is known.
        """
        raise UnsupportedEventError(f"no group rule for {self!r}")

    def __post_init__(self):
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "event":
                check_event(type(self).__name__, value)
            elif each.metadata:
                check, plain = each.metadata["number"]
                check(**{each.name: value})
                object.__setattr__(self, each.name, plain(value))


def check_event(where: str, event: object) -> None:
    """Raise ParameterError, which names the caller, for an object that is not an Event."""
    if not isinstance(event, Event):
        raise ParameterError(f"{where}: expected an Event, got {event!r}")


def check_releases(event: Event, count: int) -> None:
    """Raise NumericalBoundError for more than MOST_RELEASES of an event."""
    if count > MOST_RELEASES:
        raise NumericalBoundError(
            f"expected at most 1e300 releases of {event!r:.80}, got {shown(count)}"
        )


@dataclass(frozen=True)
class NonPrivate(Event):
    """A release with no guarantee at all: epsilon is infinite."""

    def for_group(self, k):
        return self


@dataclass(frozen=True)
class Unknown(Event):
    """An access to the data that cannot be described; every accountant refuses it."""
