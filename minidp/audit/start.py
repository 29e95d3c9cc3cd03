"""Where to start after a failed audit: broken lines first, then failures that may follow."""

import ast
from collections.abc import Iterable
from functools import cache
from typing import Any

from .card import PACKAGE

Row = dict[str, Any]  # of `report.audit`


def start_here(rows: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """(failed rows to look at first, other failed rows, which may follow from them).

    A failed row may follow from a failed row in a file that its own file imports, directly or not.
    """
    failed = [row for row in rows if not row["passed"]]
    files = {row["path"] for row in failed}

    def follows(path):
        below = reached(path)
        return any(other in below and path not in reached(other) for other in files - {path})

    first = [row for row in failed if not follows(row["path"])]
    return first, [row for row in failed if follows(row["path"])]


@cache
def reached(path: str) -> frozenset[str]:
    """All files of the package that a file imports, directly or not: "minidp/nn/dense.py"."""
    found, new = set[str](), {path}
    while new:
        found |= new
        new = {each for one in new for each in _imports(one)} - found
    return frozenset(found - {path})


@cache
def _imports(path):
    """The files that the relative imports of a file name."""
    root = PACKAGE.parent
    file, found = root / path, set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.ImportFrom) and node.level):
            continue
        place = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
        for each in (place, *(place / alias.name for alias in node.names)):
            for target in (each.with_suffix(".py"), each / "__init__.py"):
                if target.is_file():
                    found.add(target.relative_to(root).as_posix())
    return frozenset(found)


def summary(rows: Iterable[Row]) -> list[str]:
    """Lines that name the broken places and count the other failures; none if nothing failed."""
    first, others = start_here(rows)
    if not first:
        return []
    cards: dict[str, list[Row]] = {}
    for row in first:
        cards.setdefault(row["card"], []).append(row)
    lines = ["", f"{len(first) + len(others)} failed; start here:"]
    for name, held in cards.items():
        labels = " ".join(f"[{row['label']}]" for row in held)
        code = [line for row in held for line in row["code"]] or [{"path": held[0]["path"]}]
        line = f":{code[0]['line']}" if "line" in code[0] else ""
        lines.append(f"  {code[0]['path']}{line}  {name.rpartition('.')[2]} {labels}")
    if others:
        names = sorted({row["card"].rpartition(".")[2] for row in others})
        lines.append(f"  {len(others)} more may follow from these: {', '.join(names)}")
    return lines
