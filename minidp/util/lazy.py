"""Load names of a package on first use, so that importing it loads no library; and find the rings
around the core, which may be left out.
"""

import re
import sys
from ast import literal_eval
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

IMPORTED = re.compile(r"^from (\S+) import \(?\s*(\w+|\*)", re.M)  # of a stub: module and name
EXPORTED = re.compile(r"^__all__ = (\[.*?\])", re.M | re.S)


def names_of(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """(__getattr__, __dir__, __all__) of `package`, as the `__init__.pyi` beside its file has them:
    one list, for type checkers and for Python.

    In the stub, `from .dense import Dense as Dense` is a name of a module, and `from . import init
    as init` is a module. `from .samplers import *` stands for the module's `__all__`, a list of
    texts, or for the names that a stub of that module imports. Modules of rings, such as
    `..layers.norm`, may be left out.
    """
    place_of = places_of(Path(file).with_suffix(".pyi"))

    def getattr_(name):
        if name not in place_of:
            from .words import hint  # imported here because only errors need it

            raise AttributeError(f"{package} has no {name}; {hint(name, place_of)}")
        place = place_of[name]
        found = loaded(place, package)
        if found is None:
            ring = place.lstrip(".").partition(".")[0]
            raise ImportError(
                f"{package}.{name} is in the folder {ring} of minidp, which was left out here"
            )
        return found if place == f".{name}" else getattr(found, name)

    return getattr_, lambda: sorted({*vars(sys.modules[package]), *place_of}), list(place_of)


def places_of(stub: Path) -> dict[str, str]:
    """{name: the module that it is in, relative to the package} of what a stub imports."""
    found: dict[str, str] = {}
    for place, name in IMPORTED.findall(stub.read_text(encoding="utf-8")):
        if name != "*":
            found[name] = place + name if place.endswith(".") else place
        elif (listed := stub.parent / f"{place[1:]}.pyi").exists():
            found |= places_of(listed)
        else:
            (names,) = EXPORTED.findall(listed.with_suffix(".py").read_text(encoding="utf-8"))
            found |= dict.fromkeys(literal_eval(names), place)
    return found


def ring(part: str) -> Any:
    """The module of a ring that offers `part` to the core; None if the ring was left out.

    part: a key of RINGS in the package's `__init__`, which names the modules.
    """
    package = __package__.partition(".")[0]
    return loaded(f".{sys.modules[package].RINGS[part]}", package)


def loaded(module: str, package: str) -> Any:
    """A module of a package; None if the module's folder is missing."""
    try:
        return import_module(module, package)
    except ModuleNotFoundError as error:
        folder = ".".join((error.name or "").split(".")[:2])
        if error.name != folder or not folder.startswith(f"{package.partition('.')[0]}."):
            raise  # a library is missing, or a file of a ring whose folder exists
        return None
