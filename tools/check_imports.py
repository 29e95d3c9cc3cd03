"""Check that imports inside minidp point downward only.

    python -m tools.check_imports [ROOT]

A module may import modules of a lower rank and of its own package. So that each can be audited
alone, nn, privacy and data do not know each other, and mechanism knows privacy but neither nn nor
data. Imports inside functions count. Prints one line per fault and exits with 1, or a count and 0.
"""

import argparse
import ast
import sys
from pathlib import Path

RANK = {
    "errors": 0,
    "validate": 0,
    "files": 0,
    "cli": 0,
    "plotting": 0,
    "numbers": 0,
    "lazy": 0,
    "host": 0,
    "ranks": 0,
    "device_kernels": 0,
    "backend": 1,
    "streams": 1,
    "arithmetic": 2,
    "elementwise": 2,
    "grads": 3,
    "together": 4,
    "whole": 4,
    "nn": 4,
    "privacy": 4,
    "data": 4,
    "mechanism": 5,
    "defaults": 5,
    "train": 6,
    "audit": 7,
    "run": 7,
    "heads": 8,
    "fitted": 8,
    "__init__": 8,
    "fitting": 9,
    "commands": 10,
    "estimators": 10,
    "__main__": 11,
}
APART = {("mechanism", "nn"), ("mechanism", "data")}
OUTSIDE = {"tests", "tools", "experiments", "common", "features"}


def main(root):
    """Print what is wrong below `root` and return the exit code."""
    modules = sorted((root / "minidp").rglob("*.py"))
    found, imports = [], 0
    for path in modules:
        name = path.relative_to(root)
        # minidp/nn/dense.py is in nn, minidp/errors.py is errors
        part = name.parts[1].removesuffix(".py")
        if part not in RANK:
            found.append(f"{name}:1: {part} has no rank; give it one in tools/check_imports.py")
            continue
        for line, target in _imports(path, name):
            imports += 1
            fault = _fault(part, target)
            if fault:
                found.append(f"{name}:{line}: {fault}")
    if not modules:
        found.append(f"{root}: no minidp package here")
    print(
        "\n".join(found)
        if found
        else f"check_imports: {len(modules)} modules, {imports} imports, all downward"
    )
    return 1 if found else 0


def _fault(part, target):
    if target in OUTSIDE:
        return f"minidp imports {target}, which is not part of the package"
    if target not in RANK:
        return f"{part} imports minidp.{target}, which has no rank"
    if target == part or RANK[target] == RANK[part] == 0:
        return None
    if (part, target) in APART:
        return f"{part} must not import {target}"
    if RANK[target] == RANK[part]:
        return f"{part} must not import {target}, its sibling"
    return (
        f"{part} (rank {RANK[part]}) must not import {target} (rank {RANK[target]})"
        if RANK[target] > RANK[part]
        else None
    )


def _imports(path, name):
    """(line, ranked name) of everything in the project that a file imports, at any depth."""
    package = name.parts[:-1]
    known = {child.stem for child in path.parents[len(package) - 1].glob("*")}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            base += node.module.split(".") if node.module else []
            targets = [[*base, alias.name] for alias in node.names]
        else:
            targets = [_dynamic(node, package)]
        for target in targets:
            if target[:1] == ["minidp"]:
                # `import minidp` and `from minidp import Dense` go through the package's own
                # __init__
                yield (
                    node.lineno,
                    target[1] if len(target) > 1 and target[1] in known | {*RANK} else "__init__",
                )
            elif target and target[0] in OUTSIDE:
                yield node.lineno, target[0]


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
    parser.add_argument(
        "root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1], help="a checkout"
    )
    sys.exit(main(parser.parse_args().root))
