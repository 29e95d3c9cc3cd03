"""All trained parameters in one array while a run trains, so that a step updates them at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import namespace_of
from ..compiled import kernel
from ..grads.forms import Arrays, Key
from ..mechanism import Sanitizer
from ..mechanism.flat import FlatSums, Layout
from ..mechanism.schedule import value_at
from ..nn.network import Sequential
from ..streams import Draws
from . import optimizer as optimizers
from .averaging import Averaged

WHOLE = ("all", "parameters")  # the key of an array of all parameters
OURS = {*optimizers.OPTIMIZERS.values()}  # update each coordinate by itself


class Flat:
    """The parameters, slots and released gradient of a run, each as one array with views."""

    def __init__(self, params: Arrays, optimizer: Any, keys: Sequence[Key]) -> None:
        self.optimizer, self.layout = optimizer, Layout.of(params, keys)
        self.xp, self.dtype = namespace_of(*params.values()), params[keys[0]].dtype
        self.theta, self.g = self._zeros(), self._zeros()
        raw = self.xp.zeros(self.layout.size, "float64")
        self.sums = FlatSums(self.layout, raw, self.g)
        self.params = self.layout.views(self.theta)
        for key, array in params.items():
            self.params[key][...] = array
        self._inner = inner_of(optimizer)
        self._views: dict[str, Arrays] | None = None  # of the optimizer

    def _zeros(self):
        return self.xp.zeros(self.layout.size, self.dtype)

    def descend(
        self, sanitizer: Sanitizer, raw_sum: Arrays, noise: Draws, scale: float, step: int
    ) -> None:
        """Release the raw sum, and descend along it: in one start with plain descent."""
        given = self.sums, raw_sum, noise, scale
        if type(self.optimizer) is optimizers.SGD:
            rate = float(value_at(self.optimizer.learning_rate, step))
            sanitizer.release_flat(*given, self.theta, rate)
            return
        sanitizer.release_flat(*given)
        inner = self._inner
        if inner.slots is not self._views:  # at the first step, or if somebody replaced them
            self._take_slots()
        inner.slots = self._whole
        try:
            self.optimizer.update({WHOLE: self.theta}, {WHOLE: self.g}, step)
        finally:
            inner.slots = self._views

    def _take_slots(self):
        """Put the optimizer's slots into arrays of all parameters; the views take their place."""
        self.optimizer.allocate(self.params)
        self._whole = {name: {WHOLE: self._zeros()} for name in self._inner.slots}
        views = {name: self.layout.views(slot[WHOLE]) for name, slot in self._whole.items()}
        for name, slot in self._inner.slots.items():
            for key, array in slot.items():
                views[name][key][...] = array
        self._inner.slots = self._views = views


def inner_of(optimizer: Any) -> Any:
    """The optimizer itself, without averages around it."""
    return optimizer.optimizer if isinstance(optimizer, Averaged) else optimizer


def fits(network: Sequential, optimizer: Any) -> bool:
    """True on a device that draws noise, if all parameters have one dtype and memory of their own,
    and optimizer and layers are minidp's: those of others may keep an array by another name.

    On the host it would gain nothing: every sum is at hand without a start of a kernel.
    """
    arrays: list[Any] = [*network.params.values()]
    xp = namespace_of(*arrays)
    if xp is np or kernel("release", xp.empty(0)) is None:
        return False
    spans = sorted((array.data.ptr, array.data.ptr + array.nbytes) for array in arrays)
    apart = all(end <= start for (_, end), (start, _) in pairwise(spans))
    ours = all(
        type(layer).__module__.split(".")[0] == "minidp" for layer in network.layers if layer.params
    )
    one_type = len({array.dtype for array in arrays}) == 1
    return one_type and apart and ours and type(inner_of(optimizer)) in OURS


@contextmanager
def flattened(trainer: Any) -> Iterator[None]:
    """A context in which `trainer.flat` is a Flat, and the network's parameters are views of it;
    nothing changes where they cannot be, or on several ranks.

    Afterwards the layers have their own arrays again, with the values of the views. Who keeps one
    of these arrays sees it change when the context ends.
    """
    network, optimizer = trainer.network, trainer.optimizer
    if trainer.ranks.size > 1 or not fits(network, optimizer):
        yield
        return
    before = network.params
    trainer.flat = Flat(before, optimizer, trainer.plan.sanitizer.keys)
    _give(network, trainer.flat.params)
    try:
        yield
    finally:
        for key, array in before.items():
            array[...] = trainer.flat.params[key]
        _give(network, before)
        trainer.flat = None


def _give(network, arrays):
    """Put {(layer, parameter): array} into the layers."""
    for layer in network.layers:
        for name in layer.params:
            if (layer.name, name) in arrays:
                layer.params[name] = arrays[layer.name, name]
