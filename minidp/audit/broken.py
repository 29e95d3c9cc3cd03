"""Run the checks of a card while one module is changed, in a process of their own.

A process that is forked from a server with all modules loaded exchanges the code of the changed
functions and runs the checks of the card. What they do not notice, or what cannot be exchanged,
goes to a process that imports the package afresh, with the changed file in the place of its own,
and runs all checks.
"""

import os
import re
import sys
import tempfile
from dataclasses import dataclass
from importlib import import_module
from importlib.util import spec_from_file_location
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path

from .card import PACKAGE

SECONDS = 90  # of computing, for one change; the slowest that ends takes a third of it
FORKS = "forkserver" in get_all_start_methods()
PRELOADED = "scipy.optimize scipy.special scipy.fft minidp.audit.live minidp.audit.mutants".split()
_IMPORTS = r"\b{0} import\b|\bimport\b.*\b{0}\b"


def noticed(change, fresh=True, others=False):
    """What notices that the file `change.path` has the text `change.source`, in words, or None: the
    checks of change.label, of change.card, and then, if asked, all others.

    fresh: import everything anew; otherwise give loaded functions their new code.
    """
    if not (fresh or FORKS):
        return None
    context = get_context("forkserver" if FORKS else "spawn")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory(prefix="minidp-broken-") as folder:
        ours, theirs = context.Pipe(duplex=False)
        args = theirs, change, folder, fresh, others
        process = context.Process(target=_answer, args=args, daemon=True)
        process.start()
        theirs.close()
        try:
            return ours.recv() if ours.poll(10 * SECONDS) else "no end"
        except EOFError:
            return "the end of its process"
        finally:
            process.kill()
            process.join()


def _answer(connection, change, folder, fresh, others):
    """In a process of its own: send what `noticed` returns."""
    sys.stdout = sys.stderr = open(os.devnull, "w")
    if FORKS:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))  # others may use the machine
    live = sys.modules.get("minidp.audit.live")
    if fresh:
        for name in list(sys.modules):
            if name.partition(".")[0] == "minidp":
                del sys.modules[name]
        sys.path.insert(0, str(PACKAGE.parent))
        sys.meta_path.insert(0, _Changed(change, folder))
    elif not (live and live.put_in(PACKAGE.parent / change.path, change.source)):
        return connection.send(None)
    try:
        checks = import_module("minidp.audit.checks")
        registry = checks.load()
    except Exception as error:  # a module that cannot be imported is noticed by everybody
        return connection.send(f"importing it: {type(error).__name__}")
    own = change.card, change.label
    places = [place for place in registry if others or place[0] == own[0]]
    places.sort(key=lambda place: (place != own, place[0] != own[0]))
    for check in dict.fromkeys(check for place in places for check in registry[place]):
        outcome = checks.run(check)
        if not outcome.passed:
            return connection.send(str(outcome))
    connection.send(None)


@dataclass(frozen=True)
class _Changed:
    """Finds the changed file, and copies of the compiled ones that name it: Numba's cache of those
    knows only their own text.
    """

    change: object
    folder: str

    def find_spec(self, name, path=None, target=None):
        """The specification of a module among them; None: somebody else finds it."""
        own, file = self.change.path, PACKAGE.parent / f"{name.replace('.', '/')}.py"
        text = file.read_text("utf-8") if file.is_file() else ""
        if file == PACKAGE.parent / own:
            text = self.change.source
        elif "jit" not in text or not re.search(_IMPORTS.format(Path(own).stem), text):
            return None
        copy = Path(self.folder, f"{name}.py")
        copy.write_text(text, "utf-8")
        return spec_from_file_location(name, copy)
