"""Load names of a package on first use, so that importing it loads no library; and find the rings
around the core, which may be left out.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_of(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """(__getattr__, __dir__, __all__) of `package`.

    modules  {module: its public names, separated by spaces}; the names of "" are modules
             themselves, and a module that begins with a dot is in a ring: ".layers.norm"
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def getattr_(name):
        if name not in module_of:
            from .words import hint  # imported here because only errors need it

            raise AttributeError(f"{package} has no {name}; {hint(name, module_of)}")
        place = module_of[name]
        found = _loaded(f".{place or name}", package)
        if found is None:
            ring = place.lstrip(".").partition(".")[0]
            raise ImportError(
                f"{package}.{name} is in the folder {ring} of minidp, which was left out here"
            )
        return getattr(found, name) if place else found

    return getattr_, lambda: sorted({*vars(sys.modules[package]), *module_of}), list(module_of)


def ring(part: str) -> Any:
    """The module of a ring that offers `part` to the core; None if the ring was left out.

    part: a key of RINGS in the package's `__init__`, which names the modules.
    """
    package = __package__.partition(".")[0]
    return _loaded(f".{sys.modules[package].RINGS[part]}", package)


def _loaded(module, package):
    """A module of a package; None if the module's folder is missing."""
    try:
        return import_module(module, package)
    except ModuleNotFoundError as error:
        folder = ".".join((error.name or "").split(".")[:2])
        if error.name != folder or not folder.startswith(f"{package.partition('.')[0]}."):
            raise  # a library is missing, or a file of a ring whose folder exists
        return None
