"""Check that imports inside minidp never climb.

    python -m tools.check_imports

ORDER lists the parts of the package from the bottom to the top. A part may import parts of the
steps below its own, itself, and parts of its own step where that makes no circle. So that each can
be audited alone, nn, privacy and data do not know each other, and mechanism knows privacy but
neither nn nor data. Imports inside functions count. Prints one line per fault and exits with 1, or
a count and 0.
"""

import argparse
import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ORDER = (
    "errors given util",
    "host device ranks",
    "arrays backend streams kernels",
    "exact",
    "grads",
    "nn privacy data",
    "mechanism",
    "train",
    "run audit",
    "fitting planning",
    "sklearn",
    "commands __init__ __main__",
)
STEP = {part: step for step, parts in enumerate(ORDER) for part in parts.split()}
APART = (
    {"nn", "privacy"},
    {"nn", "data"},
    {"privacy", "data"},
    {"mechanism", "nn"},
    {"mechanism", "data"},
)
OUTSIDE = {"tests", "tools", "experiments", "common", "datasets", "features"}


def main(root):
    """Print what is wrong below `root` and return the exit code."""
    modules = sorted((root / "minidp").rglob("*.py"))
    found = []
    imports = 0
    level = {}  # part: the parts of its own step that it imports
    for path in modules:
        name = path.relative_to(root)
        # minidp/nn/dense.py is in nn, minidp/errors.py is errors
        part = name.parts[1].removesuffix(".py")
        if part not in STEP:
            found.append(f"{name}:1: {part} has no step; give it one in tools/check_imports.py")
            continue
        for line, target in imports_of(path, root / "minidp"):
            if target.endswith(".py"):
                target = target.partition("/")[0].removesuffix(".py")
            elif target not in OUTSIDE:
                continue
            imports += 1
            fault = _fault(part, target)
            if fault:
                found.append(f"{name}:{line}: {fault}")
            elif target != part and STEP[target] == STEP[part]:
                level.setdefault(part, set()).add(target)
    try:
        TopologicalSorter(level).prepare()
    except CycleError as error:
        found.append(f"minidp: a circle of imports: {' < '.join(error.args[1])}")
    if not modules:
        found.append(f"{root}: no minidp package here")
    print(
        "\n".join(sorted(found))
        if found
        else f"check_imports: {len(modules)} modules, {imports} imports, none climbs"
    )
    return 1 if found else 0


def _fault(part, target):
    if target in OUTSIDE:
        return f"minidp imports {target}, which is not part of the package"
    if target not in STEP:
        return f"{part} imports minidp.{target}, which has no step"
    if {part, target} in APART:
        return f"{part} must not import {target}"
    if STEP[target] > STEP[part]:
        return f"{part} must not import {target}, which is above it"
    return None


def imports_of(path, package, types=True):
    """(line, target) of everything that a file of `package`, a folder, imports, also inside
    functions: a file of the package, or the first name of something else; types: also what is for
    type checkers alone.
    """
    module = path.relative_to(package.parent).parts[:-1]
    pending = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if not types and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending += node.orelse
            continue
        pending += ast.iter_child_nodes(node)
        for first, *names in targets_of(node, module):
            yield node.lineno, _file(package, names) if first == package.name else first


def _file(package, names):
    """The file that holds the last of the names: a module, or the package that it is a name of."""
    place = package
    for name in names:
        if (place / f"{name}.py").is_file():
            return (place / f"{name}.py").relative_to(package).as_posix()
        if not (place / name).is_dir():
            break
        place = place / name
    return (place / "__init__.py").relative_to(package).as_posix()


def targets_of(node, package):
    """The names, in parts, of what a node of a module's syntax imports; package: the parts of the
    name of the module's package.
    """
    if isinstance(node, ast.Import):
        return [alias.name.split(".") for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = [*package[: len(package) - node.level + 1]] if node.level else []
        base += node.module.split(".") if node.module else []
        return [[*base, alias.name] for alias in node.names]
    dynamic = _dynamic(node, package)
    return [dynamic] if dynamic else []


def _dynamic(node, package):
    """The target of import_module("...") or __import__("..."), where it is written out."""
    if not (isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)):
        return []
    called = getattr(node.func, "attr", getattr(node.func, "id", None))
    target = node.args[0].value
    if called not in ("import_module", "__import__") or not isinstance(target, str):
        return []
    level = len(target) - len(target.lstrip("."))
    base = [*package[: len(package) - level + 1]] if level else []
    return base + target.lstrip(".").split(".")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tools.check_imports", description=__doc__.splitlines()[0]
    )
    parser.parse_args()
    sys.exit(main(ROOT))
