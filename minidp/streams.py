"""Random numbers: pure functions of (key, stream, release, index), by the cipher ChaCha.

A seeded run repeats bit for bit and must not be released, because whoever knows the seed can
subtract the noise. Without a seed the key is 32 bytes of the operating system's entropy, which rank
0 sends to the other ranks of a run. It exists only in memory: it is never stored, printed or
copied, and a forked process gets another key. Two releases with the same noise would show the
difference of their raw sums, so without a seed the numbers of each release are handed out only
once.
"""

import hashlib
import math
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .compiled import kernel
from .errors import NoiseReuseError, ParameterError
from .host.chacha import CONSTANTS, LANES, STRETCH, choose, normals, rounded, words
from .host.threads import map_parallel
from .ranks import current
from .util.validate import count, seed_number

GENERATOR = "chacha20"
NAMES = ("init", "sampling", "noise", "dropout", "views")
MOST = 2**55  # numbered releases of a stream; named ones have higher numbers
SHARD = 2**15  # least count of normal numbers that is worth another thread
_forks, _claims = 0, threading.Lock()


class _Single:
    """Base of objects that must not be copied without a seed: both would draw the same noise."""

    def __reduce_ex__(self, protocol):
        if self._key.seed is None:
            raise ParameterError(
                "streams without a seed are neither pickled nor copied: two copies would draw the "
                "same noise"
            )
        return super().__reduce_ex__(protocol)


class _Key(_Single):
    """A key of 32 bytes, and the set of releases that have used it."""

    def __init__(self, seed):
        self.seed = seed
        if seed is None:
            self._renew(current().of_first(lambda: os.urandom(32)))
        else:
            self._renew(hashlib.sha256(f"minidp seed {seed}".encode()).digest())

    @property
    def _key(self):
        return self

    def words(self):
        """(8,) uint32, never the same in two processes without a seed."""
        if self.seed is None and self._owner != (os.getpid(), _forks):
            self._renew(os.urandom(32))
        return self._words

    def claim(self, stream, release):
        """Raise NoiseReuseError if the numbers of this release were handed out before."""
        if self.seed is not None:
            return
        self.words()
        with _claims:
            if release in self._given[stream]:
                raise NoiseReuseError(
                    f"the numbers of stream {NAMES[stream]}, release {release}, were handed out "
                    "before: two releases with the same noise differ by raw sums alone. Make new "
                    "Streams() for another run"
                )
            self._given[stream].add(release)

    def _renew(self, stored):
        self._words = np.frombuffer(stored, "<u4").astype(np.uint32)
        self._given = [set() for _ in NAMES]
        self._owner = os.getpid(), _forks


class Streams(_Single):
    """The streams `sampling`, `noise`, `dropout` and `views`, and `init`, a generator for initial
    values.

    seed   an integer of at least 0 for a reproducible run, None for the operating system's entropy

    `streams.noise(step)` gives the numbers for the release of a step, `streams.noise("mean")` those
    for a named release.

    >>> bool(Streams(1).init.random() == Streams(1).init.random()), Streams().reproducible
    (True, False)
    """

    def __init__(self, seed: int | None = None):
        if seed is not None:
            seed_number(seed=seed)
        self.seed, self._key = seed, _Key(seed)
        self.sampling, self.noise, self.dropout, self.views = (
            Stream(self._key, number) for number in range(1, len(NAMES))
        )
        self.init = Stream(self._key, 0)(0)

    @property
    def reproducible(self) -> bool:
        """True if the run has a seed."""
        return self.seed is not None

    @property
    def fingerprint(self) -> str:
        """A hash of the key, with which the ranks of a run check that they draw the same numbers.
        It is never written to a file.
        """
        return hashlib.sha256(b"fingerprint" + self._key.words().tobytes()).hexdigest()


class Stream(_Single):
    """Random numbers for one purpose: `stream(release)`, where release is a step (an integer) or a
    name.
    """

    def __init__(self, key: _Key, number: int):
        self._key, self._number = key, number

    def __call__(self, release: int | str) -> "Draws":
        """The numbers of one release. Without a seed, raises NoiseReuseError if they were handed
        out before.
        """
        if isinstance(release, str):
            place = MOST + int.from_bytes(hashlib.sha256(release.encode()).digest()[:8]) % MOST
        else:
            count(release=release)
            place = int(release)
        self._key.claim(self._number, place)
        return Draws(self._key, self._number, place)


def as_streams(streams: Any) -> Streams:
    """Convert to Streams: an integer is a seed, None means the operating system's entropy; Streams
    are returned unchanged.
    """
    if streams is None or isinstance(streams, int) and not isinstance(streams, bool):
        return Streams(streams)
    if not isinstance(streams, Streams):
        raise ParameterError(
            f"expected streams={streams!r:.60} to be Streams(), or a seed for a run that is not "
            "released"
        )
    return streams


class Draws(_Single):
    """The numbers of one release, one after another; methods and arguments are named as NumPy's
    generators name them.

    Numbers come in the order of the draws. Each draw begins with a new block of 16 words.
    """

    def __init__(self, key: _Key, stream: int, release: int):
        self._key, self._block = key, 0
        tail = release << 8 | stream
        self._tail = np.array([0, 0, tail & 0xFFFFFFFF, tail >> 32], np.uint32)

    def state(self) -> NDArray[np.uint32]:
        """(16,) the input of a block without its number."""
        return np.concatenate([CONSTANTS, self._key.words(), self._tail])

    def words(self, size: int) -> NDArray[np.uint64]:
        """(size,) uint64, all values equally likely."""
        first, blocks = self._block, -(-size // 8)
        self._block += blocks
        return self._words(np.arange(first, first + blocks, dtype=np.uint64))[:size]

    def _words(self, blocks):
        out = np.empty((blocks.size, 16), np.uint32)
        if twin := kernel("words", blocks):
            twin(self.state(), blocks, out)
        else:
            out[...] = words(self.state(), blocks).T
        return out.view(np.uint64).ravel()

    def random(self, size: int | Sequence[int] = ()) -> NDArray[np.float64]:
        """Uniform on [0, 1), multiples of 2^-53."""
        return _uniform(self.words(_count(size))).reshape(size)

    def uniform(
        self, low: float = 0.0, high: float = 1.0, size: int | Sequence[int] = ()
    ) -> NDArray[np.float64]:
        """Uniform on [low, high)."""
        return low + (high - low) * self.random(size)

    def integers(self, low: int, high: int, size: int | Sequence[int] = ()) -> NDArray[np.int64]:
        """Integers from low to high - 1, equally likely to 2^-53."""
        return low + np.floor((high - low) * self.random(size)).astype(np.int64)

    def standard_normal(
        self, size: int | Sequence[int] = (), dtype: DTypeLike = "float64"
    ) -> NDArray:
        """Independent standard normal numbers, computed in float64 and rounded to the dtype,
        float32 or float64.
        """
        out = np.zeros(_count(size), dtype)
        self.add_normals(out, 1.0)
        return out.reshape(size)

    def add_normals(
        self,
        out: NDArray,
        std: float,
        grid: float = 0.0,
        place: tuple[int, int] | None = None,
        parts: Sequence[NDArray] = (),
        scale: float = 1.0,
    ) -> None:
        """Add std times standard normal numbers to a contiguous host array, and round to multiples
        of `grid` unless it is 0.

        place: (first, begin) if `out` is the part that begins at `begin` of an array for which
        `take` returned `first`; then no new numbers are taken here. parts: arrays of the same size
        whose float64 sum replaces the content of `out`. scale: factor of the result.
        """
        if not out.flags.c_contiguous:  # noise would be added to a copy
            raise ParameterError(
                "add_normals: expected an array in one piece (numpy.ascontiguousarray)"
            )
        first, begin = place or (self.take(out.size), 0)
        flat, state = np.asarray(out).reshape(-1), self.state()
        alike = len({part.dtype for part in parts}) < 2
        sums = [part.reshape(-1) if alike else part.astype(float).ravel() for part in parts]

        def add(at):
            here = flat[at : at + SHARD]
            added = tuple(part[at : at + SHARD] for part in sums or [flat])
            if twin := kernel("add_normals", *added):
                twin(state, first * STRETCH + begin + at, std, grid, added, scale, here)
            else:
                z = _normals(state, first, begin + at, here.size)
                here[...] = rounded(total_of(added) + std * z, grid) * scale

        map_parallel(add, range(0, flat.size, SHARD))

    def take(self, size: int) -> int:
        """Reserve a set of 64 blocks for every 512 of `size` numbers. Returns the number of the
        first set; no earlier draw has used it.
        """
        first = -(-self._block // LANES)
        self._block = (first + -(-size // STRETCH)) * LANES
        return first

    def permutation(self, n: int) -> NDArray[np.int64]:
        """0 to n - 1 in random order, all orders equally likely: the order of n different random
        words.
        """
        while True:
            words = self.words(n)
            order = np.argsort(words)
            if (np.diff(words[order]) > 0).all():
                return order

    def choice(self, n: int, size: int) -> NDArray[np.int64]:
        """(size,) different numbers below n in ascending order, all subsets equally likely."""
        out, taken, spare = np.empty(size, np.int64), np.zeros(n // 64 + 1, np.uint64), 8
        chosen = kernel("choose", taken) or choose
        while not chosen(self.words(size + spare), n, taken, out):
            spare, taken[:] = 2 * spare, 0
        out.sort()
        return out

    def rows(self, rows: ArrayLike) -> "RowDraws":
        """Random numbers for some rows of the data; the numbers of a row are the same in every
        batch.
        """
        return RowDraws(self, rows)


class RowDraws(_Single):
    """Random numbers whose first axis is the rows of a data set. Each draw, such as a layer's, uses
    another part of the release.
    """

    def __init__(self, draws: "Draws", rows: ArrayLike):
        self._key, self._draws, self._calls = draws._key, draws, 0
        self._rows = np.asarray(rows).astype(np.uint64)

    def random(self, size: Sequence[int]) -> NDArray[np.float64]:
        """Uniform on [0, 1), for the shape (rows, ...)."""
        self._calls += 1
        each = math.prod(size[1:])
        blocks = -(-each // 8)
        first = np.uint64(self._calls << 48) + self._rows * np.uint64(blocks)
        words = self._draws._words((first[:, None] + np.arange(blocks, dtype=np.uint64)).ravel())
        return _uniform(words.reshape((len(self._rows), 8 * blocks))[:, :each]).reshape(size)


def _normals(state, first, begin, size):
    """Normal numbers begin to begin + size - 1 of the sequence whose words begin in set `first` of
    64 blocks.
    """
    stretch, end = begin // STRETCH, -(-(begin + size) // STRETCH)
    blocks = np.arange((first + stretch) * LANES, (first + end) * LANES)
    z = normals(words(state, blocks.astype(np.uint64)))
    return z[begin - stretch * STRETCH :][:size]


def total_of(parts: Sequence[NDArray]) -> NDArray[np.float64]:
    """The sum of arrays in float64, one after the other."""
    total = parts[0].astype("float64", order="C")
    for part in parts[1:]:
        total += part
    return total


def _uniform(words):
    return (words >> np.uint64(11)) * 2.0**-53


def _count(size):
    return int(np.prod(size, dtype=np.int64))


def _forked():
    global _forks, _claims
    _forks, _claims = _forks + 1, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
