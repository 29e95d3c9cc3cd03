"""Samplers: how each draws a lot, and the event of a release from such a lot.

Each sampler has the neighbouring relation for which its analysis is proved. The data set's size and
the stream are arguments of `lots`; samplers store public configuration only. A step's lot follows
from the stream and the step alone.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, ClassVar

from numpy.typing import NDArray

from ..errors import DataError, ParameterError
from ..privacy.events import Event, NeighbouringRelation, PoissonSampled
from ..streams import Stream
from ..util.validate import count, one_of, probability
from ..util.words import Named

__all__ = ["PoissonSampler", "ShuffleSampler"]  # what `minidp.mechanism` exports


class Sampler(Named):
    """Base of all samplers. A sampler of the library is a class below, with a card, and a name in
    `__all__`; command lines and the shared tests then have it.

    name    its name on command lines
    said    which lots it draws, for their help
    relation  the neighbouring relation of its analysis
    period  lots that are charged together: training may stop after every `period` steps
    """

    name: ClassVar[str]
    said: ClassVar[str]
    relation: ClassVar[NeighbouringRelation]
    period: Any = 1

    def __init_subclass__(cls, **named: Any) -> None:
        """Refuse, by ParameterError, a subclass that draws its own lots but keeps its parent's
        `wrap`, and one with its own `charges`.
        """
        super().__init_subclass__(**named)
        if "charges" in vars(cls):
            raise ParameterError(
                f"class {cls.__name__}: expected wrap(event) to say what all lots of a period "
                "cost, and charges to count the periods as it does in every sampler"
            )
        if {"lots", "_lots"} & vars(cls).keys() and "wrap" not in vars(cls):
            raise ParameterError(
                f"class {cls.__name__}: expected a sampler that draws its own lots to say what "
                "they cost, too: define wrap(event), which returns the event of a release from "
                "such a lot (privacy.PoissonSampled holds for Poisson lots alone)"
            )

    def settings(self) -> dict[str, Any]:
        """{"sampler": the name of its class, "period"}; see `sampler_from`."""
        return {"sampler": type(self).__name__, "period": self.period}

    def lots(
        self, num_examples: int, steps: int, stream: Stream, start: int = 0
    ) -> Iterator[NDArray]:
        """Yield an index array into num_examples examples for each of `steps` steps, beginning with
        step `start`, which must be the first of a period.
        """
        self.check(num_examples)
        return self._lots(num_examples, range(start, start + steps), stream)

    def check(self, num_examples: int) -> None:
        """Raise ParameterError if the analysis does not cover this number of examples. The base
        class covers any number.
        """

    def _lots(self, num_examples, steps, stream):
        raise NotImplementedError

    def lot_sizes(self, dataset_size: float) -> tuple[float, float]:
        """(least, most) that may be called the mean lot over dataset_size examples."""
        raise NotImplementedError

    def steps_of_epochs(self, epochs: float) -> float:
        """Steps of so many passes over the data, on average; not rounded."""
        raise NotImplementedError

    def wrap(self, event: Event) -> Event:
        """The event of a period in which `event` is released from each lot."""
        raise NotImplementedError

    def charges(self, event: Event, steps: int) -> tuple[Event, int]:
        """(event, count) to charge before `steps` steps that begin with a period: one event for
        each period begun.
        """
        return self.wrap(event), -(-steps // self.period)


@dataclass(frozen=True)
class PoissonSampler(Sampler):
    r"""Draw every example independently with probability q, as in Algorithm 1. Lots vary in size.

    Shapes
        a lot: sorted indices (size,), possibly empty

    Forward
        [F1]  size ~ Binomial(N, q), then `size` of the N examples, all subsets equally likely
        [F2]  w_(k+1) / w_k = (N - k) q / ((k + 1) (1 - q))    weights of the sizes; P(size <= k) is
              their share, rounded down to a multiple of 2^-64

    Event
        [S1]  PoissonSampled(q, event), proved for ADD_REMOVE

    Source
        [F1]  own derivation: given its size, a Poisson sample is uniform among subsets of that size
        [F2]  own derivation: integers with 256 bits at the mode; sizes with less than 2^-128 of its
              weight are left out
        [S1]  Abadi et al. 2016, Section 3.1, "Lots"; Mironov, Talwar, Zhang 2019, arXiv:1908.10530

    Guarantees
        q is public: derive it from a nominal data set size, never from the data at hand.

    >>> from minidp.streams import Streams
    >>> [lot.tolist() for lot in PoissonSampler(0.2).lots(10, steps=3, stream=Streams(1).sampling)]
    [[5], [4], [1, 2, 7]]
    """

    sampling_probability: float
    name: ClassVar = "poisson"
    said: ClassVar = "each example with probability q"
    relation: ClassVar = NeighbouringRelation.ADD_REMOVE

    def __post_init__(self):
        probability(sampling_probability=self.sampling_probability)

    @classmethod
    def of(cls, dataset_size: int, lot_size: float) -> "PoissonSampler":
        """q is lot_size / dataset_size."""
        return cls(lot_size / dataset_size)

    def lot_sizes(self, dataset_size: float) -> tuple[float, float]:
        """(least, most) of the mean lot over dataset_size examples."""
        return self.sampling_probability * dataset_size, self.sampling_probability * dataset_size

    def _lots(self, num_examples, steps, stream):
        least, cumulative = _binomial(num_examples, float(self.sampling_probability))
        for step in steps:
            draws = stream(step)
            size = least + bisect_right(cumulative, int(draws.words(1)[0]))  # [F1]
            yield draws.choice(num_examples, size)  # [F1]

    def steps_of_epochs(self, epochs: float) -> float:
        """Steps of so many passes over the data, on average; not rounded."""
        return epochs / self.sampling_probability if self.sampling_probability else math.inf

    def wrap(self, event: Event) -> PoissonSampled:
        """The event of releasing `event` from a Poisson lot."""
        return PoissonSampled(self.sampling_probability, event)  # [S1]


@dataclass(frozen=True)
class ShuffleSampler(Sampler):
    r"""Shuffle the examples each epoch and cut the order into lots, as most training loops do. Its
    analysis gains nothing from sampling.

    Shapes
        a lot: indices (lot_size,), the last lot of an epoch possibly smaller

    Forward
        [F1]  each epoch a uniform permutation, cut into consecutive runs of `lot_size`

    Event
        [S1]  the event itself, not sampled, once per epoch, under ZERO_OUT: each example is in one
              lot of the epoch, and given the permutation the other lots do not depend on it

    Source
        [S1]  own derivation (parallel composition over the lots of an epoch). No amplification is
              claimed: the gap to the Poisson analysis is meant to be visible.

    Raises
        ParameterError   lot_size is above dataset_size, or `lots` gets another number of examples
                         than dataset_size
    """

    dataset_size: int
    lot_size: int
    name: ClassVar = "shuffle"
    said: ClassVar = "a shuffled order cut into lots, which costs much more"
    relation: ClassVar = NeighbouringRelation.ZERO_OUT

    def __post_init__(self):
        count(1, dataset_size=self.dataset_size, lot_size=self.lot_size)
        if self.lot_size > self.dataset_size:
            raise ParameterError(
                f"expected lot_size={self.lot_size} to be at most the "
                f"dataset_size={self.dataset_size}"
            )

    @classmethod
    def of(cls, dataset_size: int, lot_size: int) -> "ShuffleSampler":
        """The sampler of these sizes."""
        return cls(dataset_size, lot_size)

    @property
    def period(self) -> int:
        """Lots in one pass over the data. Stopping inside a pass could use an example twice in an
        epoch.
        """
        return -(-self.dataset_size // self.lot_size)

    def lot_sizes(self, dataset_size: float) -> tuple[float, float]:
        """(least, most) that counts as the mean lot over dataset_size examples: lot_size, and N /
        period.
        """
        mean = dataset_size / self.period
        return min(self.lot_size, mean), max(self.lot_size, mean)

    def check(self, num_examples: int) -> None:
        """Raise ParameterError unless there are dataset_size examples."""
        if num_examples != self.dataset_size:
            raise ParameterError(
                f"expected {self.dataset_size} examples, the public dataset_size of the sampler, "
                f"got {num_examples}"
            )

    def _lots(self, num_examples, steps, stream):
        for number, step in enumerate(steps):
            place = number % self.period
            if place == 0:
                order = stream(step).permutation(num_examples)  # [F1]
            yield order[place * self.lot_size : (place + 1) * self.lot_size]  # [F1]

    def steps_of_epochs(self, epochs: float) -> float:
        """Steps of so many passes over the data; not rounded."""
        return epochs * self.dataset_size / self.lot_size

    def wrap(self, event: Event) -> Event:
        """The event itself: no amplification by sampling."""
        return event  # [S1]


SAMPLERS = {globals()[name].name: globals()[name] for name in __all__}


def make_sampler(name: str, dataset_size: int, lot_size: int) -> Sampler:
    """The sampler of that name for lots of lot_size examples (on average, for Poisson lots)."""
    one_of(tuple(SAMPLERS), sampler=name)
    ShuffleSampler(dataset_size, lot_size)  # checks them
    return SAMPLERS[name].of(dataset_size, lot_size)


def sampler_from(settings: Mapping[str, Any]) -> Sampler:
    """Rebuild a run's sampler from its settings: `sampler`, as the sampler's `settings` gave it,
    and the public `dataset_size` and `expected_lot_size` (a shuffling sampler's `lot_size`). A
    Poisson sampler takes `sampling_probability` if it is stored, because L / N may differ from it
    by 1%.

    Raises DataError for any other class.
    """
    found = {each.__name__: each for each in SAMPLERS.values()}
    if settings["sampler"] not in found:
        raise DataError(
            f"expected a sampler of {', '.join(found)}, got {settings['sampler']!r:.80}: what its "
            "lots cost is not known here"
        )
    if settings["sampler"] == PoissonSampler.__name__ and "sampling_probability" in settings:
        return PoissonSampler(settings["sampling_probability"])
    return found[settings["sampler"]].of(settings["dataset_size"], settings["expected_lot_size"])


@lru_cache(256)
def _binomial(n, q):
    """(least, [2^64 P(size <= least), 2^64 P(size <= least + 1), ...]) of a binomial size. The
    float q is taken as the exact fraction that it is.
    """
    a, b = q.as_integer_ratio()
    mode = min(n, int((n + 1) * q))
    above, k = [2**256], mode
    while k < n and above[-1] >> 128:
        above.append(above[-1] * (n - k) * a // ((k + 1) * (b - a)))  # [F2]
        k += 1
    below, k = [2**256], mode
    while k > 0 and below[-1] >> 128:
        below.append(below[-1] * k * (b - a) // ((n - k + 1) * a))  # [F2]
        k -= 1
    sums = list(accumulate(below[:0:-1] + above))
    return k, [(each << 64) // sums[-1] for each in sums]  # [F2]
