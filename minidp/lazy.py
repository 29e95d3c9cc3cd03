"""Names of a package that load on first use, so that importing the package loads no library."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def names_of(
    package: str, init: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """(__getattr__, __dir__, __all__) of `package`, whose __init__.py is `init`.

    The file __init__.pyi beside it lists the names as imports, which type checkers and editors read
    too.
    """
    tree = ast.parse(Path(init).with_suffix(".pyi").read_text(encoding="utf-8"))
    module_of = {
        alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def getattr_(name):
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = module_of[name]  # None where the name is itself a module
        return (
            getattr(import_module(f".{module}", package), name)
            if module
            else import_module(f".{name}", package)
        )

    return getattr_, lambda: sorted({*vars(sys.modules[package]), *module_of}), list(module_of)
