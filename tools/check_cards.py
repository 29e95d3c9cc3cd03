"""Check the docstring cards: every equation has its line of code and its check, and every class its
card.

    python -m tools.check_cards [ROOT]

Of every card below minidp/: each label is defined once, under a heading of the card, computed by a
labelled line of code, and measured by a check that minidp.audit.checks registers; the card names a
source ("own derivation" is one). A label on a line of code is in the card around it (see
minidp/audit/card.py).

A public class must have a card if minidp.nn or minidp.mechanism exports it, or if it is an
Accountant. Exempt are classes that state no equation: an interface (one of its methods only raises
NotImplementedError), an exception, an Enum, and a container (a NamedTuple or dataclass without
public methods, properties or __call__). An Event needs a docstring instead whose first paragraph is
its definition, ending in a full stop.

Prints one line per fault and exits with 1, or a count and 0.
"""

import argparse
import ast
import sys
from pathlib import Path

from minidp.audit import checks
from minidp.audit.card import read_module

EXPORTING = ("minidp/nn/__init__.py", "minidp/mechanism/__init__.py")


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
    found += _missing_cards(sources, {(card.module, card.qualname) for card in cards})
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


def _missing_cards(sources, have):
    classes = {
        (module, node.name): node
        for module, source in sources.items()
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    }
    accountants, events = (_below(base, classes.values()) for base in ("Accountant", "Event"))
    exported = {
        package.rpartition("/")[0]: _named_in(sources.get(package, "")) for package in EXPORTING
    }
    for (module, name), node in classes.items():
        docstring = (ast.get_docstring(node) or "").partition("\n\n")[0]
        if name in events and not docstring.endswith("."):
            yield (
                f"{module}:{node.lineno}: event {name} needs a docstring whose first paragraph "
                "defines it"
            )
        needed = name in exported.get(module.rpartition("/")[0], ()) or name in accountants
        if (
            needed
            and not name.startswith("_")
            and not _states_no_equation(node)
            and (module, name) not in have
        ):
            yield f"{module}:{node.lineno}: class {name} has no card"


def _named_in(source):
    """The names that an __init__ imports or lists as strings."""
    tree = ast.parse(source)
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return imported | {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def _below(base, classes):
    """Names of all subclasses of a class, at any depth."""
    names, size = {base}, 0
    while len(names) > size:
        size = len(names)
        names |= {node.name for node in classes if names & {*_bases(node)}}
    return names - {base}


def _bases(node):
    return [
        base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases
    ]


def _states_no_equation(node):
    methods = [child for child in node.body if isinstance(child, ast.FunctionDef)]
    if any(_only_raises(method) for method in methods) or any(
        base.endswith(("Enum", "Error", "Exception")) for base in _bases(node)
    ):
        return True
    container = "NamedTuple" in _bases(node) or any(
        "dataclass" in ast.unparse(d) for d in node.decorator_list
    )
    return container and all(
        method.name.startswith("_") and method.name != "__call__" for method in methods
    )


def _only_raises(method):
    body = [
        child
        for child in method.body
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant))
    ]
    return (
        len(body) == 1
        and isinstance(body[0], ast.Raise)
        and "NotImplementedError" in ast.unparse(body[0])
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tools.check_cards", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1], help="a checkout"
    )
    sys.exit(main(parser.parse_args().root, checks.load()))
