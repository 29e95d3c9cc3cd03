"""What training asks of a data set, and how it hands out a lot in batches."""
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of
from ..errors import DtypeError, ParameterError, ShapeError
from ..validate import same_batch


@runtime_checkable
class Examples(Protocol):
    """Inputs of N examples that are not one array in memory: memory maps, augmented views, conversions on the fly.

    Wherever inputs are expected, an array or an object with these members will do:

    xp                     the library of the arrays it gives, numpy or cupy
    shape, ndim            (N, *input shape) and its length
    take(indices, axis=0)  the inputs at an array of indices
    take_views(indices, draws)  optional, in training in its place: a new view of each example, by numbers of
                           `draws.random((len(indices), ...))`, each example's by itself (streams.RowDraws)
    [start:stop]           the inputs of consecutive examples, the same every time: what is evaluated
    side_by_side           optional; True if parts of a lot may be taken in several threads at once

    The guarantee rests on every row being made from its own example alone.
    """

    xp: object
    shape: tuple
    ndim: int

    def take(self, indices: NDArray, axis: int = 0) -> NDArray: ...

    def __getitem__(self, span: slice) -> NDArray: ...


class Batch(NamedTuple):
    """x (R, *input shape) and y (R, ...): `views` consecutive rows per example; weight (R / views,) or None.

    rows (R,) are different numbers for each example and view, its place in the data times `views`, plus that of the view.
    """

    x: object
    y: object
    weight: object = None
    rows: object = None


def as_rows(where: str, x: Any, y: Any, like: NDArray) -> tuple[Any, Any]:
    """x and y; lists of numbers as arrays, with the library of `like`, and its dtype where they are floating point.

    Raises ShapeError or DtypeError where lists are no table of numbers, ParameterError for what cannot be indexed.
    """
    return _as_array(where, "x", x, like, True), _as_array(where, "y", y, like, False)


def _as_array(where, name, rows, like, floating):
    if isinstance(rows, (list, tuple)):
        try:
            rows = np.asarray(rows)
        except ValueError:
            raise ShapeError(f"{where}: {name} is a list of rows of different lengths; expected a table of numbers") from None
        if rows.dtype.kind not in "biuf":
            raise DtypeError(f"{where}: expected {name} of numbers, got a list of dtype {rows.dtype}")
        floating = floating or rows.dtype.kind == "f"
        return namespace_of(like).asarray(rows.astype(like.dtype.name) if floating else rows)
    if not hasattr(rows, "shape"):
        raise ParameterError(f"{where}: expected {name} to be an array or data.Examples, got {type(rows).__name__}: lots are "
                             "drawn by row number, so rows have to be there by number, which a generator does not give")
    return rows


class LabelledExamples:
    """Inputs with their targets, on one device, handed out lot by lot.

    x      array or `Examples`, (N, *input shape)
    y      array, (N,) or (N, K)
    views  rows per example: each example is taken this many times, in consecutive rows
    weight of each example, (N,) in [0, 1], or None for 1

    Raises ShapeError if they differ in their number of examples.
    """

    def __init__(self, x: NDArray | Examples, y: NDArray, views: int = 1, weight: NDArray | None = None):
        same_batch("examples", x=x, y=y, **({} if weight is None else {"example_weight": weight}))
        self.x, self.y, self.views, self.weight, self.xp = x, y, views, weight, namespace_of(x)

    def __len__(self):
        return self.x.shape[0]

    @property
    def in_host_memory(self) -> bool:
        """True if taking a batch waits for nothing, so that shards of a lot may run side by side."""
        return (isinstance(self.x, np.ndarray) or getattr(self.x, "side_by_side", False)) and isinstance(self.y, np.ndarray)

    def batches(self, lot: NDArray, most: int, draws: Any = None) -> Iterator[Batch]:
        """Yield the lot (host indices) in batches of at most `most` examples; one empty batch for an empty lot.

        draws: the numbers of the lot's views, `streams.views(step)`, for examples that have `take_views`.
        """
        take_views = None if draws is None else getattr(self.x, "take_views", None)
        for indices in np.array_split(lot, max(-(-len(lot) // most), 1)):
            weight = None if self.weight is None else self.weight.take(self.xp.asarray(indices), axis=0)
            rows = (indices[:, None] * self.views + np.arange(self.views)).ravel()
            indices = self.xp.asarray(np.repeat(indices, self.views) if self.views > 1 else indices)
            x = (self.x.take(indices, axis=0) if take_views is None else  # faster than x[indices]
                 take_views(indices, draws.rows(rows)))
            yield Batch(x, self.y.take(indices, axis=0), weight, rows)
