"""epsilon, delta, calibrate: figures."""

import math
import sys
from dataclasses import dataclass

from ..mechanism import PoissonSampler
from ..privacy.accountants import make, short_names
from ..run.attacker import large_delta
from ..run.costs import Setting, accountants_of, calibrated, compared, ledger_of, path_of
from ..run.options import REQUIRED, option
from .output import json_option, refuse_unbounded, show


def _group_option():
    return option(1, "rows of one person, which are added or removed together", metavar="K")


def _delta_option():
    return option(REQUIRED, "delta of (epsilon, delta)-DP, in (0, 1); 0 is for pure epsilon-DP")


@dataclass(frozen=True, kw_only=True)
class Comparison(Setting):
    """Flags of the commands that compare accountants on a planned run, or on a ledger."""

    ledger: str | None = option(
        None,
        "a run's folder or ledger.json, instead of noise, sampling and steps",
        metavar="FILE",
    )
    group_size: int = _group_option()
    json: bool = json_option()
    accountant: str = option(
        "bounds",
        "accountants to print: those that prove a bound, all, or one by name",
        names={"bounds": "bounds", "all": "all", **short_names()},
        exclusive="accountant",
    )
    all: bool = option(
        False,
        "short for --accountant all: also approximations and comparisons, which prove nothing",
        exclusive="accountant",
    )

    def compare(self, worthless, **given):
        """Print epsilon at the given delta, or delta at the given epsilon.

        Raises ParameterError, before the table, if no accountant has a figure below `worthless`.
        """
        ledger = ledger_of(self, self.ledger)
        names = accountants_of("all" if self.all else self.accountant)
        record = compared(ledger, names, self.group_size, **given)
        if not self.json:
            refuse_unbounded(record["accountants"], worthless)
        at = ", ".join(f"{name} {value:g}" for name, value in given.items())
        show(self, record, [f"{self._title(ledger)}, {at}", str(record)])
        refuse_unbounded(record["accountants"], worthless)

    def _title(self, ledger):
        """Describe the releases in one line."""
        parts = self._planned() if self.ledger is None else self._charged(ledger)
        parts.append(ledger.relation.value)
        if self.group_size > 1:
            parts.append(f"{self.group_size} rows of one person")
        return ", ".join(parts)

    def _charged(self, ledger):
        releases = sum(count for _, count in ledger.items())
        return [f"{path_of(self.ledger)}: {releases} releases"]

    def _planned(self):
        sampler = self.made_sampler()
        noise = ", ".join(f"{sigma:g}" for sigma in self.noise_multiplier)
        lots = f"{self.sampler} lots of {self.lot_size} from {self.dataset_size}"
        if isinstance(sampler, PoissonSampler):
            lots = f"sampling probability {sampler.sampling_probability:.4g}"
        parts = [f"sigma {noise}", lots, f"{self.number_of_steps(sampler)} steps"]
        if self.pca_noise_multiplier is not None:
            parts.append(f"PCA with sigma {self.pca_noise_multiplier:g}")
        return parts


@dataclass(frozen=True, kw_only=True)
class EpsilonCommand(Comparison):
    """Flags of `minidp epsilon`."""

    examples = (
        "examples:\n  %(prog)s --noise-multiplier 4 --sampling-probability 0.01 --steps 1e4 "
        "--delta 1e-5\n  %(prog)s --noise-multiplier 1 --dataset-size 6e4 --lot-size 256 --epochs "
        "9 --delta 1e-5\n  %(prog)s --ledger runs/mine/ledger.json --delta 1e-5"
    )
    delta: float = _delta_option()

    def run(self):
        """Run the command."""
        _remark_delta(self)
        self.compare(math.inf, delta=self.delta)


@dataclass(frozen=True, kw_only=True)
class DeltaCommand(Comparison):
    """Flags of `minidp delta`."""

    examples = (
        "example: %(prog)s --noise-multiplier 4 --sampling-probability 0.01 --steps 1e4 --epsilon 1"
    )
    epsilon: float = option(REQUIRED, "epsilon of (epsilon, delta)-DP, at least 0")

    def run(self):
        """Run the command."""
        self.compare(1.0, epsilon=self.epsilon)


def _remark_delta(flags):
    """Print a NOTICE if delta is large for the data set, whose size may be unknown."""
    if flags.dataset_size is not None and (why := large_delta(flags.delta, flags.dataset_size)):
        print(f"NOTICE: delta={flags.delta:g} is {why}", file=sys.stderr)


@dataclass(frozen=True, kw_only=True)
class CalibrateCommand(Setting):
    """Flags of `minidp calibrate`."""

    examples = (
        "Noise or length is given, and the other is found:\n"
        "  %(prog)s --target-epsilon 2 --delta 1e-5 --dataset-size 60000 --lot-size 600 "
        "--epochs 100\n  %(prog)s --target-epsilon 2 --delta 1e-5 --sampling-probability 0.01 "
        "--noise-multiplier 4"
    )
    target_epsilon: float = option(
        REQUIRED,
        "the target: epsilon must not exceed it at --delta",
        metavar="EPSILON",
        also=("--epsilon",),
    )
    delta: float = _delta_option()
    group_size: int = _group_option()
    accountant: str = option(
        "loss_distribution",
        "accountant that must meet the target (default: pld)",
        names=short_names(),
    )
    json: bool = json_option()
    quiet: bool = option(False, "no progress output")

    def run(self):
        """Run the command."""
        accountant = make(self.accountant)
        if accountant.kind != "bound":
            print(
                f"NOTICE: {accountant.called()} proves no bound: the true epsilon may exceed "
                "the target; --accountant pld, rdp or moments keeps it",
                file=sys.stderr,
            )
        _remark_delta(self)
        record = calibrated(self, self.target_epsilon, self.delta, self.accountant, self.group_size)
        show(self, record, [str(record)])
