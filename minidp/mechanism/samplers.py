"""Samplers by name, and from the settings of a run."""

import math
from collections.abc import Mapping
from typing import Any

from ..errors import DataError
from ..util.validate import one_of
from .sampling import PoissonSampler, Sampler, ShuffleSampler

SAMPLERS: dict[str, Any] = {each.name: each for each in (PoissonSampler, ShuffleSampler)}


def steps_of_epochs(sampler: Sampler, epochs: float) -> float:
    """Steps of so many passes over the data, on average; not rounded."""
    if isinstance(sampler, PoissonSampler):
        return epochs / sampler.sampling_probability if sampler.sampling_probability else math.inf
    return epochs * sampler.dataset_size / sampler.lot_size


def make_sampler(name: str, dataset_size: int, lot_size: int) -> Sampler:
    """The sampler of that name, for lots of lot_size examples, Poisson's on average."""
    one_of(tuple(SAMPLERS), sampler=name)
    ShuffleSampler(dataset_size, lot_size)  # checks them
    return SAMPLERS[name].of(dataset_size, lot_size)


def sampler_from(settings: Mapping[str, Any]) -> Sampler:
    """The sampler of a run, from its settings: `sampler`, as the sampler's `settings` gave it, and
    the public `dataset_size` and `expected_lot_size`.

    Raises DataError for any other class.
    """
    found = {each.__name__: each for each in SAMPLERS.values()}
    if settings["sampler"] not in found:
        raise DataError(
            f"expected a sampler of {', '.join(found)}, got {settings['sampler']!r:.80}: what its "
            "lots cost is not known here"
        )
    return found[settings["sampler"]].of(settings["dataset_size"], settings["expected_lot_size"])
