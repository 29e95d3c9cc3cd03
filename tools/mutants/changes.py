"""A change of what one label stands for, what notices it, and the verdict on many changes.

The checks run while one module is changed, in a process of their own. It is forked from a server
that has loaded the libraries, and imports the package afresh, with the changed file in the place of
its own.
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

from minidp.audit.card import PACKAGE

SECONDS = 90  # of computing, for one change; the slowest that ends takes a third of it
FORKS = "forkserver" in get_all_start_methods()
PRELOADED = "scipy.optimize scipy.special scipy.fft scipy.stats numba mpmath lark".split()
_IMPORTS = r"\b{0} import\b|\bimport\b.*\b{0}\b"


def noticed(change, others=True):
    """What notices that the file `change.path` has the text `change.source`, in words, or None: the
    checks of change.label, of change.card, and then, if asked, all others.
    """
    context = get_context("forkserver" if FORKS else "spawn")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory(prefix="minidp-broken-") as folder:
        ours, theirs = context.Pipe(duplex=False)
        args = theirs, change, folder, others
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


def _answer(connection, change, folder, others):
    """In a process of its own: send what `noticed` returns."""
    sys.stdout = sys.stderr = open(os.devnull, "w")
    if FORKS:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))  # others may use the machine
    for name in list(sys.modules):
        if name.partition(".")[0] == "minidp":
            del sys.modules[name]
    sys.path.insert(0, str(PACKAGE.parent))
    sys.meta_path.insert(0, _Changed(change, folder))
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
class Change:
    """One change of what a label stands for: `new` in place of `old`. Of code, `source` is the
    whole module with it.
    """

    card: str
    label: str
    operator: str
    number: int  # among those of the label by this operator
    old: str
    new: str
    path: str = ""
    line: int = 0
    source: str = ""

    @property
    def name(self):
        return f"{self.card} [{self.label}] {self.operator} {self.number}"

    def __str__(self):
        where = f"{self.path}:{self.line}  " if self.path else ""
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.name}  {where}{old}  ->  {new}"


def unmatched(changes, equivalent):
    """Rows of a table of equivalents that are no change's name: what they spoke of is gone."""
    return [
        f"listed as equivalent, but no such mutant: {name}"
        for name in sorted(equivalent.keys() - {each.name for each in changes})
    ]


def judged(changes, killers, equivalent):
    """What is wrong, a sentence each: what nothing has noticed and is not listed as equivalent, or
    is listed and was noticed. Prints a line for each change.

    killers: what has noticed each, in words, or None.
    """
    faults = []
    for number, (change, killer) in enumerate(zip(changes, killers), 1):
        listed, fault = equivalent.get(change.name), ""
        if killer and listed:
            said = f"killed by {killer}"
            fault = f"listed as equivalent, but {said}"
        elif killer:
            said = f"killed by {killer}"
        elif listed:
            said = listed
        else:
            said = fault = "survived"
        if fault:
            faults.append(f"{fault}: {change}")
        result = "FAIL" if fault else "ok  "
        print(f"{number}/{len(changes)} {result} {change}: {said}", flush=True)
    return faults


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
