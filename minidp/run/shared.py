"""A ledger file that several fits share: each is charged to it, under a lock, before its noise is drawn."""
from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from ..errors import ParameterError
from ..files import StrPath, waiting_lock
from ..privacy.ledger import Ledger
from .folder import CONFIG


def charge_shared(path: StrPath, charges: Ledger) -> Ledger:
    """Append all entries of `charges` to the ledger file at `path`, which is made if it is not there; returns the sum.

    Clones and worker processes that share the file wait for each other, so that no charge is lost. A file PATH.lock stays
    beside it. Raises DataError where the file holds no ledger; ParameterError where it has another relation, or where the
    system cannot lock files.
    """
    path = Path(path)
    if (path.parent / CONFIG).exists():
        raise ParameterError(f"{path}: {path.parent} is the folder of a run, whose files belong together; name a file elsewhere")
    if path.is_dir():
        raise ParameterError(f"{path} is a folder; name a file for the ledger")
    with ExitStack() as held:
        try:
            held.enter_context(waiting_lock(path.with_name(f"{path.name}.lock")))
        except OSError as error:
            raise ParameterError(f"{path}: a shared ledger needs a file system with locks ({error}); give each fit its own "
                                 "folder, and add up their ledgers") from None
        total = Ledger.load(path) if path.exists() else Ledger(charges.relation)
        if total.relation is not charges.relation:
            raise ParameterError(f"{path}: expected a ledger under {charges.relation.value}, got {total.relation.value}; choose "
                                 "another file")
        for event, count, purpose in charges.entries():
            total.append(event, count, purpose)
        total.save(path)
    return total
