"""The folder of a fit without `folder`: it is deleted with the model, but kept after an error that
follows a charge.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ..errors import DivergedError
from ..ranks import current
from ..run import Run
from ..run.shared_ledger import holds
from ..util.atomic import StrPath


def temporary(undo: ExitStack) -> str:
    """The path of a temporary folder that `undo` deletes."""
    at = current().of_first(lambda: tempfile.mkdtemp(prefix="minidp-"))
    if current().rank == 0:
        undo.callback(shutil.rmtree, at, ignore_errors=True)
    return at


@contextmanager
def kept(undo: ExitStack, run: Run, ledger: StrPath | None) -> Iterator[None]:
    """Context in which an error after a charge, also to a shared ledger, keeps the folder, unlocks
    it and says how to resume the run. After an overflow of the weights nothing is kept.
    """
    try:
        yield
    except BaseException as error:
        run.folder.close()
        shared = ledger is not None and holds(ledger, run.folder)
        charged = shared or run.ledger is not None and run.ledger.items()
        if charged and not isinstance(error, DivergedError):
            undo.pop_all()
            paid = f"; {ledger} holds the charge of all {run.plan.steps} lots" if shared else ""
            error.add_note(
                f"{run.folder.path} keeps the run: the same call with folder="
                f"{str(run.folder.path)!r} resumes it, or returns its model{paid}"
            )
        raise
