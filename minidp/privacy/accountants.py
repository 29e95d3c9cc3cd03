"""Every accountant by name, with a short description."""

import math
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, cast

from ..errors import NumericalBoundError, ParameterError, UnsupportedEventError
from ..util.validate import one_of
from .accountant import NAMES, Accountant, Bound
from .events import NeighbouringRelation
from .group_privacy import GroupAccountant
from .ledger import Ledger

# name in JSON: a note, and the class, which the package exports
ACCOUNTANTS = {
    "moments": (
        "log moments, tail bound (Abadi et al. 2016)",
        "MomentsAccountant",
    ),
    "renyi": (
        "Renyi divergences, sharper conversion",
        "RenyiAccountant",
    ),
    "loss_distribution": (
        "certified interval by FFT",
        "LossDistributionAccountant",
    ),
    "gaussian_clt": (
        "central limit theorem; exact only where nothing is sampled",
        "GaussianAccountant",
    ),
    "advanced": (
        "strong composition of exact amplified pairs",
        "AdvancedAccountant",
    ),
    "basic": (
        "epsilons and deltas add up",
        "BasicAccountant",
    ),
    "paper_strong_composition": (
        "the paper's Figure 2; its conditions do not hold, no guarantee",
        "PaperStrongComposition",
    ),
    "ledger_2016": (
        "one charge per tensor as in the 2016 code; understates",
        "PerTensorAccountant2016",
    ),
}
UNKNOWN = Bound(None, None, None)  # type: ignore[arg-type]  # no accountant gives it


def make(name: str, relation: NeighbouringRelation = NeighbouringRelation.ADD_REMOVE) -> Accountant:
    """The accountant of that name, of NAMES or in JSON, under a neighbouring relation."""
    if name not in ACCOUNTANTS:
        one_of(NAMES, accountant=name)
    return getattr(import_module(__package__), ACCOUNTANTS[NAMES.get(name, name)][1])(relation)


def as_accountant(accountant: Accountant | str, relation: NeighbouringRelation) -> Accountant:
    """The accountant itself, or the one of that name under the relation. Raises ParameterError if
    there is none.
    """
    if isinstance(accountant, str):
        return make(accountant, relation)
    if not hasattr(accountant, "epsilon"):
        raise ParameterError(
            f"expected accountant={accountant!r:.80} to be an accountant, such as "
            f"MomentsAccountant(), or the name of one: {', '.join(NAMES)}"
        )
    return accountant


def all_bounds(
    ledger: Ledger,
    names: Iterable[str],
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    group_size: int = 1,
) -> dict[str, tuple[Bound, str, str]]:
    """{name in JSON: (Bound, kind, note)}: epsilon at `delta`, or delta at `epsilon`, by each named
    accountant.

    An accountant without a theorem for one of the events, or whose numbers leave float64, gives
    UNKNOWN, and its note says why.

    >>> from minidp.privacy import Gaussian, Ledger
    >>> ledger = Ledger()
    >>> ledger.append(Gaussian(4.0))
    >>> bound, kind, note = all_bounds(ledger, ["basic"], delta=1e-5)["basic"]
    >>> kind, round(bound.upper, 4)
    ('bound', 0.9263)
    """
    found = {}
    for name in names:
        accountant = make(name, ledger.relation)
        note = ACCOUNTANTS[accountant.name][0]
        asked = accountant if group_size == 1 else GroupAccountant(accountant, group_size)
        try:
            if delta is None:
                bound = asked.delta(ledger, cast(float, epsilon))
            else:
                bound = asked.epsilon(ledger, delta)
        except (UnsupportedEventError, NumericalBoundError) as error:
            bound, note = UNKNOWN, str(error)
        found[accountant.name] = (
            bound,
            accountant.kind,
            note + (bound.fallback and f"; upper end by {bound.fallback}"),
        )
    return found


def row_to_quote(rows: Mapping[str, Mapping[str, Any]], below: float = math.inf) -> str | None:
    """The name of the accountant whose bound has the smallest upper end; None if that is not below
    `below`.

    rows: {name: the JSON of its Bound, with its kind}, such as `epsilon` of result.json.
    """
    uppers = {
        name: float(row["upper"])
        for name, row in rows.items()
        if row["kind"] == "bound" and row["upper"] is not None and float(row["upper"]) < below
    }
    return min(uppers, key=uppers.__getitem__, default=None)
