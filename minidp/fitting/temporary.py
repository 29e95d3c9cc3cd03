"""The folder of a fit that was given none: it ends with the model, or stays after an error that
follows a charge.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ..errors import DivergedError
from ..ranks import current
from ..run import Run


def temporary(undo: ExitStack) -> str:
    """The path of a folder that ends with `undo`."""
    at = current().of_first(lambda: tempfile.mkdtemp(prefix="minidp-"))
    if current().rank == 0:
        undo.callback(shutil.rmtree, at, ignore_errors=True)
    return at


@contextmanager
def kept(undo: ExitStack, run: Run) -> Iterator[None]:
    """Within it, an error after a charge leaves the folder where it is, unlocked, and says how to
    resume the run. Of weights that overflowed there is nothing to keep.
    """
    try:
        yield
    except BaseException as error:
        run.folder.close()
        charged = run.ledger is not None and run.ledger.items()
        if charged and not isinstance(error, DivergedError):
            undo.pop_all()
            error.add_note(
                f"{run.folder.path} keeps the run: the same call with folder="
                f"{str(run.folder.path)!r} resumes it, or returns its model"
            )
        raise
