"""Check the docstring cards: every equation has its line of code and its check, and every class its
card.

    python -m tools.check_cards

Of every card below minidp/: each label is defined once, under a heading of the card, computed by a
labelled line of code, and measured by a check that minidp.audit.checks registers; the card names a
source ("own derivation" is one). A label on a line of code is in the card around it (see
minidp/audit/card.py).

A public class must have a card if minidp.nn or minidp.mechanism exports it, or if it is an
Accountant. Exempt are classes that state no equation: an interface (one of its methods raises
NotImplementedError), an exception, an Enum, and a container (a NamedTuple or dataclass without
public methods, properties or __call__). An Event needs a docstring instead whose first paragraph is
its definition, ending in a full stop.

Prints one line per fault and exits with 1, or a count and 0.
"""

import argparse
import importlib
import inspect
import pkgutil
import sys
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path

from minidp import mechanism, nn, privacy
from minidp.audit import checks
from minidp.audit.card import read_module
from minidp.audit.names import card_of
from minidp.privacy.accountant import Accountant
from minidp.privacy.events.base import Event

ROOT = Path(__file__).resolve().parents[1]


def main(root, registry):
    """Print what is wrong below `root` and return the exit code; registry is {(card, label):
    checks}.
    """
    sources = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((root / "minidp").rglob("*.py"))
    }
    found, cards = [], []
    for module, source in sources.items():
        new, strays = read_module(source, module)
        cards += new
        found += [f"{module}:{line}: label [{label}] {reason}" for line, label, reason in strays]
    found += [
        f"{card.module}:{card.line}: {card.qualname}: {fault}"
        for card in cards
        for fault in card.faults()
    ]
    labels = {(card.name, label): card for card in cards for label in card.labels}
    found += [
        f"{card.module}:{card.line}: {card.qualname}: [{label}] has no check in minidp/audit/checks"
        for (name, label), card in labels.items()
        if (name, label) not in registry
    ]
    found += [
        f"{card.module}:{card.line}: {card.qualname}: [{label}] is to be either evaluated "
        "(`states`) or marked `in_words`, in minidp/audit/checks"
        for (name, label), card in labels.items()
        if ((name, label) in checks.STATED) == ((name, label) in checks.WORDS)
    ]
    found += [
        f"{name}: a check measures [{label}], which no card defines"
        for name, label in set(registry) - set(labels)
    ]
    found += missing_cards(classes(), {card.name for card in cards})
    if not cards:
        found.append(f"{root}: no card below minidp/")
    evaluated = len(set(labels) & set(checks.STATED))
    print(
        "\n".join(sorted(found))
        if found
        else f"check_cards: {len(cards)} cards, {len(labels)} labels, {evaluated} evaluated from "
        "their text"
    )
    return 1 if found else 0


def classes():
    """The classes that need a card, or a definition."""
    for package in (nn, mechanism):
        found = (getattr(package, name) for name in package.__all__)
        yield from filter(inspect.isclass, found)
    for module in pkgutil.iter_modules(privacy.__path__, "minidp.privacy."):
        importlib.import_module(module.name)
    below = [Accountant, Event]
    for base in below:  # which grows
        below += base.__subclasses__()
    yield from (cls for cls in below[2:] if cls.__module__.startswith("minidp."))


def missing_cards(classes, have):
    """A line for each of the classes that has neither a card, of those named in `have`, nor need of
    one.
    """
    for cls in classes:
        name = card_of(cls)
        if issubclass(cls, Event):
            if not inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].endswith("."):
                yield f"event {name} needs a docstring whose first paragraph defines it"
        elif not cls.__name__.startswith("_") and not _states_no_equation(cls) and name not in have:
            yield f"class {name} has no card"


def _states_no_equation(cls):
    if issubclass(cls, (Exception, Enum)) or "raise NotImplementedError" in inspect.getsource(cls):
        return True
    own = [
        name
        for name, value in vars(cls).items()
        if isinstance(value, property) or inspect.isroutine(value)
    ]
    container = issubclass(cls, tuple) or is_dataclass(cls)
    return container and all(name.startswith("_") and name != "__call__" for name in own)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tools.check_cards", description=__doc__.splitlines()[0]
    )
    parser.parse_args()
    sys.exit(main(ROOT, checks.load()))
