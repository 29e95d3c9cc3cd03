"""Run the parts of a step in parallel on the cores of the host.

BLAS splits each matrix product by itself: its threads wait for each other after every product, and
everything else runs on one core. Here shards of a lot run in parallel instead, each with a BLAS of
one thread.

MINIDP_THREADS=N in the environment sets the number of shards; 1 leaves the cores to BLAS. Default:
the BLAS thread count (OPENBLAS_NUM_THREADS) if it is at most MAX_THREADS; otherwise 1, because BLAS
then parallelises better itself. Sums over shards round differently from sums over the whole lot: a
seeded run repeats bit for bit with the same number of threads.
"""

import os
import threading
from contextlib import contextmanager
from functools import cache

from ..errors import ParameterError
from .blas import thread_functions

MAX_THREADS = (
    4  # measured on two cores; with more than four, products of a few rows each lose the gain
)
# Least work that is worth another thread: examples, and numbers in their layers
MIN_SHARD, MIN_NUMBERS = 64, 2**22

_pool = None
_busy = threading.Lock()


def shards_for(examples, numbers):
    """The number of shards of a lot of `examples`, each of which has `numbers` numbers in its
    layers.
    """
    worth = max(examples // MIN_SHARD, examples * numbers // MIN_NUMBERS)
    return max(1, min(limit(), worth))


@cache
def limit():
    """Most threads that `map_parallel` uses. Raises ParameterError if MINIDP_THREADS is not a
    positive integer.
    """
    wanted = os.environ.get("MINIDP_THREADS", "")
    if wanted and not (wanted.isascii() and wanted.isdigit() and int(wanted) > 0):
        raise ParameterError(
            f"expected MINIDP_THREADS={wanted} in the environment to be an integer of at least 1"
        )
    if thread_functions() is None:
        return 1
    given = thread_functions()[0]()
    return int(wanted) if wanted else given if given <= MAX_THREADS else 1


def map_parallel(function, items):
    """[function(item) for each item] in the order of the items, computed by several threads.

    The call waits for all items and raises the first exception. A nested call runs in one thread.
    """
    if min(len(items), limit()) < 2 or not _busy.acquire(blocking=False):
        return [function(item) for item in items]
    try:
        # a free thread takes the next item
        results, left = (
            [None] * len(items),
            iter(range(len(items))),
        )

        def work():
            for k in left:
                results[k] = function(items[k])

        with single_blas():
            others = [_workers().submit(work) for _ in range(min(len(items), limit()) - 1)]
            try:
                work()
            finally:
                for other in others:
                    other.exception()  # waits
            for other in others:
                other.result()
            return results
    finally:
        _busy.release()


@contextmanager
def single_blas():
    """Context in which products and decompositions run in one thread, if BLAS allows setting it."""
    get, set_ = thread_functions() or (lambda: 0, lambda threads: None)
    before = get()
    set_(1)
    try:
        yield
    finally:
        set_(before)


def _workers():
    global _pool
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor  # slow to import, so only when needed

        _pool = ThreadPoolExecutor(limit() - 1, thread_name_prefix="minidp")
    return _pool


def _after_fork():
    """Reset the pool in a forked child, which has none of its parent's threads or calls in
    progress.
    """
    global _pool, _busy
    _pool, _busy = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
