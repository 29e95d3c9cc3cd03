"""The interface of examples for training, and how a lot is split into batches."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .backend import namespace_of
from .compiled import kernel
from .errors import ShapeError
from .units import Rows, Units
from .util.validate import same_batch


@runtime_checkable
class Examples(Protocol):
    """Inputs of N examples that are not one array in memory: memory maps, augmented views,
    conversions when they are read.

    Wherever inputs are expected, you can pass an array or an object with these members:

    xp                     the library of the arrays it gives, numpy or cupy
    shape, ndim            (N, *input shape) and its length
    take(indices, axis=0)  the inputs at an array of indices
    take_views(indices, draws)  optional, in training in its place: a new view of each example, by
                                numbers of
                           `draws.random((len(indices), ...))`, each example's by itself
                           (streams.RowDraws)
    [start:stop]           the inputs of consecutive examples, the same every time: what is
    evaluated
    side_by_side           optional; True if parts of a lot may be taken in several threads at once

    The guarantee holds only if every row is made from its own example alone.
    """

    xp: object
    shape: tuple
    ndim: int

    def take(self, indices: NDArray, axis: int = 0) -> NDArray: ...

    def __getitem__(self, span: slice) -> NDArray: ...


class Batch(NamedTuple):
    """x (R, *input shape) and y (R, ...) with T consecutive rows (places) per unit; weight (R / T,)
    or None.

    rows (R,): a different number for each row, its unit's number times T plus the row's place.
    share (R,): the share of each row in its unit, see `Units`; None if T is 1.
    """

    x: Any
    y: Any
    weight: Any = None
    rows: Any = None
    share: Any = None

    def padded(self, examples: int, rows_per_unit: int) -> "Batch":
        """The batch in float64, filled up to `examples` with rows of zeros of weight 0. Ids keep
        their dtype.
        """
        more = examples - len(self.rows) // rows_per_unit
        rows = more * rows_per_unit
        x, weight = self.x, self.weight
        if x.dtype.kind == "f":
            x = x.astype("float64", copy=False)
        if weight is None:
            weight = namespace_of(x).ones(examples - more)
        return Batch(
            _with_zeros(x, rows),
            _with_zeros(self.y, rows),
            _with_zeros(weight, more),
            _with_zeros(self.rows, rows),
            None if self.share is None else _with_zeros(self.share, rows),
        )


def _side_by_side(rows):
    return isinstance(rows, np.ndarray) or getattr(rows, "side_by_side", False)


def _with_zeros(array, more):
    """The array with this many rows of zeros appended."""
    xp = namespace_of(array)
    return xp.concatenate([array, xp.zeros((more, *array.shape[1:]), array.dtype)])


def check_weights(weight: NDArray | None, units: Units) -> None:
    """Raise ShapeError unless the weights are None or an array of one number for each unit."""
    if weight is not None:
        kind = getattr(getattr(weight, "dtype", None), "kind", None)
        if kind is None or kind not in "fiub" or weight.ndim != 1:
            raise ShapeError(
                f"example_weight: expected an array ({len(units)},) of numbers, one for each "
                f"{units.name}, got a {type(weight).__name__} of shape {np.shape(weight)}: give "
                "numpy.asarray(weights, float).ravel()"
            )
        held = {f"{units.name}s": np.empty(len(units))}
        same_batch("examples", **held, example_weight=weight)


class LabelledExamples:
    r"""Inputs with their targets, on one device; splits lots into batches.

    x       array or `Examples`, (N, *input shape)
    y       array, (N,) or (N, K)
    units   `Units` of these rows; None: each row is one
    weight  (len(units),) of each unit, in [0, 1], or None for 1

    Shapes
        lot (B,) numbers of units   v (len(units),)   weight (B,)

    Forward
        [F1]  weight_b = v(lot_b)    at the number of a unit, whatever its rows are

    Source
        [F1]  own derivation: when a unit leaves, its weight leaves with it, and no other weight
              changes

    Raises
        ShapeError   they differ in their number
    """

    def __init__(
        self,
        x: NDArray | Examples,
        y: NDArray,
        units: Units | None = None,
        weight: NDArray | None = None,
    ):
        same_batch("examples", x=x, y=y)
        self.x, self.y, self.weight, self.xp = x, y, weight, namespace_of(x)
        self.units = Rows(x.shape[0]) if units is None else units
        check_weights(weight, self.units)

    def __len__(self):
        return len(self.units)

    def _taken(self, rows):
        """(x, y) of some rows, faster than x[indices]; arrays on a device need one kernel."""
        gather = None
        if self.y.ndim == 1 and self.y.dtype == np.int64 and isinstance(self.x, self.xp.ndarray):
            gather = kernel("gather", self.x)
        if not gather or not (self.x.flags.c_contiguous and self.y.flags.c_contiguous):
            return self.x.take(rows, axis=0), self.y.take(rows, axis=0)
        x = self.xp.empty((len(rows), *self.x.shape[1:]), self.x.dtype)
        y = self.xp.empty(len(rows), self.y.dtype)
        gather(self.x, self.y, rows, x, y)
        return x, y

    @property
    def in_host_memory(self) -> bool:
        """True if several threads may take batches at once, so that shards of a lot may run in
        parallel.
        """
        return all(map(_side_by_side, (self.x, self.y)))

    def batches(self, lot: NDArray, most: int, draws: Any = None) -> Iterator[Batch]:
        """Yield the lot (host indices) in batches of at most `most` examples; one empty batch for
        an empty lot.

        draws: random numbers for the lot's views, `streams.views(step)`, if the examples have
        `take_views`.
        """
        take_views = None if draws is None else getattr(self.x, "take_views", None)
        per_unit, at = self.units.rows_per_unit, 0
        if len(lot) and not 0 <= lot.min() <= lot.max() < len(self.units):
            raise IndexError(f"expected a lot of numbers from 0 to {len(self.units) - 1}")
        places, share = self.units.slots(lot)
        shares = None if per_unit == 1 else self.xp.asarray(share.ravel())
        there = self.xp.asarray(places.ravel())
        weights = None
        if self.weight is not None:
            weights = self.weight.take(self.xp.asarray(lot), axis=0)  # [F1]
        for part in np.array_split(lot, max(-(-len(lot) // most), 1)):
            stop = at + len(part)
            span = slice(at * per_unit, stop * per_unit)
            weight = None if weights is None else weights[at:stop]
            rows = (part[:, None] * per_unit + np.arange(per_unit)).ravel()
            if take_views is None:
                x, y = self._taken(there[span])
            else:
                x = take_views(there[span], draws.rows(rows))
                y = self.y.take(there[span], axis=0)
            yield Batch(x, y, weight, rows, None if shares is None else shares[span])
            at = stop
