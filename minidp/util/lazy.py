"""Names of a package that load on first use, so that importing the package loads no library."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_of(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """(__getattr__, __dir__, __all__) of `package`.

    modules  {module: the names that it gives, separated by spaces}; the names of "" are modules
             themselves
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def getattr_(name):
        if name not in module_of:
            from .words import hint  # here, because it is for errors alone

            raise AttributeError(f"module {package!r} has no {name!r}; {hint(name, module_of)}")
        if not module_of[name]:
            return import_module(f".{name}", package)
        return getattr(import_module(f".{module_of[name]}", package), name)

    return getattr_, lambda: sorted({*vars(sys.modules[package]), *module_of}), list(module_of)
