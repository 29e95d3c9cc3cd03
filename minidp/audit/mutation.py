"""Breaking one line of code on purpose, in memory, to see who notices.

`mutated` imports minidp a second time with one piece of text of one module replaced. Nothing on disk changes, and
the modules that were imported before come back afterwards.
"""
import importlib.abc
import importlib.machinery
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ("minidp.privacy.moment_kernels", "minidp.privacy.pld.kernels")  # compiled code, which imports nothing of minidp


@dataclass(frozen=True)
class Mutant:
    """One fault: `old` becomes `new` in minidp/`module`, where it must stand exactly once.

    breaks   (card, label): the equation that is wrong then, in the names of audit.checks
    """

    breaks: tuple
    module: str
    old: str
    new: str

    def __str__(self):
        return f"{self.breaks[0]} [{self.breaks[1]}]: {' '.join(self.old.split())}  ->  {' '.join(self.new.split())}"

    def source(self):
        """The module's text with the fault in it. Raises ValueError unless `old` stands there exactly once."""
        text = (ROOT / "minidp" / self.module).read_text(encoding="utf-8")
        if text.count(self.old) != 1 or self.old == self.new:
            raise ValueError(f"{self.module}: expected {self.old!r} once, found it {text.count(self.old)} times")
        return text.replace(self.old, self.new)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name, path, source):
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname):
        return compile(self._source, f"{self.path} (mutated)", "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name, path, source):
        self.name, self.path, self.source = name, path, source

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        loader = _Loader(fullname, self.path, self.source)
        return importlib.machinery.ModuleSpec(fullname, loader, origin=self.path)


@contextmanager
def mutated(mutant, also=()):
    """Inside the block, importing minidp (and the modules named in `also`) gives new copies with the fault in them."""
    name = "minidp." + mutant.module.removesuffix(".py").replace("/", ".")
    source = mutant.source()
    kept = {key: module for key, module in sys.modules.items() if _ours(key, also) and not _stays(key, name)}
    finder = _Finder(name, str(ROOT / "minidp" / mutant.module), source)
    for key in kept:
        del sys.modules[key]
    sys.meta_path.insert(0, finder)
    try:
        with _interpreted(name in KERNELS):
            yield
    finally:
        sys.meta_path.remove(finder)
        for key in [key for key in sys.modules if _ours(key, also) and not _stays(key, name)]:
            del sys.modules[key]
        sys.modules.update(kept)
        _restore_attributes(kept)


def _ours(key, also):
    return key == "minidp" or key.startswith("minidp.") or key in also


def _stays(key, name):
    """Compiled modules stay as they are, unless the fault is in them."""
    return key in KERNELS and key != name


def _restore_attributes(kept):
    """A package holds its modules as attributes too."""
    for key, module in kept.items():
        parent, _, child = key.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], child, module)


@contextmanager
def _interpreted(off):
    """Numba would load the compiled code of the right module, which has the same file."""
    if not off:
        yield
        return
    import numba

    before, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, True
    try:
        yield
    finally:
        numba.config.DISABLE_JIT = before


def caught_by(mutant, collect, also=()):
    """[(check, error or problem)] of the checks of the mutant's card that fail, or else of all that do.

    collect() imports and registers the checks anew and returns the package minidp.audit.checks.
    """
    with mutated(mutant, also):
        try:
            checks = collect()
        except Exception as error:  # a module that cannot be imported is noticed by everybody
            return [("importing the module", f"{type(error).__name__}: {error}")]
        own = _checks_of(checks, lambda card, label: (card, label) == mutant.breaks)
        card = _checks_of(checks, lambda card, label: card == mutant.breaks[0])
        rest = _checks_of(checks, lambda card, label: True)
        tried = set()
        for group in (own, card, rest):
            outcomes = [checks.run(check) for check in group if id(check) not in tried]
            tried |= {id(check) for check in group}
            found = [(outcome.check.name, outcome.problem or f"{outcome.error:.1e}, above {outcome.check.tolerance:.0e}")
                     for outcome in outcomes if not outcome.passed]
            if found:
                return found
        return []


def _checks_of(checks, wanted):
    found = {id(check): check for (card, label), registered in checks.REGISTRY.items() if wanted(card, label)
             for check in registered}
    return list(found.values())
