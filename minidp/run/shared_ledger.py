"""A ledger file that several fits share: each is charged to it, under a lock, before its noise is
drawn.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex

from ..errors import BudgetExceededError, CheckpointError, ParameterError
from ..privacy.budget import Filter
from ..privacy.ledger import UNKNOWN, Ledger
from ..util.atomic import StrPath, atomic_write, remove_leftovers
from ..util.files import waiting_lock
from ..util.notices import say
from ..util.text import upper_text
from .folder import CONFIG, RunFolder


def charge_shared(
    path: StrPath,
    charges: Ledger,
    budget: Filter | None = None,
    limit: float | None = None,
    folder: RunFolder | None = None,
    again: bool = False,
) -> Ledger:
    """Append the entries of `charges` to the ledger file at `path`, which is created if it does not
    exist; returns the sum.

    Processes that share the file wait for each other, so that no charge is lost. Symbolic links are
    resolved first, because the lock belongs to the file and not to one of its names; PATH.lock
    stays beside the real file. Raises DataError if the file holds no ledger. Raises ParameterError
    if the ledger has another relation, or another or an unknown unit, if the file has hard links,
    or if the system cannot lock files. Raises BudgetExceededError, and charges nothing, if the sum
    would exceed the epsilon `limit`, at the delta and by the accountant of `budget`.

    folder: that of the run. The entries get an id, which config.json also holds, and which `renew`
    changes. Entries that the file has under this id are not appended again, so that a run that was
    stopped before its first release pays once. If the file has another id of the run, a copy of the
    folder may have used its charge: then all is appended once more, after a NOTICE. again: the run
    has a checkpoint, or is finished. Raises ParameterError then unless the ledger has all its
    charges under its ids (or without an id, for a run that an older version began).
    """
    file = _resolved(path)
    _check_place(file)
    with _locked(file) as check_lock:
        total = _charged(file, charges)
        missing, fit = charges.counted(), None if folder is None else folder.fit
        held = _of_run(total, fit) if again or fit is not None else {}
        if again and missing - sum(held.values(), Counter()):
            raise ParameterError(
                f"{file}: expected the ledger that holds the charges of the run that goes on; this "
                "one lacks them, and its sum would be too small: name the ledger that the run was "
                "begun with"
            )
        if folder is not None and folder.finished:
            return total
        if fit in held:
            missing = missing - held[fit]
        elif held:
            say(
                f"NOTICE: {file}: a copy of this run's folder, or an attempt that was stopped just "
                "when it wrote this file, may have used the charge of this run, which is charged "
                "once more"
            )
        if not missing:
            return total
        if folder is not None and fit not in held:
            fit = _new_id(fit)
        for (event, purpose), times in missing.items():
            total.append(event, times, purpose, fit)
        _refuse_above(file, total, budget, limit)
        check_lock()
        if folder is not None and fit != folder.fit:
            folder.name_fit(fit)
        total.save(file)
    return total


def renew(path: StrPath, folder: RunFolder) -> None:
    """Give the run's entries in the ledger at `path` a new id before their release, so that an
    earlier copy of the folder cannot use them, too.

    Raises CheckpointError if the ledger lacks them.
    """
    file, fit = _resolved(path), _new_id(folder.fit)
    with _locked(file) as check_lock:
        text = file.read_text(encoding="ascii") if holds(file, folder) else None
        if text is None:
            raise CheckpointError(
                f"{file}: expected the charges of the run in {folder.path}: a copy of this folder "
                "resumed the run, or the file was changed; stopped before anything more was "
                "released"
            )
        check_lock()
        before = folder.fit
        folder.name_fit(fit)  # an attempt that stops here is charged once more
        with atomic_write(file) as renewed:
            renewed.write(text.replace(before, fit))


def holds(path: StrPath, folder: RunFolder) -> bool:
    """True if the ledger at `path` has entries with the id of the folder's run."""
    try:
        return folder.fit is not None and folder.fit.encode() in Path(path).read_bytes()
    except (OSError, ValueError):
        return False


def _new_id(fit):
    """Another id of the same run, or of a new run for None."""
    run = token_hex(16) if fit is None else fit.split("-")[0]
    return f"{run}-{token_hex(8)}"


def _of_run(total, fit):
    """{id: {(event, purpose): count}} of the entries with an id of the run of `fit`; for None, of
    the entries without an id.
    """
    found = {}
    for event, times, purpose, name in total.entries_of_fits():
        if name == fit or name and fit and name.split("-")[0] == fit.split("-")[0]:
            found.setdefault(name, Counter())[event, purpose] += times
    return found


@contextmanager
def _locked(file):
    """Hold the lock of the file; yields a function that raises ParameterError if the lock was
    lost.
    """
    with ExitStack() as held:
        try:
            locked = held.enter_context(waiting_lock(file.with_name(f"{file.name}.lock")))
        except OSError as error:
            raise ParameterError(
                f"{file}: a shared ledger needs a file system with locks ({error}); give each fit "
                "its own folder, and add up their ledgers"
            ) from None
        remove_leftovers(file)

        def check_lock():
            if not locked():
                raise ParameterError(
                    f"{file}: its lock, {file.name}.lock, was deleted while this fit held it; "
                    "nothing was charged: leave the lock where it is, and try again"
                )

        yield check_lock


def _refuse_above(file, total, budget, limit):
    """Raise BudgetExceededError if the sum exceeds the limit; None is no limit."""
    if budget is None or limit is None:
        return
    spent = spent_of(total, budget)
    if not spent <= limit:
        raise BudgetExceededError(
            f"{file}: with this fit its sum would be epsilon {upper_text(spent)} at delta "
            f"{budget.delta:g}, above ledger_limit={limit:g}; nothing was charged: choose "
            "a smaller epsilon, or end here"
        )


def _resolved(path):
    """The file behind symbolic links. Raises ParameterError for links in a circle and for names
    that the system refuses.
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
    """Raise ParameterError if the file may not be a shared ledger."""
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
    """The ledger in the file, or an empty one. Raises ParameterError if its relation or unit
    differs.
    """
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
    """The epsilon of all fits that share the ledger file at `path`, in one line."""
    spent = upper_text(spent_of(total, budget))
    return (
        f"{path}: epsilon {spent} at delta {budget.delta:g} for all fits that share this ledger; "
        "choosing among them by scores on private rows is not covered"
    )
