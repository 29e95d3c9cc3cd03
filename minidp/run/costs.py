"""Epsilon of a planned run, and noise or steps for a target: `minidp.epsilon` and
`minidp.calibrate`. The commands of the same names print their answers.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..mechanism import ClipGroup, PoissonSampler, PrivatePCA, Sanitizer
from ..mechanism.samplers import SAMPLERS, make_sampler
from ..privacy import Gaussian, Ledger, NeighbouringRelation
from ..privacy.accountants import all_bounds, every, make, row_to_quote
from ..privacy.calibrate import max_steps, noise_multiplier_for
from ..privacy.group_privacy import GroupAccountant
from ..privacy.ledger import SETUP
from ..util.atomic import StrPath
from ..util.validate import count as check_count
from ..util.validate import in_range, open_probability, positive_finite
from ..util.words import names_checked
from .answers import Calibration, Cost, rows_of
from .attacker import meaning_of
from .options import Checked, option

MOST_STEPS = 10**18
PARTS = {  # parts of a setting, and how each may be given
    "noise_multiplier": "noise_multiplier=",
    "steps": "either steps= or epochs=",
    "sampling_probability": "either sampling_probability= or dataset_size= and lot_size=",
}


@dataclass(frozen=True, kw_only=True)
class Setting(Checked):
    """A planned run; a field that is not given is None. The fields are the flags of the commands
    `epsilon` and `calibrate`, and all except `relation` are parameters of the functions.
    """

    noise_multiplier: tuple[float, ...] | None = option(
        None,
        "noise standard deviation / clip norm; several, such as 4,4, for layers that a step "
        "releases together",
        metavar="SIGMA",
        also=("--noise-multipliers",),
    )
    sampling_probability: float | None = option(
        None, "each example's chance per step: 0.01 or 1/60", metavar="Q"
    )
    dataset_size: int | None = option(
        None, "public number of examples; with --lot-size, q = L / N", metavar="N"
    )
    lot_size: int | None = option(
        None, "examples per step, on average with --sampler poisson", metavar="L"
    )
    sampler: str | None = option(
        None,
        "; ".join(f"{name}: {each.said}" for name, each in SAMPLERS.items())
        + " (default: poisson)",
        choices=tuple(SAMPLERS),
    )
    relation: str | None = option(
        None,
        "neighbouring relation; must match the sampler",
        choices=tuple(relation.value for relation in NeighbouringRelation),
    )
    pca_noise_multiplier: float | None = option(
        None, "noise of DP-PCA before the first step", metavar="SIGMA"
    )
    steps: int | None = option(None, "number of steps, such as 1e4", metavar="T")
    epochs: float | None = option(
        None, "passes over the data: E / q steps, rounded up", metavar="E"
    )

    def missing(self) -> list[str]:
        """The names of PARTS that are not given."""
        given = {
            "noise_multiplier": (self.noise_multiplier,),
            "steps": (self.steps, self.epochs),
            "sampling_probability": (self.sampling_probability, self.lot_size),
        }
        return [name for name, values in given.items() if all(value is None for value in values)]

    def made_sampler(self) -> Any:
        """The sampler. Raises ParameterError unless it is described in exactly one way, and if
        `relation` is not the sampler's own.
        """
        name, q = self.sampler or "poisson", self.sampling_probability
        size, lot_size = self.dataset_size, self.lot_size
        sampler: Any
        if q is None and size is not None and lot_size is not None:
            sampler = make_sampler(name, size, lot_size)
        elif name == "poisson" and q is not None and size is None and lot_size is None:
            sampler = PoissonSampler(q)
        elif name == "poisson":
            raise ParameterError(f"expected {PARTS['sampling_probability']}")
        else:
            raise ParameterError(f"expected with sampler={name} dataset_size= and lot_size=")
        if self.relation not in (None, sampler.relation.value):
            raise ParameterError(
                f"expected relation={sampler.relation.value}, for which sampler={name} is "
                f"analysed, got {self.relation}; leave it out, or name another sampler"
            )
        return sampler

    def number_of_steps(self, sampler: Any) -> int:
        """The number of steps. Raises ParameterError unless it is described in exactly one way."""
        if self.steps is not None and self.epochs is None:
            return self.steps
        if self.steps is not None or self.epochs is None:
            raise ParameterError(f"expected {PARTS['steps']}")
        positive_finite(epochs=self.epochs)
        steps = sampler.steps_of_epochs(self.epochs)
        in_range(0, MOST_STEPS, steps=steps)
        return math.ceil(steps * (1 - 1e-12))  # 1 / (1 / 49) is a little above 49

    def ledger_with(self, sampler: Any, noises: Any, steps: int) -> Ledger:
        """The ledger of `steps` steps with these noise multipliers, after PCA if there is any."""
        check_count(0, MOST_STEPS, steps=steps)
        sigma = self.pca_noise_multiplier
        setup = [] if sigma is None else [(PrivatePCA(1, sigma).event(), 1, SETUP)]
        return Ledger(sampler.relation, [*setup, sampler.charges(_release_event(noises), steps)])

    def planned_ledger(self) -> Ledger:
        """The ledger of this run. Raises ParameterError that names all missing parts."""
        if missing := self.missing():
            raise ParameterError(
                f"expected {'; and '.join(PARTS[name] for name in missing)}, or ledger=FILE for a "
                "run that is done"
            )
        sampler = self.made_sampler()
        return self.ledger_with(sampler, self.noise_multiplier, self.number_of_steps(sampler))


@names_checked
def epsilon(
    *,
    delta: float,
    noise_multiplier: float | Sequence[float] | None = None,
    sampling_probability: float | None = None,
    dataset_size: int | None = None,
    lot_size: int | None = None,
    sampler: str | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    pca_noise_multiplier: float | None = None,
    ledger: StrPath | Ledger | None = None,
    group_size: int = 1,
    accountant: str = "bounds",
) -> Cost:
    """Epsilon of a run at a given delta, as the dictionary that `minidp epsilon --json` prints,
    where infinity is "inf". Printing it gives the command's table, and float() of it is the epsilon
    to quote. `upper`, `lower`, `accountant` and `meaning` describe this epsilon.

    noise_multiplier      noise standard deviation / clip norm; several for the layers of one step
    sampling_probability  each example's chance per step; or dataset_size and lot_size
    sampler               its name, "poisson" by default; `minidp epsilon --help` has all
    steps                 number of steps; or epochs, passes over the data
    pca_noise_multiplier  noise of private PCA before the first step
    ledger                a Ledger, or a run's ledger.json or folder, instead of all above
    group_size            rows of one person, which are added or removed together
    accountant            "bounds", "all", or one by name, such as pld, rdp or moments

    found["accountants"] takes these names as keys. In JSON it has the names of files
    (loss_distribution for pld, renyi for rdp, gaussian_clt for gdp). "quote" is the name of the
    accountant with the smallest certified bound, or None if no bound is finite.

    >>> found = epsilon(delta=1e-5, noise_multiplier=4, sampling_probability=0.01, steps=10_000)
    >>> round(float(found), 3), found.accountant, found.meaning[:18]
    (0.947, 'pld', 'An attacker who kn')
    >>> found["accountants"]["pld"]["upper"] == found.upper
    True
    """
    setting = Setting(
        noise_multiplier=_noises(noise_multiplier),
        sampling_probability=sampling_probability,
        dataset_size=dataset_size,
        lot_size=lot_size,
        sampler=sampler,
        steps=steps,
        epochs=epochs,
        pca_noise_multiplier=pca_noise_multiplier,
    )
    found = ledger_of(setting, ledger)
    return compared(found, accountants_of(accountant), group_size, delta=delta)


@names_checked
def calibrate(
    *,
    epsilon: float,
    delta: float,
    noise_multiplier: float | Sequence[float] | None = None,
    sampling_probability: float | None = None,
    dataset_size: int | None = None,
    lot_size: int | None = None,
    sampler: str | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    pca_noise_multiplier: float | None = None,
    group_size: int = 1,
    accountant: str = "pld",
) -> Calibration:
    """Noise multiplier or steps for a target epsilon, as the dictionary that `minidp calibrate
    --json` prints. float() of it is the answer; `upper`, `lower`, `accountant` and `meaning`
    describe the epsilon that this answer gives.

    Give either the noise or the length; the other is found. The other parameters are those of
    `minidp.epsilon`. The named accountant decides whether the target is met; "kind" says whether
    its figure is a bound.

    >>> found = calibrate(epsilon=2, delta=1e-5, sampling_probability=0.01, steps=10_000)
    >>> round(float(found), 2), found.upper <= 2, found["kind"]
    (2.13, True, 'bound')
    """
    setting = Setting(
        noise_multiplier=_noises(noise_multiplier),
        sampling_probability=sampling_probability,
        dataset_size=dataset_size,
        lot_size=lot_size,
        sampler=sampler,
        steps=steps,
        epochs=epochs,
        pca_noise_multiplier=pca_noise_multiplier,
    )
    return calibrated(setting, epsilon, delta, accountant, group_size)


def _noises(noise_multiplier):
    """One noise multiplier or several as a tuple."""
    return None if noise_multiplier is None else tuple(np.ravel(noise_multiplier).tolist())


def accountants_of(name: str) -> list[str]:
    """The accountants that a name stands for: "bounds", "all", or itself."""
    if name == "bounds":
        return [each.name for each in every() if each.kind == "bound"]
    return [each.name for each in every()] if name == "all" else [name]


def compared(ledger: Ledger, names: Iterable[str], group_size: int = 1, **given: float) -> Cost:
    """The result of `all_bounds`, and its meaning for an attacker, at the delta or epsilon in
    `given`.
    """
    rows = rows_of(all_bounds(ledger, names, **given, group_size=group_size))
    worthless = math.inf if "delta" in given else 1.0
    record: dict[str, Any] = {**given, "quote": row_to_quote(rows, worthless), "accountants": rows}
    if "delta" in given and (said := meaning_of(ledger, given["delta"], group_size)):
        record["meaning"] = said
    return Cost({**record, "ledger": ledger.to_json()}, group_size)


def ledger_of(setting: Setting, ledger: StrPath | Ledger | None) -> Ledger:
    """The given ledger, or that of the setting. Raises ParameterError if both are given."""
    if ledger is None:
        return setting.planned_ledger()
    names = [field.name for field in fields(Setting)]
    if given := [name for name in names if getattr(setting, name) is not None]:
        listed = ", ".join(f"{name}=" for name in given)
        raise ParameterError(f"ledger= says what was done; leave out {listed}")
    return ledger if isinstance(ledger, Ledger) else Ledger.load(path_of(ledger))


def path_of(ledger: StrPath) -> Path:
    """The path of a ledger, given by its file or by its run's folder."""
    return Path(ledger, "ledger.json") if Path(ledger).is_dir() else Path(ledger)


def _release_event(noises):
    """The event of one step before sampling, with these noise multipliers; infinite noise releases
    nothing.
    """
    if math.inf in noises:
        return Gaussian(math.inf)
    return Sanitizer(
        [
            ClipGroup(f"layer {i}", [(f"layer {i}", "all")], 1.0, sigma)
            for i, sigma in enumerate(noises)
        ]
    ).event()


def calibrated(
    setting: Setting, epsilon: float, delta: float, accountant: str, group_size: int
) -> Calibration:
    """What `calibrate` returns."""
    open_probability(delta=delta)
    positive_finite(epsilon=epsilon)
    missing = setting.missing()
    if missing not in (["noise_multiplier"], ["steps"]):
        raise ParameterError(
            f"expected one of these two, to find the other: {PARTS['noise_multiplier']}; "
            f"{PARTS['steps']}; and beside it {PARTS['sampling_probability']}"
        )
    (name,) = missing
    sampler = setting.made_sampler()
    judge = GroupAccountant(make(accountant, sampler.relation), group_size)
    with_value = _ledgers(setting, sampler, name)
    search, first = (noise_multiplier_for, 1.0) if name == "noise_multiplier" else (_steps_for, 0)
    with_value(first)  # also checks the rest of the setting
    found = search(judge, with_value, epsilon, delta)
    ledger = with_value(found)
    record = {
        name: found,
        "epsilon": judge.epsilon(ledger, delta).as_dict(),
        "delta": delta,
        "accountant": judge.name,
        "kind": judge.kind,
        "ledger": ledger.to_json(),
    }
    return Calibration(record, group_size)


def _ledgers(setting, sampler, name):
    """A function of the value of the missing part `name` that gives the setting's ledger."""
    if name == "steps":
        return lambda steps: setting.ledger_with(sampler, setting.noise_multiplier, steps)
    steps = setting.number_of_steps(sampler)
    return lambda sigma: setting.ledger_with(sampler, (sigma,), steps)


def _steps_for(accountant, with_steps, epsilon, delta):
    nothing = Ledger(accountant.relation)
    return max_steps(accountant, nothing, lambda n: with_steps(n).items(), epsilon, delta)
