"""Names of a package that load on first use, so that importing the package loads no library."""
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def names_of(package: str,
             modules: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """(__getattr__, __dir__, __all__) of `package`; `modules` maps each of its modules to the names it gives.

    A module that gives () is a name itself.
    """
    module_of = {name: module for module, names in modules.items() for name in names or (module,)}

    def getattr_(name):
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f".{module_of[name]}", package)
        return getattr(module, name) if modules[module_of[name]] else module

    return getattr_, lambda: sorted({*vars(sys.modules[package]), *module_of}), list(module_of)
