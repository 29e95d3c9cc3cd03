"""Check that imports inside minidp never climb.

    python -m tools.check_imports

ORDER lists the parts of the package from the bottom to the top. A part may import itself and the
parts before it. So that each can be audited alone, nn, privacy and data do not know each other, and
mechanism knows privacy but neither nn nor data. Imports inside functions count. Prints one line per
fault and exits with 1, or a count and 0.
"""

import ast
import sys
from argparse import ArgumentParser
from importlib.util import resolve_name
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ORDER = """
    errors given util host device ranks arrays backend streams compiled grads nn privacy data
    mechanism train run audit fitting costs sklearn __init__ commands __main__
""".split()
APART = ({"nn", "privacy"}, {"nn", "data"}, {"privacy", "data"})
APART += ({"mechanism", "nn"}, {"mechanism", "data"})
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
    print("\n".join(found) or f"check_imports: {imports} imports, none climbs")
    return 1 if found or not imports else 0


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
    """nn of nn/dense.py, errors of errors.py."""
    return file.partition("/")[0].removesuffix(".py")


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


if __name__ == "__main__":
    ArgumentParser("python -m tools.check_imports", description=__doc__).parse_args()
    sys.exit(main(ROOT))
