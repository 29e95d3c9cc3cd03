"""The flags that every private training run has, as a dataclass for `minidp.commands.flags.parse`;
scripts with commands.
"""

import dataclasses
import math
import shlex
import sys
from functools import partial

from minidp.backend import check_device
from minidp.commands.flags import parse as parse
from minidp.commands.flags import user_errors, with_flags
from minidp.errors import ParameterError
from minidp.mechanism import LinearDecay
from minidp.mechanism.samplers import SAMPLERS
from minidp.privacy.accountants import short_names
from minidp.ranks import current
from minidp.run.options import Checked as Checked
from minidp.run.options import option as option
from minidp.train import OPTIMIZERS, Averaged
from minidp.util.files import jsonable
from minidp.util.notices import quietly
from minidp.util.validate import (
    count,
    in_range,
    non_negative_finite,
    open_probability,
    seed_number,
)

GO_ON = "what was charged is in the run's folder, if it was made: go on with --resume"

# Flags that set where a run reads and writes, and do not change its result: they may differ when it
# is resumed.
FREE = ("folder", "out", "resume", "quiet", "data_dir", "device")

FRACTION = partial(in_range, 0, 1, open_high=True)
POSITIVE = partial(count, 1)
LENGTH = partial(in_range, 0, 1e6, open_low=True)


def digits_option():
    """The field of --dataset, for digits."""
    return option(
        "mnist",
        "digits to train on: mnist, strokes (synthetic digits), or auto (MNIST, or synthetic "
        "digits if it is not available)",
        choices=("auto", "mnist", "strokes"),
    )


def clipping_option(default):
    """The field of --clipping."""
    return option(
        default,
        "clip all parameters together (flat) or each layer separately",
        choices=("per-layer", "flat"),
    )


def dtype_option():
    """The field of --dtype."""
    return option(
        "float32",
        "number type of the weights; float64 is slower, and then an example's gradient does not "
        "depend on the other examples of its batch, as far as a trial on this machine shows",
        choices=("float32", "float64"),
    )


def pretrained_option():
    """The field of --pretrained."""
    return option(None, "file that `pretrain` wrote, in place of the one in experiments/pretrained")


def device_option(default="auto"):
    """The field of --device."""
    return option(default, "where to compute: auto, cpu, gpu or gpu:N", check_device)


@dataclasses.dataclass(frozen=True)
class RunFlags(Checked):
    """Length, privacy, computation and files of a run. An experiment's own dataclass adds the
    paper's settings, `sigma`, and `private`: True if every release has noise. A field with
    `noise=True` is a noise multiplier, which --baseline goes without.
    """

    default_target = math.inf  # epsilon, if no flag sets the length of training

    target_epsilon: float | None = option(
        None,
        "train until this epsilon would be exceeded",
        LENGTH,
        exclusive="length",
        also=("--epsilon",),
    )
    epochs: float | None = option(
        None, "passes over the data, instead of a target epsilon", LENGTH, exclusive="length"
    )
    steps: int | None = option(
        None, "number of lots, instead of a target", partial(count, 1, 10**9), exclusive="length"
    )
    delta: float = option(1e-5, "delta of the guarantee", open_probability)
    lot_size: int = option(600, "examples per lot, on average", POSITIVE)
    sampler: str = option("poisson", "how lots are drawn", choices=tuple(SAMPLERS))
    accountant: str = option(
        "moments", "accountant that decides when the target is reached", names=short_names()
    )
    optimizer: str = option("sgd", "how gradients update the weights", choices=tuple(OPTIMIZERS))
    average: float = option(
        0.0,
        "decay of a moving average of the weights, which is evaluated and saved in their place "
        "(it costs no privacy); 0: the last weights",
        FRACTION,
    )
    gradients: str = option(
        "auto",
        "how per-example gradients are computed: materialised, factored (ghost clipping), or the "
        "cheaper for each parameter",
        choices=("auto", "explicit", "factored"),
    )
    batch_size: int | None = option(
        None,
        "examples computed at once (default: up to 4,096, and on the CPU what fits its cache); "
        "limits memory, and changes results by rounding only",
        POSITIVE,
    )
    train_metrics: bool = option(True, "skip accuracy on training data, which is not private")
    baseline: bool = option(False, "train without privacy: no clipping, no noise")
    device: str = device_option()
    data_dir: str | None = option(None, "folder that holds the data set's files")
    seed: int | None = option(
        None,
        "one seed for everything: reproducible, and therefore never to be published",
        seed_number,
    )
    folder: str | None = option(
        None, "folder of the run (default: runs/EXPERIMENT-TIME)", also=("--out",)
    )
    resume: bool = option(False, "resume the run in --folder")
    quiet: bool = option(False, "show no progress bar")
    smoke: bool = option(False, "test on a few hundred examples, in seconds")

    def __post_init__(self):
        super().__post_init__()
        given = [
            field.name
            for field in dataclasses.fields(self)
            if "noise" in field.metadata and getattr(self, field.name)
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
        """A noise multiplier: the given one, or else the default; 0 with --baseline."""
        return 0.0 if self.baseline else float(usual if given is None else given)

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
        """True if a flag sets the length of training."""
        return any(flag is not None for flag in (self.target_epsilon, self.epochs, self.steps))

    @property
    def target(self):
        """The epsilon to stop before, infinite if the length is set otherwise or nothing is
        private.
        """
        if self.epochs is not None or self.steps is not None or not self.private:
            return math.inf
        return self.default_target if self.target_epsilon is None else self.target_epsilon


@dataclasses.dataclass(frozen=True)
class DecayFlags(RunFlags):
    """RunFlags for a learning rate that falls linearly and then stays constant."""

    learning_rate: float = option(0.1, "learning rate at the first step", non_negative_finite)
    final_learning_rate: float = option(
        0.052, "learning rate after --decay-epochs", non_negative_finite
    )
    decay_epochs: float = option(
        10.0, "epochs over which the rate falls linearly", partial(in_range, 0, 1e6)
    )

    def falling_optimizer(self, size, name=None):
        """The optimizer of the flags, or of that name, with this rate over `size` examples."""
        decay = round(self.decay_epochs * size / self.lot_size)
        rate = LinearDecay(self.learning_rate, self.final_learning_rate, decay)
        return self.make_optimizer(rate, name)


def main_of(script, about, commands):
    """The function main(argv) of a script with commands, {name: (dataclass of its flags, function
    of them)}; a script without has the one that is named "".

    It returns what the command's function does, the exit status.
    """

    def main(argv=None):
        argv = list(sys.argv[1:] if argv is None else argv)
        name = argv.pop(0) if argv and argv[0] in commands else ""
        if name not in commands:
            listed = ", ".join(commands)
            if argv[:1] in (["--help"], ["-h"]):
                print(f"{about}\nCommands: {listed}; each takes --help")
                return 0
            print(f"error: expected one of {listed} first; each takes --help", file=sys.stderr)
            return 2
        flags, command = commands[name]
        prog = f"{script} {name}".strip()
        with user_errors() as note:
            config = parse(flags, argv, prog=prog, description=about.splitlines()[0])
            note.saved = getattr(config, "saved", GO_ON)
            with quietly(getattr(config, "quiet", False) or current().rank > 0):
                return with_flags(vars(config), lambda: command(config))

    return main


def tell(config, line):
    """Print a line on the work in progress at once, unless --quiet."""
    if not config.quiet:
        print(line, flush=True)


def to_json(config):
    """The configuration as a dictionary that JSON can hold."""
    return jsonable(dataclasses.asdict(config))


def command_of(script, config, leave_out=()):
    """The command line that gives this configuration: `python experiments/SCRIPT` and the flags not
    at their default.
    """
    words = ["python", *f"experiments/{script}".split()]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value == field.default or field.name in leave_out:
            continue
        flag = field.name.replace("_", "-")
        if isinstance(field.default, bool):
            words.append(f"--no-{flag}" if field.default else f"--{flag}")
        else:
            words += [f"--{flag}", str(value)]
    return shlex.join(words)
