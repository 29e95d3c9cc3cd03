"""The interface of examples for training, and how a lot is split into batches."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of, to_host
from ..errors import ParameterError, RanksError
from ..util.validate import count, same_batch
from .persons import Persons

COMPARED = 2**30  # bytes of rows that ranks compare: all rows, or evenly spread ones
AT_ONCE = 2**24  # bytes of rows that are taken at once to compare them


@runtime_checkable
class Examples(Protocol):
    """Inputs of N examples that are not one array in memory: memory maps, augmented views,
    conversions on the fly.

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
    """x (R, *input shape) and y (R, ...): a fixed number K of consecutive rows per example, its
    views, or the places of a person's rows; weight (R / K,) or None.

    rows (R,) are different numbers for each example and row of it: its number times K, plus the
    row's place. share (R,) of persons: see `persons.Persons`; None: each row has the same share.
    """

    x: Any
    y: Any
    weight: Any = None
    rows: Any = None
    share: Any = None

    def padded(self, examples: int, rows_per_example: int) -> "Batch":
        """The batch in float64 with so many examples: behind its own ones are rows of zeros, of
        weight 0. Ids stay as they are.
        """
        more = examples - len(self.rows) // rows_per_example
        rows = more * rows_per_example
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


class Block:
    """Rows `start` to start + n - 1 of N: the part of inputs, targets or weights on one of several
    ranks.

    held   (n, ...) array or `Examples`   size  N, of the shape that it shows

    Every rank passes its own block; together the blocks must hold all rows once, which training
    checks. An example of a lot is computed on the rank whose block holds it.
    """

    def __init__(self, held: Any, start: int, size: int):
        count(start=start)
        count(start + held.shape[0], size=size)
        self.held, self.block, self.xp = held, (start, start + held.shape[0]), namespace_of(held)
        self.shape, self.ndim = (size, *held.shape[1:]), held.ndim
        self.dtype = getattr(held, "dtype", None)
        self.side_by_side = _side_by_side(held)
        if hasattr(held, "take_views"):
            self.take_views = lambda indices, draws: held.take_views(indices - start, draws)

    def take(self, indices: NDArray, axis: int = 0) -> Any:
        """Rows of the block, by their numbers among all."""
        return self.held.take(indices - self.block[0], axis=0)

    def __getitem__(self, span: slice) -> Any:
        raise ParameterError(
            "data.Block: expected to be trained on only, got a slice of rows, which other ranks "
            "hold: use Trainer or Run"
        )


def _side_by_side(rows):
    return isinstance(rows, np.ndarray) or getattr(rows, "side_by_side", False)


def _with_zeros(array, more):
    """The array with this many rows of zeros behind its own."""
    xp = namespace_of(array)
    return xp.concatenate([array, xp.zeros((more, *array.shape[1:]), array.dtype)])


def _digest(rows):
    """A hash of an array or `Examples`: of all rows, or above COMPARED bytes of evenly spread
    ones.
    """
    found = sha256()
    size = rows.shape[0]
    if size == 0:
        return found.digest()
    xp = namespace_of(rows)
    row_bytes = max(rows.take(xp.asarray([0]), axis=0).nbytes, 1)
    indices = np.linspace(0, size - 1, min(size, COMPARED // row_bytes + 1)).astype(int)
    step = max(1, AT_ONCE // row_bytes)
    for start in range(0, len(indices), step):
        some = rows.take(xp.asarray(indices[start : start + step]), axis=0)
        found.update(np.ascontiguousarray(to_host(some)))
    return found.digest()


class LabelledExamples:
    """Inputs with their targets, on one device, and a lot's split into batches.

    x      array or `Examples`, (N, *input shape)
    y      array, (N,) or (N, K)
    views  rows per example: each example is taken this many times, in consecutive rows
    weight of each example, (N,) in [0, 1], or None for 1
    persons  `Persons`: each is one example; None: each row is one

    Raises ShapeError if they differ in their number of examples.
    """

    def __init__(
        self,
        x: NDArray | Examples,
        y: NDArray,
        views: int = 1,
        weight: NDArray | None = None,
        persons: Persons | None = None,
    ):
        same_batch("examples", x=x, y=y)
        self.x, self.y, self.views, self.weight, self.xp = x, y, views, weight, namespace_of(x)
        self.persons = persons
        if weight is not None:
            weighed = {"x": x} if persons is None else {"persons": persons.used}
            same_batch("examples", **weighed, example_weight=weight)
        if persons is not None and (views > 1 or hasattr(x, "block") or hasattr(y, "block")):
            raise ParameterError(
                "expected persons without augmented views and without data.Block: give all rows "
                "to every rank, and augmentation_multiplicity=1"
            )

    def __len__(self):
        return self.x.shape[0] if self.persons is None else len(self.persons)

    @property
    def rows_per_example(self) -> int:
        """K, how many rows of a batch each example has."""
        return self.views if self.persons is None else self.persons.rows_per_person

    @property
    def in_host_memory(self) -> bool:
        """True if taking a batch waits for nothing, so that shards of a lot may run side by
        side.
        """
        return all(map(_side_by_side, (self.x, self.y)))

    def share(self, lot: NDArray, ranks: Any) -> NDArray:
        """The examples of the lot that this rank computes: those in its block, or, without blocks,
        one of as many parts as there are ranks.
        """
        if not hasattr(self.x, "block"):
            return np.array_split(lot, ranks.size)[ranks.rank]
        start, stop = self.x.block
        return lot[(start <= lot) & (lot < stop)]

    def check_shared(self, ranks: Any) -> None:
        """Raise RanksError unless all ranks hold the same rows, or blocks without a common row: no
        row may be computed twice.
        """
        person = None if self.persons is None else self.persons.number
        arrays = [each for each in (self.x, self.y, self.weight, person) if each is not None]
        blocks = [getattr(each, "block", None) for each in arrays]
        ranks.check_equal(
            "the shapes of the examples",
            [(tuple(each.shape), block is None) for each, block in zip(arrays, blocks)],
        )
        if any(blocks):
            parts = sorted(ranks.collect(blocks[0]))
            ends = [0, *(stop for _, stop in parts)]
            if (
                ends[-1] != len(self)
                or ends[:-1] != [start for start, _ in parts]
                or {*blocks} - {blocks[0], None}
            ):
                raise RanksError(
                    f"expected blocks that hold each of {len(self)} rows once, the same for x and "
                    f"y; got rows {parts}"
                )
        if ranks.size > 1:
            whole = [each for each, block in zip(arrays, blocks) if block is None]
            ranks.check_equal("the examples", [_digest(each) for each in whole])

    def batches(self, lot: NDArray, most: int, draws: Any = None) -> Iterator[Batch]:
        """Yield the lot (host indices) in batches of at most `most` examples; one empty batch for
        an empty lot.

        draws: the numbers of the lot's views, `streams.views(step)`, for examples that have
        `take_views`.
        """
        take_views, at = None if draws is None else getattr(self.x, "take_views", None), 0
        per_example, share = self.rows_per_example, None
        if self.persons is None:  # one copy to a device
            there = self.xp.asarray(np.repeat(lot, per_example) if per_example > 1 else lot)
            examples = there[::per_example]
        else:
            examples = self.xp.asarray(lot)
            there, share = map(self.xp.asarray, self.persons.slots(lot))
            there, share = there.ravel(), share.ravel()
        for part in np.array_split(lot, max(-(-len(lot) // most), 1)):
            stop = at + len(part)
            span = slice(at * per_example, stop * per_example)
            weight = None if self.weight is None else self.weight.take(examples[at:stop], axis=0)
            rows = (part[:, None] * per_example + np.arange(per_example)).ravel()
            if take_views is None:
                x = self.x.take(there[span], axis=0)  # faster than x[indices]
            else:
                x = take_views(there[span], draws.rows(rows))
            y = self.y.take(there[span], axis=0)
            yield Batch(x, y, weight, rows, None if share is None else share[span])
            at = stop
