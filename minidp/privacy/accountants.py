"""Every accountant by name, with a short description."""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ..errors import NumericalBoundError, ParameterError, UnsupportedEventError
from ..util.lazy import loaded, places_of
from .accountant import Accountant, Bound
from .events import NeighbouringRelation
from .group_privacy import GroupAccountant
from .ledger import Ledger

PLACES = places_of(Path(__file__).with_name("accountant_list.pyi"))
UNKNOWN = Bound(None, None, None)  # type: ignore[arg-type]  # no accountant gives it


def every() -> Iterator[type[Accountant]]:
    """The class of every accountant, in the order of tables; each loads when its turn comes. Those
    of a ring that was left out are not there.
    """
    for name, place in PLACES.items():
        if (module := loaded(place, __package__)) is not None:
            yield getattr(module, name)


def short_names() -> dict[str, str]:
    """{what people read and type: the accountant's name in JSON}, comparisons left out."""
    return {each.called(exact=True): each.name for each in every() if each.kind != "comparison"}


def called(name: str, exact: bool = False) -> str:
    """The name that people read for an accountant's name in JSON: "pld" for "loss_distribution".
    exact: as in `Accountant.called`.
    """
    return next((each.called(exact) for each in every() if each.name == name), name)


def make(name: str, relation: NeighbouringRelation = NeighbouringRelation.ADD_REMOVE) -> Accountant:
    """The accountant of that name, short or in JSON, under a neighbouring relation."""
    for each in every():
        if name in (each.name, each.called(exact=True)):
            return each(relation)
    raise ParameterError(
        f"expected accountant={name!r:.80} to be one of {', '.join(short_names())}"
    )


def as_accountant(accountant: Accountant | str, relation: NeighbouringRelation) -> Accountant:
    """The accountant itself, or the one of that name under the relation. Raises ParameterError if
    there is none.
    """
    if isinstance(accountant, str):
        return make(accountant, relation)
    if not hasattr(accountant, "epsilon"):
        raise ParameterError(
            f"expected accountant={accountant!r:.80} to be an accountant, such as "
            f"MomentsAccountant(), or the name of one: {', '.join(short_names())}"
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
        note = accountant.note
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
