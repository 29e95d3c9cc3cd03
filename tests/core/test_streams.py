"""Random numbers as functions of key, stream, release and place; the key, and what is handed out
once.
"""

import copy
import os
import pickle
import threading

import numpy as np
import pytest

from minidp.errors import NoiseReuseError, ParameterError
from minidp.host import threads
from minidp.streams import NAMES, Streams

CALLED = NAMES[1:]  # init is the numbers of one release already

RECORDED = {
    "sampling": 0.980328603235794,
    "noise": 0.9423159582577341,
    "dropout": 0.6721140957178939,
    "views": 0.015244955578194386,
}
NORMALS = [-0.9280875478636844, -0.03094610697082918, -0.35771018274972205]
CHOSEN = [8617, 42316, 45623, 58376]
ORDER = [6, 3, 1, 0, 4, 2, 5]


def first_numbers(seed):
    streams = Streams(seed)
    drawn = [streams.init, *(getattr(streams, name)(0) for name in CALLED)]
    return [float(each.random()) for each in drawn]


def test_a_seed_repeats_another_differs_and_without_one_no_two_runs_are_alike():
    assert first_numbers(7) == first_numbers(7)
    runs = [first_numbers(seed) for seed in (0, 7, 8, None, None)]
    assert len({number for run in runs for number in run}) == 5 * len(NAMES)
    assert Streams(0).reproducible and not Streams().reproducible


@pytest.mark.parametrize("seed", [1, None])
def test_streams_and_releases_are_different(seed):
    streams, found = Streams(seed), []
    for release in (0, 1, 2**40, "mean", "pca"):
        found += [tuple(getattr(streams, name)(release).random(20)) for name in CALLED]
    assert len({number for numbers in found for number in numbers}) == 20 * 5 * len(CALLED)


def test_seeded_values_stay_as_they_are():
    """Recorded when this generator was new. A change of any of them changes every seeded result."""
    streams = Streams(0)
    assert {name: getattr(streams, name)(0).random() for name in CALLED} == RECORDED
    assert streams.init.standard_normal(3).tolist() == NORMALS
    assert streams.sampling(1).choice(60_000, 4).tolist() == CHOSEN
    assert streams.sampling(2).permutation(7).tolist() == ORDER


@pytest.mark.parametrize("name", CALLED)
def test_an_unseeded_stream_hands_out_each_release_once(name):
    stream, releases = getattr(Streams(), name), (0, 1, 5, 4, 2, "mean", 3)
    for release in releases:
        stream(release)
    for release in releases:
        with pytest.raises(NoiseReuseError, match=f"stream {name}, release"):
            stream(release)
    assert getattr(Streams(1), name)(0) and getattr(Streams(1), name)(0)


def test_of_threads_that_ask_for_one_release_one_gets_it():
    stream, got, start = Streams().noise, [], threading.Barrier(8)

    def ask():
        start.wait()
        for release in range(200):
            try:
                got.append((release, stream(release)))
            except NoiseReuseError:
                pass

    workers = [threading.Thread(target=ask) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(release for release, _ in got) == list(range(200))


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"]
)
@pytest.mark.parametrize(
    "part",
    [lambda s: s, lambda s: s.noise, lambda s: s.init, lambda s: s.init.rows(np.arange(3))],
    ids=["streams", "stream", "draws", "rows"],
)
def test_unseeded_streams_are_neither_copied_nor_pickled(copied, part):
    with pytest.raises(ParameterError, match="neither pickled nor copied"):
        copied(part(Streams()))


def test_no_key_is_printed():
    streams = Streams()
    key = streams.noise._key.words()
    shown = "".join(map(repr, (streams, streams.noise, streams.noise(0), streams.noise._key)))
    assert not any(str(word) in shown or f"{word:x}" in shown for word in key.tolist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("seed", [None, 5])
def test_forked_processes_share_no_noise_without_a_seed(seed):
    streams = Streams(seed)
    before, found = streams.noise(0), []
    for _ in range(2):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(
                writer, np.concatenate([before.random(4), streams.noise(1).random(4)]).tobytes()
            )
            os._exit(0)
        os.waitpid(child, 0)
        found.append(np.frombuffer(os.read(reader, 64)))
        os.close(reader), os.close(writer)
    own = np.concatenate([before.random(4), streams.noise(1).random(4)])
    same = [(a == b).any() for a, b in ((found[0], found[1]), (found[0], own), (found[1], own))]
    assert same == [seed is not None] * 3


def test_rows_have_their_numbers_whatever_comes_beside_them():
    rows, shapes = np.array([5, 0, 123_456_789, 7]), ((3, 5), (40,))

    def drawn(places):
        numbers = Streams(1).dropout(3).rows(rows[places])
        return [numbers.random((len(places), *shape)) for shape in shapes]

    whole = drawn([0, 1, 2, 3])
    for places in ([3], [0, 2], [1], []):
        for part, each in zip(drawn(places), whole):
            np.testing.assert_array_equal(part, each[places])
    assert len(np.unique(np.concatenate([each.ravel() for each in whole]))) == 4 * 55  # none twice


def test_noise_shares_no_word_with_what_is_drawn_before_and_after():
    numbers, whole = Streams(1).noise(0), Streams(1).noise(0).words(8 * 64 * 4)
    before = numbers.words(8)
    numbers.add_normals(np.zeros(513), 1.0)  # blocks 64 to 64 + 2 64
    after = numbers.words(8)
    np.testing.assert_array_equal(
        np.concatenate([before, after]), whole[[*range(8), *range(8 * 192, 8 * 193)]]
    )


@pytest.mark.parametrize("count", [2, 3])
def test_noise_is_the_same_for_any_number_of_threads(count, monkeypatch):
    def noise():
        raw = np.linspace(-1, 1, 200_003, dtype=np.float32)
        numbers = Streams(1).noise(0)
        numbers.add_normals(raw, 3.0, 2.0**-19)
        return raw, numbers.standard_normal(70_000)

    alone = noise()
    monkeypatch.setattr(threads, "limit", lambda: count)
    for one, other in zip(alone, noise()):
        np.testing.assert_array_equal(one, other)


def test_a_fingerprint_tells_keys_apart_and_is_not_the_key():
    unseeded = Streams()
    assert unseeded.fingerprint == unseeded.fingerprint != Streams().fingerprint
    assert Streams(7).fingerprint == Streams(7).fingerprint != Streams(8).fingerprint
    assert unseeded._key.words().tobytes().hex() not in unseeded.fingerprint
