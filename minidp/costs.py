"""Epsilon of a run that is only planned, and what fits a target: `minidp.epsilon` and
`minidp.calibrate`, which the commands of these names print.

A `setting` is any object with the parameters of these two functions as attributes, such as the
parsed flags of a command, with noise multipliers as a tuple; what is not given is None.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .errors import MinidpError, ParameterError
from .mechanism import ClipGroup, PoissonSampler, PrivatePCA, Sanitizer
from .mechanism.samplers import make_sampler, steps_of_epochs
from .privacy import Gaussian, Ledger
from .privacy.accountants import ACCOUNTANTS, all_bounds, make, row_to_quote
from .privacy.attacker import meaning_of
from .privacy.calibrate import max_steps, noise_multiplier_for
from .privacy.group_privacy import GroupAccountant
from .privacy.ledger import SETUP
from .util.atomic import StrPath
from .util.validate import count as check_count
from .util.validate import in_range, open_probability, positive_finite

MOST_STEPS = 10**18
PARTS = {  # of a setting, and the flags of each
    "noise_multiplier": "--noise-multiplier",
    "steps": "either --steps or --epochs",
    "sampling_probability": "either --sampling-probability or --dataset-size and --lot-size",
}
DESCRIBED = (  # what describes a run, in place of a ledger
    "noise_multiplier",
    "sampling_probability",
    "dataset_size",
    "lot_size",
    "sampler",
    "relation",
    "pca_noise_multiplier",
    "steps",
    "epochs",
)


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
) -> dict[str, Any]:
    """Epsilon of a run at a given delta: the dictionary that `minidp epsilon --json` prints.

    noise_multiplier      noise standard deviation / clip norm; several for the layers of one step
    sampling_probability  each example's chance per step; or dataset_size and lot_size
    sampler               "poisson" (the default) or "shuffle"
    steps                 number of steps; or epochs, passes over the data
    pca_noise_multiplier  noise of private PCA before the first step
    ledger                a Ledger, or a run's ledger.json or folder, in place of all above
    group_size            examples of each person, all in the data or none
    accountant            "bounds", "all", or one by name

    "quote" names the accountant with the smallest certified bound, None if there is no finite one.

    >>> found = epsilon(delta=1e-5, noise_multiplier=4, sampling_probability=0.01, steps=10_000)
    >>> found["quote"], round(found["accountants"]["loss_distribution"]["upper"], 3)
    ('loss_distribution', 0.947)
    """
    setting = _setting(locals(), relation=None)
    with _flags_as_arguments():
        found = ledger_of(setting)
        return compared(found, accountants_of(accountant), group_size, delta=delta)[1]


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
    accountant: str = "loss_distribution",
) -> dict[str, Any]:
    """Noise multiplier or steps for a target epsilon: the dictionary that `minidp calibrate --json`
    prints.

    Of noise and length, give one; the other is found. The other parameters are those of
    `minidp.epsilon`. The target is kept by the accountant named; "kind" says whether that is a
    bound.

    >>> found = calibrate(epsilon=2, delta=1e-5, sampling_probability=0.01, steps=10_000)
    >>> round(found["noise_multiplier"], 2), found["epsilon"]["upper"] <= 2, found["kind"]
    (2.13, True, 'bound')
    """
    setting = _setting(locals(), relation=None, target_epsilon=epsilon)
    with _flags_as_arguments():
        return calibrated(setting)


def _setting(given, **more):
    noises = given["noise_multiplier"]
    if noises is not None:
        noises = tuple(np.ravel(noises).tolist())
    return SimpleNamespace(**{**given, **more, "noise_multiplier": noises})


@contextmanager
def _flags_as_arguments() -> Iterator[None]:
    """In messages, call --lot-size lot_size."""
    try:
        yield
    except MinidpError as error:
        text = re.sub(r"--(\w+(-\w+)*)", lambda found: found[1].replace("-", "_"), str(error))
        raise type(error)(text) from None


def accountants_of(name: str) -> list[str]:
    """The accountants that a name stands for: "bounds", "all", or itself."""
    if name == "bounds":
        return [each for each in ACCOUNTANTS if make(each).kind == "bound"]
    return list(ACCOUNTANTS) if name == "all" else [name]


def compared(
    ledger: Ledger, names: Iterable[str], group_size: int = 1, **given: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what `all_bounds` finds, the same as JSON with what it means to an attacker) at the delta or
    epsilon that is `given`.
    """
    found = all_bounds(ledger, names, **given, group_size=group_size)
    rows = rows_of(found)
    worthless = math.inf if "delta" in given else 1.0
    record = {**given, "quote": row_to_quote(rows, worthless), "accountants": rows}
    if "delta" in given and (said := meaning_of(ledger, given["delta"], group_size)):
        record["meaning"] = said
    return found, {**record, "ledger": ledger.to_json()}


def rows_of(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What `all_bounds` found as JSON, {name: figures, kind and note}."""
    return {
        name: {**bound.to_json(), "kind": kind, "note": note}
        for name, (bound, kind, note) in found.items()
    }


def sampler_of(setting: Any) -> Any:
    """The sampler of a setting; ParameterError unless it is described in exactly one way."""
    name = setting.sampler or "poisson"
    sizes = (setting.dataset_size, setting.lot_size)
    q = setting.sampling_probability
    if name == "poisson" and q is not None and sizes == (None, None):
        return _as_related(setting, PoissonSampler(q))
    if q is None and None not in sizes:
        return _as_related(setting, make_sampler(name, *sizes))
    either = "either --sampling-probability or "
    if name != "poisson":
        either = f"with --sampler {name} "
    raise ParameterError(f"expected {either}--dataset-size and --lot-size")


def _as_related(setting, sampler):
    """The sampler. Raises ParameterError where --relation names another than its own."""
    if setting.relation not in (None, sampler.relation.value):
        raise ParameterError(
            f"expected --relation {sampler.relation.value}, for which --sampler "
            f"{setting.sampler or 'poisson'} is analysed, got {setting.relation}; leave it out, or "
            "name another sampler"
        )
    return sampler


def steps_of(setting: Any, sampler: Any) -> int:
    """The number of steps of a setting. Raises ParameterError unless it is described in exactly one
    way.
    """
    if (setting.steps is None) == (setting.epochs is None):
        raise ParameterError(f"expected {PARTS['steps']}")
    if setting.steps is not None:
        return setting.steps
    positive_finite(epochs=setting.epochs)
    steps = steps_of_epochs(sampler, setting.epochs)
    in_range(0, MOST_STEPS, steps=steps)
    return math.ceil(steps * (1 - 1e-12))  # 1 / (1 / 49) is a little above 49


def ledger_with(setting: Any, sampler: Any, noises: Sequence[float], steps: int) -> Ledger:
    """The ledger of PCA, if there is one, and of `steps` steps with these noise multipliers."""
    check_count(0, MOST_STEPS, steps=steps)
    sigma = setting.pca_noise_multiplier
    setup = [] if sigma is None else [(PrivatePCA(1, sigma).event(), 1, SETUP)]
    return Ledger(sampler.relation, [*setup, sampler.charges(_release_event(noises), steps)])


def ledger_of(setting: Any) -> Ledger:
    """The ledger that a setting names or describes."""
    if setting.ledger is None:
        check_parts(setting)
        sampler = sampler_of(setting)
        return ledger_with(setting, sampler, setting.noise_multiplier, steps_of(setting, sampler))
    given = [name for name in DESCRIBED if getattr(setting, name, None) is not None]
    if given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ParameterError(f"--ledger says what was done; leave out {flags}")
    if isinstance(setting.ledger, Ledger):
        return setting.ledger
    return Ledger.load(path_of(setting.ledger))


def check_parts(setting: Any) -> None:
    """Raise ParameterError, with all parts that are missing, unless a setting has all of PARTS."""
    if missing := _missing(setting):
        raise ParameterError(
            f"expected {'; and '.join(PARTS[name] for name in missing)}, or --ledger FILE for a "
            "run that is done"
        )


def _missing(setting):
    """The names of PARTS of which nothing is given."""
    given = {
        "noise_multiplier": {setting.noise_multiplier},
        "steps": {setting.steps, setting.epochs},
        "sampling_probability": {setting.sampling_probability, setting.lot_size},
    }
    return [name for name, values in given.items() if values == {None}]


def path_of(ledger: StrPath) -> Path:
    """The file of a ledger that is named by itself or by its run's folder."""
    return Path(ledger, "ledger.json") if Path(ledger).is_dir() else Path(ledger)


def _release_event(noises):
    """What one step releases, before sampling, with these noise multipliers; infinite noise
    releases nothing.
    """
    if math.inf in noises:
        return Gaussian(math.inf)
    return Sanitizer(
        [
            ClipGroup(f"layer {i}", [(f"layer {i}", "all")], 1.0, sigma)
            for i, sigma in enumerate(noises)
        ]
    ).event()


def calibrated(setting: Any) -> dict[str, Any]:
    """What `calibrate` returns, of a setting with a `target_epsilon`."""
    delta = setting.delta
    open_probability(delta=delta)
    positive_finite(epsilon=setting.target_epsilon)
    missing = _missing(setting)
    if missing not in (["noise_multiplier"], ["steps"]):
        raise ParameterError(
            f"expected one of these two, to find the other: {PARTS['noise_multiplier']}; "
            f"{PARTS['steps']}; and beside it {PARTS['sampling_probability']}"
        )
    (name,) = missing
    sampler = sampler_of(setting)
    accountant = GroupAccountant(make(setting.accountant, sampler.relation), setting.group_size)
    search, first = (noise_multiplier_for, 1.0) if name == "noise_multiplier" else (_steps_for, 0)
    with_value = _ledgers(setting, sampler, name)
    with_value(first)  # which checks the rest of the setting
    found = search(accountant, with_value, setting.target_epsilon, delta)
    ledger = with_value(found)
    return {
        name: found,
        "epsilon": accountant.epsilon(ledger, delta).to_json(),
        "delta": delta,
        "accountant": accountant.name,
        "kind": accountant.kind,
        "ledger": ledger.to_json(),
    }


def _ledgers(setting, sampler, name):
    """A function of the value of the missing part `name` that gives the setting's ledger."""
    noises = setting.noise_multiplier
    if name == "steps":
        return lambda steps: ledger_with(setting, sampler, noises, steps)
    steps = steps_of(setting, sampler)
    return lambda sigma: ledger_with(setting, sampler, (sigma,), steps)


def _steps_for(accountant, with_steps, epsilon, delta):
    nothing = Ledger(accountant.relation)
    return max_steps(accountant, nothing, lambda n: with_steps(n).items(), epsilon, delta)
