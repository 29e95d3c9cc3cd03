"""Random numbers: four independent streams, so that none disturbs another.

A seeded run repeats bit for bit and must not be released: who knows the seed can subtract the noise. Without
a seed each stream starts from the operating system's entropy, and its state is never stored or printed.
The generators are NumPy's (SFC64): statistically sound, not cryptographic. Noise in float32 is made of `noise`
by `host.normal.float32_normals`, the same numbers whatever the threads; all else by the generators' own methods.
"""
from collections.abc import Mapping
from typing import Any

import numpy as np

from .errors import CheckpointError, ParameterError
from .validate import seed_number

NAMES = ("init", "sampling", "noise", "dropout")


class Streams:
    """Host generators `init`, `sampling`, `noise` and `dropout`.

    seed   an integer of at least 0 for a reproducible run, None for the operating system's entropy

    >>> bool(Streams(1).init.random() == Streams(1).init.random()), Streams().reproducible
    (True, False)
    """

    init: np.random.Generator
    sampling: np.random.Generator
    noise: np.random.Generator
    dropout: np.random.Generator

    def __init__(self, seed: int | None = None):
        if seed is not None:
            seed_number(seed=seed)
        self.seed = seed
        children = np.random.SeedSequence(seed).spawn(len(NAMES))
        for name, child in zip(NAMES, children):
            setattr(self, name, np.random.Generator(np.random.SFC64(child)))

    def __repr__(self):
        return "Streams(entropy of the operating system)" if self.seed is None else "Streams(seeded: not for release)"

    @property
    def reproducible(self) -> bool:
        """True if the run has a seed."""
        return self.seed is not None

    def noise_for(self, xp: Any) -> Any:
        """The generator that noise for arrays of xp is drawn from.

        The host's, but for an unseeded run on a GPU, which draws on the device: the same numbers on both
        devices matter to seeded runs only.
        """
        if self.reproducible or xp.__name__ != "cupy":
            return self.noise
        if not hasattr(self, "_device_noise"):
            self._device_noise = xp.random.default_rng()
        return self._device_noise

    def state(self) -> dict[str, Any]:
        """The generators' states, for the checkpoint of a seeded run. Raises ParameterError without a seed."""
        if not self.reproducible:
            raise ParameterError("the generators of a run without a seed are not stored: whoever holds their "
                                 "state could subtract the noise")
        return {name: _plain(getattr(self, name).bit_generator.state) for name in NAMES}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`. Raises CheckpointError if it is not one."""
        try:
            for name in NAMES:
                saved, generator = state[name], getattr(self, name).bit_generator
                words = np.array(saved["state"]["state"], dtype=np.uint64)
                if words.shape != generator.state["state"]["state"].shape:  # NumPy would repeat a single word
                    raise ValueError(f"{name} has {words.size} words")
                generator.state = {**saved, "state": {"state": words}}
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CheckpointError(f"checkpoint: the generators' state is damaged ({error})") from error


def as_streams(streams: Any) -> Any:
    """Streams as they are; of a seed, or of None for the operating system's entropy."""
    if streams is None or isinstance(streams, int) and not isinstance(streams, bool):
        return Streams(streams)
    if not hasattr(streams, "noise_for"):
        raise ParameterError(f"expected streams={streams!r:.60} to be Streams(), or a seed for a run that is not released")
    return streams


def _plain(state):
    inner = {key: [int(word) for word in value] for key, value in state["state"].items()}
    return {**state, "state": inner}
