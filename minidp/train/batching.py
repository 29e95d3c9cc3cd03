"""How a lot is divided into shards, which run in parallel, and shards into batches."""

import math
from collections.abc import Iterator
from typing import Any

from numpy import array_split
from numpy.typing import NDArray

from ..backend import batch_budget, namespace_of
from ..examples import Batch, LabelledExamples
from ..host import threads
from ..nn.network import Sequential

MAX_BATCH = 4096  # examples of a batch: more gain nothing and cost memory
# examples: fewer rows make matrix products slow, and give the fixed cost per batch more weight
MIN_BATCH = 256
# The rows of a float64 batch are a multiple of it. OpenBLAS takes 4 to 24 rows at once, and
# rounds rows that are left over differently.
MULTIPLE = 48


class Batching:
    """The shards and batches of a run's lots.

    In float64 every batch has the same number of rows, which follows from public numbers, because
    the last bits of a row of a matrix product depend on the number of rows. Rows of zeros with
    weight 0 fill a batch up. In float32 the batches of a lot are equally large and have no empty
    rows.
    """

    def __init__(
        self, network: Sequential, rows: int, batch_size: int | None, expected: float
    ) -> None:
        """rows: number of rows of an example: its views, or places for a person's rows. batch_size:
        number of examples that are computed at once; None for as many as fit the cache. expected:
        the public expected lot size.
        """
        params = network.params.values()
        self.rows, self.batch_size, self.expected = rows, batch_size, expected
        self.numbers = network.example_numbers * rows  # of an example
        self.cached = max(min(cache_examples(network), MAX_BATCH) // rows, 1)
        self.equal = {array.dtype.name for array in params} == {"float64"}

    def shards(self, examples: LabelledExamples, lot: NDArray, views: Any) -> list[Iterator[Batch]]:
        """The batches of each shard of a lot (host indices); one shard on a device."""
        if not self.equal:
            number, size = self._fitted(len(lot), examples.in_host_memory)
            return [examples.batches(part, size, views) for part in array_split(lot, number)]
        number, size = self.fixed(examples.in_host_memory)
        return [
            (batch.padded(size, self.rows) for batch in examples.batches(part, size, views))
            for part in array_split(lot, number)
        ]

    def fixed(self, in_host_memory: bool) -> tuple[int, int]:
        """(shards, examples of a batch) of every lot, in float64."""
        number = threads.limit() if in_host_memory else 1
        share = self.expected / number
        size = self._size(share + 2 * math.sqrt(share), number)  # few lots have larger shards
        multiple = MULTIPLE // math.gcd(MULTIPLE, self.rows)
        return number, math.ceil(size / multiple) * multiple

    def _fitted(self, count, in_host_memory):
        """(shards, examples of a batch) for a lot of `count` examples, in float32."""
        number = threads.shards_for(count, self.numbers) if in_host_memory else 1
        return number, self._size(max(1, -(-count // number)), number)

    def _size(self, share, shards):
        """Examples of a batch, so that a shard has whole batches and a batch about fills the
        cache.
        """
        if self.batch_size is not None:
            return -(-self.batch_size // shards)
        return math.ceil(share / max(round(share / self.cached), 1))


def cache_examples(network: Sequential) -> int:
    """Examples of a batch that stays in the host's cache but is large enough for efficient sums; no
    limit on a GPU.
    """
    params = network.params.values()
    bytes_ = max(batch_budget(namespace_of(*params)), 4 * sum(array.nbytes for array in params))
    example_bytes = network.example_numbers * max(array.itemsize for array in params)
    return max(MIN_BATCH, int(min(bytes_ / example_bytes, 2**31)))
