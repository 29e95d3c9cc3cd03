"""A ledger file that several fits share: each is charged to it, under a lock, before its noise is
drawn.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from ..errors import BudgetExceededError, ParameterError
from ..privacy.budget import Filter
from ..privacy.ledger import UNKNOWN, Ledger
from ..util.atomic import StrPath, remove_leftovers
from ..util.files import waiting_lock
from ..util.text import upper_text
from .folder import CONFIG, counted


def charge_shared(
    path: StrPath,
    charges: Ledger,
    budget: Filter | None = None,
    limit: float | None = None,
    again: bool = False,
) -> Ledger:
    """Append all entries of `charges` to the ledger file at `path`, which is made if it is not
    there; returns the sum.

    Clones and worker processes that share the file wait for each other, so that no charge is lost.
    Symbolic links are resolved first, because the lock belongs to the file and not to one of its
    names: PATH.lock stays beside the real file. Raises DataError where the file holds no ledger;
    ParameterError where the ledger has another relation, or protects another unit or an unknown
    one, where the file has hard links, or where the system cannot lock files. BudgetExceededError,
    and no charge, where the sum would exceed the epsilon `limit` at the delta and by the accountant
    of `budget`.

    again: the charges were made before, by a run that goes on: nothing is appended, and
    ParameterError raised unless the ledger contains them all.
    """
    file = _resolved(path)
    _check_place(file)
    with ExitStack() as held:
        try:
            locked = held.enter_context(waiting_lock(file.with_name(f"{file.name}.lock")))
        except OSError as error:
            raise ParameterError(
                f"{file}: a shared ledger needs a file system with locks ({error}); give each fit "
                "its own folder, and add up their ledgers"
            ) from None
        remove_leftovers(file)
        total = _charged(file, charges)
        if again:
            if counted(charges) - counted(total):
                raise ParameterError(
                    f"{file}: expected the ledger that holds the charges of the run that goes on; "
                    "this one lacks them, and its sum would be too small: name the ledger that the "
                    "run was begun with"
                )
            return total
        for entry in charges.entries():
            total.append(*entry)
        if budget is not None and limit is not None:
            spent = spent_of(total, budget)
            if not spent <= limit:
                raise BudgetExceededError(
                    f"{file}: with this fit its sum would be epsilon {upper_text(spent)} at delta "
                    f"{budget.delta:g}, above ledger_limit={limit:g}; nothing was charged: choose "
                    "a smaller epsilon, or end here"
                )
        if not locked():
            raise ParameterError(
                f"{file}: its lock, {file.name}.lock, was deleted while this fit held it; nothing "
                "was charged: leave the lock where it is, and try again"
            )
        total.save(file)
    return total


def _resolved(path):
    """The file behind symbolic links. Raises ParameterError for links in a circle and for names
    that the system does not take.
    """
    try:
        found = Path(os.path.realpath(path))
        found.exists()
        found.with_name(f"{found.name}.lock").exists()
    except (OSError, ValueError) as error:
        raise ParameterError(
            f"ledger={str(path)!r:.80}: no file can have this name ({error.args[-1]:.60}); name "
            "another file"
        ) from None
    if found.is_symlink():
        raise ParameterError(
            f"ledger={str(path)!r:.80}: its symbolic links lead in a circle; name a file"
        )
    return found


def _check_place(path):
    """Raise ParameterError where no shared ledger may be."""
    if (path.parent / CONFIG).exists():
        raise ParameterError(
            f"{path}: {path.parent} is the folder of a run, whose files belong together; name a "
            "file elsewhere"
        )
    if path.is_dir():
        raise ParameterError(f"{path} is a folder; name a file for the ledger")
    if not path.parent.is_dir():
        raise ParameterError(f"{path}: there is no folder {path.parent}; make it, or name another")


def _charged(path, charges):
    """The ledger in the file, or an empty one. Raises ParameterError where it is another's."""
    relation, unit = charges.relation, charges.unit
    if not path.exists():
        return Ledger(relation, unit=unit)
    if (names := path.stat().st_nlink) > 1:
        raise ParameterError(
            f"{path}: expected a ledger with one name, got a file with {names} names (hard "
            "links): a charge by one name would not reach the others; keep one name, and make "
            "the others symbolic links to it"
        )
    found = Ledger.load(path)
    if found.relation is not relation:
        raise ParameterError(
            f"{path}: expected a ledger under {relation.value}, got {found.relation.value}; choose "
            "another file"
        )
    if found.unit == UNKNOWN != unit:
        raise ParameterError(
            f"{path}: its format does not say whom its charges protect; if all of them are for the "
            f"unit {unit}, say so once: ledger = Ledger.load(path); "
            f"Ledger(ledger.relation, ledger.entries(), {unit!r}).save(path)"
        )
    try:
        found.protect(unit)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None
    return found


def spent_of(total: Ledger, budget: Filter) -> float:
    """Epsilon of a shared ledger at the delta of a budget, by its accountant."""
    return budget.accountant.epsilon(total, budget.delta).upper


def sum_line(path: StrPath, total: Ledger, budget: Filter) -> str:
    """What all fits that share the ledger file at `path` cost together, in one line."""
    spent = upper_text(spent_of(total, budget))
    return (
        f"{path}: epsilon {spent} at delta {budget.delta:g} for all fits that share this ledger; "
        "choosing among them by scores on private rows is not covered"
    )
