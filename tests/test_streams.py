"""The four streams of random numbers."""
import json

import numpy as np
import pytest

from minidp.errors import CheckpointError, ParameterError
from minidp.streams import NAMES, Streams
from tests.support.guarded import guarded_xp


def draws(streams, names=NAMES, size=100):
    return {name: getattr(streams, name).random(size).tolist() for name in names}


def test_a_seed_repeats_and_another_differs():
    assert draws(Streams(7)) == draws(Streams(7))
    assert all(draws(Streams(7))[name] != draws(Streams(8))[name] for name in NAMES)
    assert Streams(7).reproducible and Streams(0).reproducible


def test_without_a_seed_no_two_runs_are_alike():
    first, second = Streams(), Streams()
    assert all(draws(first)[name] != draws(second)[name] for name in NAMES)
    assert not first.reproducible


@pytest.mark.parametrize("seed", [1, None])
def test_streams_are_different_and_independent(seed):
    streams = Streams(seed)
    drawn = draws(streams)
    assert len({tuple(numbers) for numbers in drawn.values()}) == len(NAMES) == 4
    if seed is not None:  # what one stream draws moves no other
        other = Streams(seed)
        other.noise.standard_normal(1000)
        assert draws(other, [name for name in NAMES if name != "noise"]) == {
            name: numbers for name, numbers in drawn.items() if name != "noise"}


def test_seeded_values_stay_as_they_are():
    # recorded with NumPy 2.4: SeedSequence(0).spawn(4), each into SFC64; NumPy promises to keep both. A change
    # of any of them changes every seeded result
    expected = {"init": 0.5484188289858579, "sampling": 0.9154380682102005, "noise": 0.7369507603406047,
                "dropout": 0.9745317933923299}
    assert {name: numbers[0] for name, numbers in draws(Streams(0), size=1).items()} == expected


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(ParameterError, match="expected seed="):
        Streams(seed)


def test_state_goes_through_json_and_back():
    streams = Streams(1)
    draws(streams)
    streams.noise.standard_normal(3, dtype=np.float32)  # leaves half a word behind
    saved = json.loads(json.dumps(streams.state(), allow_nan=False))
    expected = draws(streams)
    expected["noise"] += streams.noise.standard_normal(3, dtype=np.float32).tolist()
    other = Streams(2)
    other.restore(saved)
    got = draws(other)
    got["noise"] += other.noise.standard_normal(3, dtype=np.float32).tolist()
    assert got == expected and other.state() == streams.state()


def test_the_state_of_an_unseeded_run_is_not_given_out():
    with pytest.raises(ParameterError, match="could subtract the noise"):
        Streams().state()


@pytest.mark.parametrize("damage", [
    lambda s: s.pop("noise"), lambda s: s["noise"].pop("state"), lambda s: s["noise"]["state"].pop("state"),
    lambda s: s["noise"].update(bit_generator="PCG64"), lambda s: s["noise"].update(has_uint32="x"),
    lambda s: s["noise"].update(uinteger=-1), lambda s: s["noise"]["state"].update(state=[1]),
    lambda s: s["noise"]["state"].update(state=[1, 2, 3]), lambda s: s["noise"]["state"].update(state=[-1, 2, 3, 4]),
    lambda s: s["noise"]["state"].update(state=[2**64, 2, 3, 4]), lambda s: s["noise"]["state"].update(state="words"),
    lambda s: s.update(noise=None), lambda s: s.clear()])
def test_a_damaged_state_is_refused(damage):
    state = Streams(1).state()
    damage(state)
    with pytest.raises(CheckpointError, match="generators' state is damaged"):
        Streams(1).restore(state)
    for no_state in (None, [], "text", 3):
        with pytest.raises(CheckpointError, match="generators' state is damaged"):
            Streams(1).restore(no_state)


class Cupy:
    """Stands for the cupy module: its name, and a generator of its own."""

    __name__ = "cupy"

    class random:  # noqa: N801 (a module's name)
        made = []

        @classmethod
        def default_rng(cls):
            cls.made.append(object())
            return cls.made[-1]


@pytest.mark.parametrize("xp", [np, guarded_xp])
def test_noise_on_the_host_comes_from_the_host(xp):
    for streams in (Streams(1), Streams()):
        assert streams.noise_for(xp) is streams.noise


def test_only_an_unseeded_run_on_a_gpu_draws_noise_there():
    seeded, unseeded = Streams(1), Streams()
    assert seeded.noise_for(Cupy()) is seeded.noise
    drawn = unseeded.noise_for(Cupy())
    assert drawn is Cupy.random.made[0] and unseeded.noise_for(Cupy()) is drawn  # one generator a run
    assert unseeded.noise_for(np) is unseeded.noise
