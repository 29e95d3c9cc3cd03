"""Check that imports inside minidp never climb, and never run in a circle.

    python -m tools.check_imports

CORE lists the parts of the core from the bottom to the top, RINGS the folders around it. A part of
the core may import itself and the parts before it; a ring may import the core, itself, and the
rings before it. So that each can be audited alone, nn and privacy do not know each other, and
mechanism knows privacy but not nn. Imports inside functions and for type checkers count; names that
a package's `__init__` loads on first use do not. Prints one line per fault and exits with 1, or
counts and 0: of the imports, and of the tokens (without comments and docstrings) of the files that
carry the guarantee, which minidp/mechanism/README.md lists.
"""

import ast
import re
import sys
import tokenize
from argparse import ArgumentParser
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = """
    errors util host compiled ranks arrays backend units examples streams grads nn privacy mechanism
    train
""".split()
RINGS = "fast layers certified mpi data run fitting audit steptest commands".split()
FACES = {"sklearn": "fitting", "__main__": "commands"}  # files beside the folders: their ring
ORDER = [*CORE, *RINGS[:-1], "__init__", RINGS[-1]]
APART = ({"nn", "privacy"}, {"mechanism", "nn"})
OUTSIDE = {"tests", "tools", "experiments", "common", "datasets", "features"}


def main(root):
    """Print what is wrong below `root` and return the exit code."""
    package, imports, found = root / "minidp", 0, []
    for path in sorted(package.rglob("*.py")):
        part = part_of(path.relative_to(package).as_posix())
        if part not in ORDER:
            found.append(f"{path.relative_to(root)}:1: {part} has no place in ORDER")
            continue
        for line, target in imports_of(path, package):
            imports += 1
            if problem := fault(part, target):
                found.append(f"{path.relative_to(root)}:{line}: {problem}")
    found += circles(package)
    if found or not imports:
        print("\n".join(found) or "check_imports: no imports")
        return 1
    listed = [file for files in carriers(package).values() for file in files]
    tokens = sum(tokens_of(package / file) for file in listed)
    print(f"check_imports: {imports} imports, none climbs")
    print(f"what carries the guarantee: {len(listed)} files, {tokens} tokens")
    return 0


def fault(part, target):
    """What is wrong with the import of a target by a part, or None."""
    if target in OUTSIDE:
        return f"minidp imports {target}, which is not part of the package"
    if not target.endswith(".py"):
        return None
    target = part_of(target)
    if {part, target} in APART:
        return f"{part} must not import {target}"
    if target in ORDER and ORDER.index(target) > ORDER.index(part):
        return f"{part} must not import {target}, which is above it"
    return None


def part_of(file):
    """nn of nn/dense.py, errors of errors.py, and the ring of a face."""
    part = file.partition("/")[0].removesuffix(".py")
    return FACES.get(part, part)


def circles(package):
    """A line for each circle of files that import each other."""
    targets = {
        path.relative_to(package).as_posix(): {
            target for _, target in imports_of(path, package) if target.endswith(".py")
        }
        for path in sorted(package.rglob("*.py"))
    }
    try:
        TopologicalSorter(targets).prepare()
    except CycleError as error:
        return [f"a circle of imports: {' imports '.join(reversed(error.args[1]))}"]
    return []


def imports_of(path, package, types=True):
    """(line, target) of everything that a file of `package`, a folder, imports: a file of the
    package, or the first name of something else; types: also what is for type checkers alone.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            node.body.clear()
    inside = ".".join(path.relative_to(package.parent).parts[:-1])
    for node in ast.walk(tree):
        for name in names_of(node, inside):
            yield node.lineno, file_of(name, package)


def names_of(node, inside):
    """The full names of what a node of a module's syntax imports; inside: the module's package."""
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom():
            base = resolve_name("." * node.level + (node.module or ""), inside)
            return [f"{base}.{alias.name}" for alias in node.names]
        case ast.Call(args=[ast.Constant(value=str(target)), *_]):
            if ast.unparse(node.func).endswith(("import_module", "__import__")):
                return [resolve_name(target, inside)]
    return []


def file_of(name, package):
    """The file of the package that holds a name; of another package its first name."""
    first, *parts = name.split(".")
    if first != package.name:
        return first
    place = package
    for part in parts:
        if (place / f"{part}.py").is_file():
            return (place / f"{part}.py").relative_to(package).as_posix()
        if not (place / part).is_dir():
            break
        place /= part
    return (place / "__init__.py").relative_to(package).as_posix()


def carriers(package):
    """{section: its files} of the page about what carries the guarantee; nothing without a page."""
    page = package / "mechanism" / "README.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    sections = [section.partition("\n") for section in text.split("\n## ")[1:]]
    rows = re.compile(r"^\| `(\S+\.py)` \|", re.MULTILINE)
    return {title: found for title, _, section in sections if (found := rows.findall(section))}


def reached(package, roots, excused=()):
    """The roots, and all files of a package that they import, directly or through others; those
    that are excused are left out with what they import.
    """
    found, waiting = set(), [*roots]
    while waiting:
        file = waiting.pop()
        if file in found or file in excused:
            continue
        found.add(file)
        targets = {target for _, target in imports_of(package / file, package, types=False)}
        waiting += [target for target in targets if target.endswith(".py")]
    return found


def tokens_of(path):
    """The number of tokens of a file, without comments and docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    docstrings = {node.lineno for node in alone if isinstance(node, ast.Constant)}
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    layout |= {tokenize.ENCODING, tokenize.ENDMARKER}
    with path.open("rb") as file:
        return sum(
            token.type not in layout and token.start[0] not in docstrings
            for token in tokenize.tokenize(file.readline)
        )


if __name__ == "__main__":
    ArgumentParser("python -m tools.check_imports", description=__doc__).parse_args()
    sys.exit(main(ROOT))
