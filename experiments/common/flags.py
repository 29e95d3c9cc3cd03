"""Flags that every private training run has, and what they mean together."""

import math
from dataclasses import dataclass, fields
from functools import partial

from minidp.arithmetic import ARITHMETICS, EXACT, ORDINARY
from minidp.backend import check_device
from minidp.errors import ParameterError
from minidp.mechanism.sampling import SAMPLERS
from minidp.run.record import ACCOUNTANTS
from minidp.train import OPTIMIZERS, Averaged
from minidp.validate import in_range, seed_number

from .config import FRACTION, POSITIVE, Checked, at_most, option

LENGTH = partial(in_range, 0, 1e6, open_low=True)


@dataclass(frozen=True)
class RunFlags(Checked):
    """Length, privacy, computation and files of a run. An experiment's own dataclass adds the
    paper's settings.

    It also says `sigma`, and `private`, True if all that is released carries noise.
    """

    default_target = math.inf  # epsilon, where no flag says how long to train

    target_epsilon: float | None = option(
        None, "train until this would be exceeded", LENGTH, exclusive="length"
    )
    epochs: float | None = option(
        None, "passes over the data, instead of a target", LENGTH, exclusive="length"
    )
    steps: int | None = option(
        None, "lots, instead of a target", at_most(10**9), exclusive="length"
    )
    delta: float = option(
        1e-5, "delta of the guarantee", partial(in_range, 0, 1, open_low=True, open_high=True)
    )
    lot_size: int = option(600, "examples per lot, on average", POSITIVE)
    sampler: str = option("poisson", "how lots are drawn", choices=tuple(SAMPLERS))
    accountant: str = option("moments", "that the target is held by", choices=ACCOUNTANTS)
    optimizer: str = option("sgd", "of the released gradients", choices=tuple(OPTIMIZERS))
    average: float = option(
        0.0,
        "decay of a moving average of the weights, which is evaluated and saved in their place; "
        "0: the last weights (free of charge: post-processing)",
        FRACTION,
    )
    gradients: str = option(
        "auto", "per-example gradients", choices=("auto", "explicit", "factored")
    )
    arithmetic: str = option(
        ORDINARY,
        "exact: slower, and the guarantee holds for the released bits",
        choices=ARITHMETICS,
    )
    batch_size: int | None = option(
        None,
        "examples computed at once (default: up to 4,096, on the CPU what its cache "
        "holds); bounds memory, changes no result but for rounding",
        POSITIVE,
    )
    train_metrics: bool = option(True, "do not evaluate on training data (which is not private)")
    baseline: bool = option(False, "the non-private network: no clipping, no noise")
    device: str = option("auto", "where to compute: auto, cpu, gpu or gpu:N", check_device)
    data_dir: str | None = option(None, "folder that holds the data set's files")
    seed: int | None = option(
        None, "one seed for everything: reproducible, and not to be released", seed_number
    )
    out: str | None = option(None, "folder for the results (default: runs/EXPERIMENT-TIME)")
    resume: bool = option(False, "go on with the run in --out")
    quiet: bool = option(False, "no progress bar")
    smoke: bool = option(False, "a few hundred examples, seconds")

    def __post_init__(self):
        super().__post_init__()
        if self.baseline and self.arithmetic == EXACT:
            raise ParameterError(
                "--baseline does not clip, and the grid of --arithmetic exact is a part of the "
                "clip norm; leave out one of them"
            )
        given = [
            field.name
            for field in fields(self)
            if field.name.endswith("noise_multiplier")
            and field.default is None
            and getattr(self, field.name)
        ]
        if self.baseline and given:
            flags = " and ".join("--" + name.replace("_", "-") for name in given)
            raise ParameterError(f"--baseline has no noise; leave out {flags}")
        if self.target_epsilon is not None and not self.private:
            raise ParameterError(
                "--target-epsilon needs noise: epsilon is infinite with --baseline or a noise of "
                "0; set --epochs or --steps"
            )

    def chosen(self, given, usual):
        """A noise multiplier: what was given, or else the usual one; 0 with --baseline."""
        return 0.0 if self.baseline else usual if given is None else given

    @property
    def private(self):
        """True if the steps carry noise."""
        return self.sigma > 0

    def make_optimizer(self, learning_rate, name=None):
        """The optimizer of the flags, or of that name, averaging if asked for."""
        optimizer = OPTIMIZERS[name or self.optimizer](learning_rate)
        return Averaged(optimizer, self.average) if self.average else optimizer

    @property
    def length_is_set(self):
        """True if one of the flags says how long to train."""
        return any(flag is not None for flag in (self.target_epsilon, self.epochs, self.steps))

    @property
    def target(self):
        """The epsilon to stop before, infinite if the length is set otherwise or nothing is
        private.
        """
        if self.epochs is not None or self.steps is not None or not self.private:
            return math.inf
        return self.default_target if self.target_epsilon is None else self.target_epsilon
